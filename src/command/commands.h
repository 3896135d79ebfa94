/* commands.h - plan + config -> what to execute for every process of a run: argv, environment,
 * working directory, and the ports it wants.
 *
 * This takes two steps, because ports are leased in between: commands_new finds out what to run and how
 * many ports that needs; commands_fill takes the leased numbers and builds every process. Pure: no
 * function looks at the machine, the clock or the environment of roost itself. */
#ifndef COMMAND_COMMANDS_H
#define COMMAND_COMMANDS_H

#include "base/arena.h"
#include "base/diag.h"
#include "placement/plan.h"

/* What to build commands from. Everything is borrowed until commands_free. */
struct launch_options {
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct roost_plan *plan; /* of this config on this cluster */
    /* The environment that processes inherit, NULL-terminated. NULL = nothing. */
    const char *const *env;
    /* Only these, in any order. 0 = all. */
    const char *const *components;
    size_t component_count;
    /* The arguments after `--`: for the one chosen component that has no command of its own. */
    const char *const *command;
    size_t command_count;
    /* A component without a command only gets an environment. */
    bool is_command_optional;
    /* Instead of a plan: one component called `name`, which ignores roost.launch. */
    const struct roost_component *placed;
    const char *name;
    /* Set over everything else. NULL = nothing. */
    const char *const *extra_env;
    /* See roost_run_single. NULL = none. */
    const char *const *forker;
    /* The cwd of processes without one. NULL = the caller's. */
    const char *home;
    /* Where a relative cwd starts. NULL = the folder of the config as its path was given; for standard
     * input the caller's. */
    const char *config_dir;
};

/* `count` consecutive ports that a process wants. */
struct port_request {
    int32_t component; /* index into commands->components */
    int32_t rank;      /* process of it */
    const char *name;  /* as in `ports`; NULL = the master port, of rank 0 only */
    int32_t count;
    bool is_handed; /* the process inherits a bound socket (LISTEN_FDS) */
};

struct process_command {
    const char *const *argv; /* NULL-terminated; NULL = there is no command */
    /* "NAME=value", NULL-terminated, each name once, in a fixed order. The whole environment is this and
     * base_env. The config and roost set env[0 .. own_count - 1], sorted by name; only some processes
     * inherit the rest. */
    const char *const *env;
    int32_t own_count;
    const char
        *cwd; /* absolute if config_dir is, or if the user wrote it so; NULL = the caller's */
    const char *interpreter; /* the Python of its node group's env_config, or NULL */
    /* The file (relative to cwd) or line that `ready` waits for. NULL = neither. */
    const char *ready_what;
};

/* A list of addresses that a component has as a variable: of all ranks of another component, or of its
 * own. See addresses.h. */
struct address_list {
    const char *variable;                 /* ROOST_ADDRESSES_<COMPONENT>_<PORT> */
    struct component_commands *component; /* NULL = only its placement is known: it is not run */
    const char *of;                       /* its name */
    int32_t port;                         /* index into its launch->ports */
};

struct component_commands {
    const char *name;
    const struct roost_component *placed;
    const struct launch_config *launch; /* NULL = the config has no settings for it */
    int32_t process_count;
    /* Its requests in `ports`: the master port, then for every process those of launch->ports, in that
     * order. */
    int32_t first_port;
    /* Inherited "NAME=value" that no process of the component sets itself, and after commands_fill the
     * addresses of other components; NULL-terminated. */
    const char *const *base_env;
    /* "NAME=value" too long for a variable: the engine writes the value to a file on each node and sets
     * NAME_FILE to its path. After commands_fill; NULL = none. */
    const char *const *long_env;
    struct address_list *lists; /* [list_count]: the lists that its processes have */
    int32_t list_count;
    const char **addresses; /* by launch->ports, after commands_fill; NULL = no component asks */
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

/* The values that a run decides. Borrowed until commands_free. */
struct run_values {
    const char *run_id;
    const char *name_space;
    const char *master_addr; /* NULL = the address of the node of each component's rank 0 */
    /* [port_count], the first port of each request. NULL = not known yet: every port reads "<port>". */
    const int32_t *ports;
    /* Build only the processes of this node. NULL = of all nodes. */
    const int32_t *only_node;
};

/* Checks what needs no plan (which may be NULL): that the chosen components exist, and their commands. False
 * after reporting what is wrong. */
bool commands_check(const struct launch_options *options, struct diag *diag);

/* Chooses the components, checks that each has a command whose variables have values, and numbers the ports.
 * NULL after reporting all faults. */
struct commands *commands_new(const struct launch_options *options, struct diag *diag);

/* Builds components[*].processes. Time and memory grow with the processes and their variables; processes
 * share what they have in common. False after reporting that there is no memory. */
bool commands_fill(struct commands *commands, const struct run_values *values, struct diag *diag);

void commands_free(struct commands *commands);

/* --- one process after the other, for a caller that shows them and keeps none --- */

/* Builds the processes of a component in turn. */
struct command_maker;

/* Words as a process gets them, or with *** in place of secrets. */
enum words_for { WORDS_REAL, WORDS_SHOWN };

/* What the maker builds is in memory of `arena` and stays valid as long as the arena, also after the maker is
 * freed. NULL without memory. */
struct command_maker *command_maker_new(const struct commands *commands, int32_t component,
                                        const struct run_values *values, enum words_for words,
                                        struct arena *arena);

/* False without memory. */
bool command_maker_make(struct command_maker *maker, int32_t rank, struct process_command *out);

/* Ends the maker; what it made stays. */
void command_maker_free(struct command_maker *maker);

#endif
