/* commands.h - plan + config -> what to execute for every process of a run: argv, environment,
 * working directory, and the ports it wants.
 *
 * Two steps, because ports are leased in between: commands_new finds out what to run and how many
 * ports that needs; commands_fill takes the leased numbers and builds every process. Pure: nothing
 * here asks the machine, the clock or the environment of roost itself. */
#ifndef COMMAND_COMMANDS_H
#define COMMAND_COMMANDS_H

#include "base/arena.h"
#include "base/diag.h"
#include "placement/plan.h"

/* What to make commands of. All is borrowed until commands_free. */
struct launch_options {
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct roost_plan *plan; /* of this config on this cluster */
    const char *const *env; /* the caller's environment, NULL-terminated: what processes inherit;
                                       NULL = nothing */
    const char *const *components; /* only these, in any order; with count 0 all */
    size_t component_count;
    const char *const *command; /* words of `-- COMMAND...`: for the one chosen component without a
                                       command of its own */
    size_t command_count;
    bool is_command_optional; /* a component without a command has an environment only */
    const struct roost_component *placed; /* instead of a plan: one component, which takes nothing
                                               from roost.launch, under `name` */
    const char *name;
    const char *const *extra_env; /* set over everything else; NULL = nothing */
    const char *const *forker;    /* see roost_run_options; NULL = none */
    const char *home;             /* the cwd of processes without one; NULL = the caller's */
    const char *config_dir;       /* where a relative cwd starts; NULL = the folder of the config as
                                       its path was written, the caller's own for standard input */
};

/* `count` ports in a row that a process wants. */
struct port_request {
    int32_t component; /* index into commands->components */
    int32_t rank;      /* process of it */
    const char *name;  /* as in `ports`; NULL = the master port, of rank 0 only */
    int32_t count;
    bool is_handed; /* as a bound socket (LISTEN_FDS), rather than released at exec */
};

struct process_command {
    const char *const *argv; /* NULL-terminated; NULL = there is no command */
    const char *const *env; /* "NAME=value", NULL-terminated, each name once, in a fixed order. With
                                 base_env it is the whole environment */
    int32_t own_count;      /* env[0 .. own_count - 1], sorted by name, is what the config and roost
                                 set; what is behind is inherited, for some of the processes only */
    const char *cwd; /* absolute if config_dir is or the user wrote it so; NULL = the caller's */
    const char *interpreter; /* the Python of its node group's env_config, or NULL */
    const char *ready_what;  /* the file (relative to cwd) or line that `ready` waits for; NULL = it
                                 waits for none */
};

struct component_commands {
    const char *name;
    const struct roost_component *placed;
    const struct launch_config *launch; /* NULL = the config has no settings for it */
    int32_t process_count;
    int32_t first_port;                /* its requests in `ports`: the master port, then for every
                                            process those of launch->ports, in that order */
    const char *const *base_env;       /* inherited "NAME=value" that no process of the component
                                            sets itself, NULL-terminated */
    struct process_command *processes; /* [process_count] after commands_fill, NULL before */
    struct environment *environment;   /* see environment.h */
};

struct commands {
    struct component_commands *components; /* in the order of the plan */
    int32_t component_count;
    struct port_request *ports;
    size_t port_count;
    struct arena arena;
    struct launch_options options;
};

/* What a run decides. Borrowed until commands_free. */
struct run_values {
    const char *run_id;
    const char *name_space;
    const char *master_addr; /* NULL = the address of the node of each component's rank 0 */
    const int32_t *ports; /* [port_count], the first port of each request; NULL = not known yet, and
                              every port reads "<port>" */
    const int32_t *only_node; /* NULL = all processes are built, else those of this node alone */
};

/* Checks what needs no plan, which may be NULL: that the chosen components are there, and their
 * commands. False after saying what is wrong. */
bool commands_check(const struct launch_options *options, struct diag *diag);

/* Chooses the components, checks that each has a command and that its words have values, and numbers
 * the ports. Everything that is wrong is said; NULL if anything was. */
struct commands *commands_new(const struct launch_options *options, struct diag *diag);

/* Builds components[*].processes. Takes time and memory in proportion to the processes and their
 * variables; what processes have in common is shared. False after saying that there is no memory. */
bool commands_fill(struct commands *commands, const struct run_values *values, struct diag *diag);

void commands_free(struct commands *commands);

/* --- one process after the other, for who shows them and keeps none --- */

/* Builds the processes of a component in turn. */
struct command_maker;

/* Words as a process gets them, or with *** for what is secret in them. */
enum words_for { WORDS_REAL, WORDS_SHOWN };

/* Everything that is made comes from `arena`, and is good until the arena or the maker goes, the
 * maker's own memory too. NULL without memory. */
struct command_maker *command_maker_new(const struct commands *commands, int32_t component,
                                        const struct run_values *values, enum words_for words,
                                        struct arena *arena);

/* False without memory. */
bool command_maker_make(struct command_maker *maker, int32_t rank, struct process_command *out);

/* Ends the maker; what it made stays. */
void command_maker_free(struct command_maker *maker);

#endif
