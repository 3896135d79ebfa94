/* config.h - the typed config behind struct roost_config: what the file asks for, each value with
 * its place. Filled by section_*.c, read by topology and placement. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <roost/config.h>
#include <roost/prune.h>

#include "base/rankset.h"
#include "base/text.h"
#include "config/resolve.h"
#include "config/tree.h"

enum { CONFIG_BYTES_MAX = 1024 * 1024 }; /* of a file, or of the text of a config */

/* A word the user wrote, and where. */
struct word {
    struct strview text;
    struct place at;
    const struct secret *secret; /* it holds one: show word_shown() instead; else NULL */
};

/* The word as it can be shown. */
static inline struct strview word_shown(const struct word *word)
{
    return word->secret ? word->secret->shown : word->text;
}

/* One entry of component_placement: names that share a rule. */
struct placement_rule {
    struct word text;    /* the placement string */
    struct word *labels; /* node groups, in the order written; none = `cluster` */
    int32_t label_count;
    bool has_text;   /* the text was read */
    bool has_labels; /* `labels` are all that was meant: ranks can be held against them */
    bool is_broken;  /* an error was reported; do not place it */
};

struct component {
    const char *name;
    struct place at; /* of the name in its key */
    int32_t rule;
};

struct env_var {
    struct word name;
    struct word value;
};

struct env_config {
    struct rankset node_ranks; /* "all" = every node of the group */
    struct place at;
    struct env_var *vars;
    int32_t var_count;
    struct word interpreter; /* empty = none */
};

/* A robot that a group declares. */
struct robot {
    int32_t node_rank;
    const struct node *config;
    struct place at;
};

struct node_group_config {
    const char *label;
    struct place at; /* of the label */
    struct rankset node_ranks;
    struct place node_ranks_at;
    struct word hardware_type; /* from hardware.type or hardware_type; empty = by what is there */
    struct robot *robots;
    struct env_config *env_configs;
    int32_t robot_count;
    int32_t env_config_count;
    bool has_ranks; /* false: something was reported, nothing can be held against them */
    bool ignores_hardware;
    bool is_broken; /* an error was reported; do not complain about its uses */
};

enum restart_policy { RESTART_NEVER, RESTART_ALWAYS, RESTART_ON_FAILURE };
enum local_rank_rule { LOCAL_RANK_RLINF, LOCAL_RANK_TORCHRUN, LOCAL_RANK_ZERO, LOCAL_RANK_DEVICE };
enum ready_kind { READY_AT_ONCE, READY_PORT, READY_FILE, READY_LINE };

enum engine { ENGINE_LOCAL, ENGINE_RAY };

struct port_want {
    const char *name;
    int32_t count;
    bool is_handed; /* the bound socket goes to the process (LISTEN_FDS) */
};

/* roost.launch.<component> */
struct launch_config {
    const char *component;
    struct place at;
    struct word *command;
    int32_t command_count;
    struct env_var *env;
    int32_t env_count;
    struct word cwd;
    struct port_want *ports;
    int32_t port_count;
    enum restart_policy restart;
    int32_t restart_max;
    struct word *after;
    int32_t after_count;
    enum ready_kind ready;
    struct word ready_what;
    int32_t ready_timeout; /* seconds */
    struct word bind_cpu, bind_memory;
    bool is_shared;  /* isolate: false */
    bool is_service; /* it ends with the components that are not services */
    enum local_rank_rule local_rank;
};

struct roost_config {
    struct arena arena;
    struct source source;
    struct node *root;
    bool is_layered;   /* overrides or defaults were put on what the file says */
    int32_t num_nodes; /* 0 = not known, an error was reported */
    struct place num_nodes_at;
    struct placement_rule *rules;
    int32_t rule_count;
    struct component *components;
    int32_t component_count;
    struct node_group_config *node_groups;
    int32_t node_group_count;
    const char *cluster; /* roost.cluster or NULL */
    struct place cluster_at;
    enum engine engine;      /* roost.engine */
    bool has_engine;         /* the file says it */
    bool is_model_parallel;  /* roost.mode: model-parallel */
    bool has_mode;           /* the file says it */
    bool is_mode_chosen;     /* whoever reads the config chose a mode: the file's does not count */
    struct place rollout_at; /* of the first size of rollout's model that is written */
    int64_t rollout_size; /* accelerators of one copy of it, as far as plain numbers say; else 1 */
    const char *ray_address; /* roost.ray.address or NULL */
    bool is_unreserved;      /* roost.ray.reserve: false */
    struct word logs_dir;    /* roost.logs.dir, relative to the config; empty = not set */
    struct roost_prune_limits logs_keep; /* roost.logs.keep */
    struct launch_config *launches;
    int32_t launch_count;
    struct env_names env_read;
    struct secrets secrets;
    struct bundle_settings
        *bundles; /* roost.groups, see bundle_settings.h; NULL when it is not there */
    struct model_settings *model; /* see model_settings.h; NULL when it was not asked for */
};

/* Appends the config as one text that reads the same, wherever it is read. False when there is no such
 * text within CONFIG_BYTES_MAX; `out` has failed without memory. */
bool config_put_text(const struct roost_config *config, struct text *out);

/* Starts a call that was handed a config (may be NULL): what it says holds none of the config's secrets. */
struct diag config_diag(const struct roost_config *config, struct roost_report *report,
                        struct roost_error *err);

/* The launch settings of a component, or NULL. */
const struct launch_config *config_find_launch(const struct roost_config *config, const char *name);
const struct launch_config *config_find_launch_of(const struct roost_config *config,
                                                  struct strview name);

bool config_has_component(const struct roost_config *config, struct strview name);

/* Reports that component_placement does not have the component, with the nearest one it has. */
void config_say_not_placed(const struct roost_config *config, struct strview name, struct place at,
                           struct diag *diag);

/* The group with this label, or NULL. Built-in groups are not here. */
const struct node_group_config *config_find_node_group(const struct roost_config *config,
                                                       struct strview label);

#endif
