/* process.h - what every process of a component is given, whoever starts it.
 *
 * For engines outside this library: the same variables, words, folder and interpreter that the local
 * engine gives its processes. Two steps, because ports are leased in between: roost_processes_new finds
 * out how many ports the processes want, roost_processes_fill takes their numbers. Pure: nothing here
 * asks the machine, the clock or the environment of the caller. */
#ifndef ROOST_PROCESS_H
#define ROOST_PROCESS_H

#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Checks the name of a variable that extra_env, here or in launch.h, is to set: letters, digits and '_', and
 * none of those that roost goes by itself (ROOST_..., LISTEN_...). */
ROOST_API enum roost_code roost_variable_check(const char *name,
                                               struct roost_error *err) ROOST_MUST_USE;

struct roost_processes;

/* All is borrowed until the processes are freed. */
struct roost_processes_options {
    const struct roost_config *config; /* may be NULL: no env_configs */
    const struct roost_cluster *cluster;
    const struct roost_component *component; /* of a plan on this cluster */
    const char *name;                        /* as roost_group_name_check has it */
    const char *const *env;       /* "NAME=value", NULL-terminated: what the processes inherit where
                                   they run; NULL = nothing */
    const char *const *extra_env; /* set over everything else; NULL = nothing */
    const char *const *command;   /* its words */
    size_t command_count;
    const char
        *config_dir; /* where a relative cwd starts; NULL = as the config's path was written */
};

/* NULL on failure: `report` (may be NULL) has every fault and `err` (may be NULL) the first. */
ROOST_API struct roost_processes *roost_processes_new(const struct roost_processes_options *options,
                                                      struct roost_report *report,
                                                      struct roost_error *err);
ROOST_API void roost_processes_free(struct roost_processes *processes);

/* Ports in a row that a process wants on its node; text borrowed from the processes. */
struct roost_process_want {
    int32_t rank;
    int32_t node_rank;
    const char *name; /* NULL = the component's master port, of rank 0 */
    int32_t count;
    bool is_handed; /* as a bound socket (LISTEN_FDS) */
};

/* The master port first. */
ROOST_API size_t roost_processes_want_count(const struct roost_processes *processes);
ROOST_API bool roost_processes_want(const struct roost_processes *processes, size_t index,
                                    struct roost_process_want *out);

/* What a run decides; borrowed until the processes are freed. */
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

/* Borrowed from the processes. */
struct roost_process {
    const char *const *argv; /* NULL-terminated; NULL = there is no command */
    const char *const *env;  /* "NAME=value": env[0 .. own_count - 1], sorted by name, is what the
                                config and roost set; what is behind it is inherited */
    int32_t own_count;
    const char *cwd;         /* NULL = the starter's */
    const char *interpreter; /* the Python that its node group names, or NULL */
};

/* After roost_processes_fill; false when there is no such rank. */
ROOST_API bool roost_processes_get(const struct roost_processes *processes, int32_t rank,
                                   struct roost_process *out);

#ifdef __cplusplus
}
#endif
#endif
