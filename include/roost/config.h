/* config.h - a config file, read and checked.
 *
 * The `cluster` section is RLinf's; the `roost` section is ours; every other key of the file is left
 * alone. A config is built once and then only read. */
#ifndef ROOST_CONFIG_H
#define ROOST_CONFIG_H

#include <stdbool.h>

#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_config;

/* How to read a config. All zero but `path`: the file as it stands, with an empty environment. */
struct roost_config_options {
    const char *path;             /* a file, or "-" for standard input */
    const char *text;             /* not NULL: read this instead, `path` being its name */
    size_t text_len;              /* bytes of `text` */
    const char *const *overrides; /* "key=value" texts */
    size_t override_count;
    const char *const *env; /* "NAME=value" texts, NULL-terminated, for ${oc.env:...} */
    bool follow_defaults;   /* compose Hydra `defaults` from files beside the config */
    bool reads_model;       /* read what ROOST_MODE_MODEL_PARALLEL needs: actor, rollout, ... */
    const char *const *line_keys; /* the key of each line of a `text` that a program wrote: errors
                                     that speak of a second place name it instead of the line */
    size_t line_key_count;
    bool takes_groups_alone; /* a file with `roost.groups` needs no `cluster` */
    bool is_composed; /* `text` is what another YAML reader made of a file: a plain number may
                               have been written in base 60, which is said */
};

/* Reads, resolves and checks a config. Every fault goes to `report` (may be NULL), the first also to
 * `err` (may be NULL). Returns NULL when there was any error. All arguments are borrowed for the
 * call. */
ROOST_API struct roost_config *roost_config_load(const struct roost_config_options *options,
                                                 struct roost_report *report,
                                                 struct roost_error *err);

/* Like roost_config_load, but returns what could be read even when there were errors, so that
 * roost_cluster_new and roost_plan_new can find more of them; a plan made of it has no processes for
 * components that are in error. NULL when not even that is possible. */
ROOST_API struct roost_config *roost_config_load_lenient(const struct roost_config_options *options,
                                                         struct roost_report *report,
                                                         struct roost_error *err);

ROOST_API void roost_config_free(struct roost_config *config);

/* The text that the config was read from, borrowed from it. */
ROOST_API const char *roost_config_text(const struct roost_config *config, size_t *out_len);

/* cluster.num_nodes */
ROOST_API int32_t roost_config_num_nodes(const struct roost_config *config);

/* What the file says of the engine: "local", "ray", or NULL when it says nothing; the address of the Ray
 * cluster to join, or NULL; whether the devices of a run are reserved there. */
ROOST_API const char *roost_config_engine(const struct roost_config *config);
ROOST_API const char *roost_config_ray_address(const struct roost_config *config);
ROOST_API bool roost_config_ray_reserves(const struct roost_config *config);

/* roost.cluster, borrowed from the config; NULL when it is not set. */
ROOST_API const char *roost_config_cluster(const struct roost_config *config);

/* Names of placed components in the order written, borrowed from the config. */
ROOST_API size_t roost_config_component_count(const struct roost_config *config);
ROOST_API const char *roost_config_component(const struct roost_config *config, size_t index);

/* Which entry of component_placement names the component: those of one entry share its placement. */
ROOST_API size_t roost_config_component_rule(const struct roost_config *config, size_t index);

/* Labels of node groups that components name, borrowed from the config; one may come twice. */
ROOST_API size_t roost_config_label_count(const struct roost_config *config);
ROOST_API const char *roost_config_label(const struct roost_config *config, size_t index);

/* An entry of cluster.node_groups, text borrowed from the config. */
struct roost_group_config {
    const char *label;
    const char *hardware_type; /* as declared; NULL = by what the nodes have */
    size_t hardware_type_len;
    bool ignores_hardware;
    size_t env_count; /* entries of env_configs */
};

/* The groups in the order written; false when there is no such group. */
ROOST_API size_t roost_config_group_count(const struct roost_config *config);
ROOST_API bool roost_config_group(const struct roost_config *config, size_t index,
                                  struct roost_group_config *out);

/* The lowest node rank of the group at or above `from`, -1 when there is none. */
ROOST_API int32_t roost_config_group_node(const struct roost_config *config, size_t index,
                                          int32_t from);

/* An entry of env_configs, text borrowed from the config. */
struct roost_env_config {
    const char *python_interpreter_path; /* NULL = none */
    size_t python_interpreter_path_len;
    size_t var_count;
};

struct roost_env_var {
    const char *name, *value;
    size_t name_len, value_len;
    bool is_secret; /* by its name, or by where its value comes from: show *** for the value */
};

/* Entries of env_configs, their nodes (as above) and their variables; false when there is no such. */
ROOST_API bool roost_config_env_config(const struct roost_config *config, size_t group, size_t env,
                                       struct roost_env_config *out);
ROOST_API int32_t roost_config_env_node(const struct roost_config *config, size_t group, size_t env,
                                        int32_t from);
ROOST_API bool roost_config_env_var(const struct roost_config *config, size_t group, size_t env,
                                    size_t var, struct roost_env_var *out);

/* Environment variables that were looked up, set or not, borrowed from the config. */
ROOST_API size_t roost_config_env_count(const struct roost_config *config);
ROOST_API const char *roost_config_env(const struct roost_config *config, size_t index);

#ifdef __cplusplus
}
#endif
#endif
