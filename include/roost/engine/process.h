/* process.h - what every process of a component is started with, by whichever engine.
 *
 * An engine outside this library gives its processes the same variables, arguments, folder and
 * interpreter as the local engine. This takes two steps, because the engine leases ports in between:
 * roost_processes_new finds out how many ports the processes want, and roost_processes_fill takes the
 * port numbers. These functions are pure: they do not look at the machine, the clock or the caller's
 * environment. */
#ifndef ROOST_ENGINE_PROCESS_H
#define ROOST_ENGINE_PROCESS_H

#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the name of a variable for extra_env, here or in launch.h. It has letters, digits and '_', and it
 * is not one that roost itself reads (ROOST_..., LISTEN_...). */
ROOST_API enum roost_code roost_variable_check(const char *name,
                                               struct roost_error *err) ROOST_MUST_USE;

struct roost_processes;

/* Everything is borrowed until the processes are freed. */
struct roost_processes_options {
    /* NULL = no env_configs. */
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    /* Of a plan on this cluster. */
    const struct roost_component *component;
    /* A name that roost_group_name_check accepts. */
    const char *name;
    /* "NAME=value" texts, NULL-terminated, that the processes inherit where they run. NULL = none. */
    const char *const *env;
    /* Set over everything else. NULL = none. */
    const char *const *extra_env;
    const char *const *command;
    size_t command_count;
    /* Where a relative cwd starts. NULL = at the config's path as it was given. */
    const char *config_dir;
};

/* NULL on failure: `report` (may be NULL) has every fault and `err` (may be NULL) the first. */
ROOST_API struct roost_processes *roost_processes_new(const struct roost_processes_options *options,
                                                      struct roost_report *report,
                                                      struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_processes_free(struct roost_processes *processes);

/* Consecutive ports that a process wants on its node. The text is borrowed from the processes. */
struct roost_process_want {
    int32_t rank;
    int32_t node_rank;
    const char *name; /* NULL = the component's master port, of rank 0 */
    int32_t count;
    bool is_handed; /* the process inherits a bound socket (LISTEN_FDS) */
};

/* The master port first. */
ROOST_API size_t roost_processes_want_count(const struct roost_processes *processes);
ROOST_API bool roost_processes_want(const struct roost_processes *processes, size_t index,
                                    struct roost_process_want *out);

/* The values that a run decides. Borrowed until the processes are freed. */
struct roost_process_values {
    const char *run_id;
    const char *name_space;
    const char *master_addr;
    const int32_t *ports; /* the first port of each want */
};

/* Builds every process. */
ROOST_API enum roost_code roost_processes_fill(struct roost_processes *processes,
                                               const struct roost_process_values *values,
                                               struct roost_error *err) ROOST_MUST_USE;

/* One process, borrowed from the processes. */
struct roost_process {
    /* NULL-terminated. NULL = there is no command. */
    const char *const *argv;
    /* "NAME=value" texts. The config and roost set env[0 .. own_count - 1], sorted by name; the process
     * inherits the rest. */
    const char *const *env;
    int32_t own_count;
    /* NULL = the folder of the process that starts it. */
    const char *cwd;
    /* The Python that its node group names, or NULL. */
    const char *interpreter;
};

/* After roost_processes_fill; false when there is no such rank. */
ROOST_API bool roost_processes_get(const struct roost_processes *processes, int32_t rank,
                                   struct roost_process *out);

/* --- the id of a run --- */

enum { ROOST_RUN_ID_SIZE = 7 };

/* A new id, in the form that roost_run_start gives its runs, for a run that another engine starts. */
ROOST_API enum roost_code roost_run_id_new(char out[ROOST_RUN_ID_SIZE],
                                           struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
