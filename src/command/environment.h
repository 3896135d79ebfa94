/* environment.h - the variables of a component's processes.
 *
 * Four layers, the later one wins:
 *   - the caller's environment
 *   - the env_configs, for its node, of the node group that the process was placed through
 *   - roost.launch.<component>.env
 *   - the variables of roost itself
 * Lists of folders are joined instead of replaced (path_merge.h).
 *
 * One sorted table has every name that a process of the component may set. A process is built by filling
 * one slot per name. */
#ifndef COMMAND_ENVIRONMENT_H
#define COMMAND_ENVIRONMENT_H

#include "command/commands.h"
#include "command/values.h"

struct environment {
    struct strview *names;  /* [name_count], sorted, each once */
    const char **inherited; /* [name_count]: the caller's "NAME=value", or NULL */
    int32_t name_count;
    const char **base_env; /* inherited variables that are not in `names`, NULL-terminated */
    uint32_t types;        /* bit 1 << type: some process is on a node with such accelerators */
    bool is_replacing;     /* RLINF_PATH_ENV_MERGE_MODE=override */
    bool catches_failure;  /* RLINF_CATCH_FAILURE=1 */
    bool has_interfaces;   /* some process may have RLINF_COMM_NET_DEVICES: see interfaces.h */
    const struct env_map **env_of_group; /* by the component's node groups; NULL = no env_configs */
};

/* Which env_config of a node group applies to which of its nodes. */
struct env_map {
    const struct node_group_config *config;
    const struct node_group *group;
    int32_t *env_of_member; /* [group->member_count], -1 = none */
};

/* The maps of all groups that have env_configs, in the order of the config; NULL without memory. */
struct env_map *env_maps_new(struct arena *arena, const struct launch_options *options,
                             int32_t *out_count);

/* What the environments of a component's processes have in common; NULL without memory. `component`
 * has its name, placement and launch settings. */
struct environment *environment_new(struct arena *arena, const struct launch_options *options,
                                    const struct component_commands *component,
                                    const struct env_map *maps, int32_t map_count);

/* The value of a variable in the caller's environment, or NULL. */
const char *environment_find(const char *const *env, const char *name);

/* The place of a name among it->names, -1 = no process of the component sets it. */
int32_t environment_slot(const struct environment *it, struct strview name);

/* The env_config that applies to a node of the group; -1 = none. */
int32_t env_map_find(const struct env_map *map, int32_t node);

struct slot;

/* Makes the environments of processes one after the other (recipe.c). It keeps a recipe for processes of one
 * kind, because neighbours are nearly always of one kind. All fields start as zero, except the first six and
 * seen_node, which is -1. */
struct environment_maker {
    const struct commands *commands;
    const struct component_commands *component;
    struct arena *arena;
    struct text *scratch;
    struct value_source source;
    enum words_for words;
    int32_t group, env, type;                /* of the recipe; group -1 = there is none yet */
    int32_t seen_group, seen_node, seen_env; /* of the previous process */
    struct slot *slots;                      /* [name_count] */
    const char *interpreter;                 /* of the env_config, or NULL */
};

/* The text of a config word as the maker uses it: the real one, or the one without secrets. */
static inline struct strview environment_word(const struct environment_maker *maker,
                                              const struct word *word)
{
    return maker->words == WORDS_SHOWN ? word_shown(word) : word->text;
}

/* Fills out->env and own_count for the process; false without memory. */
bool environment_make(struct environment_maker *maker, int32_t rank, struct process_command *out);

#endif
