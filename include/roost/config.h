/* config.h - a config file, read and checked.
 *
 * The `cluster` section is RLinf's and the `roost` section is ours; roost ignores every other key of the
 * file. A config is built once and never changes. */
#ifndef ROOST_CONFIG_H
#define ROOST_CONFIG_H

#include <stdbool.h>

#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_config;

/* How to read a config. All zero except `path`: the file as it is, with an empty environment. */
struct roost_config_options {
    /* A file, or "-" for standard input. */
    const char *path;
    /* Read this text instead; `path` is then its name. NULL = read the file. */
    const char *text;
    size_t text_len;
    /* "key=value" texts. */
    const char *const *overrides;
    size_t override_count;
    /* "NAME=value" texts, NULL-terminated, for ${oc.env:...}. */
    const char *const *env;
    /* Compose Hydra `defaults` from files beside the config. */
    bool follow_defaults;
    /* Read what ROOST_MODE_MODEL_PARALLEL needs: actor, rollout, ... */
    bool reads_model;
    /* Read it also if the file says `roost.mode: model-parallel`. */
    bool follows_mode;
    /* The key of each line of a `text` that a program wrote. An error that mentions a second place names
     * this key instead of the line. */
    const char *const *line_keys;
    size_t line_key_count;
    /* A file with `roost.groups` needs no `cluster`. */
    bool takes_placement_groups_alone;
    /* Another YAML reader made `text` from a file. It may have read a text such as 1:30 as a number in
     * base 60; errors then mention that. */
    bool is_composed;
};

/* Reads, resolves and checks a config. NULL if there is any error: `report` has every fault and `err` the
 * first (either may be NULL). All arguments are borrowed for the call. */
ROOST_API struct roost_config *roost_config_load(const struct roost_config_options *options,
                                                 struct roost_report *report,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Like roost_config_load, but returns what it could read even if there are errors, so that
 * roost_cluster_new and roost_plan_new can find more of them. A plan of such a config has no processes for
 * components with errors. NULL if nothing could be read. */
ROOST_API struct roost_config *roost_config_load_lenient(const struct roost_config_options *options,
                                                         struct roost_report *report,
                                                         struct roost_error *err) ROOST_MUST_USE;

ROOST_API void roost_config_free(struct roost_config *config);

/* The text that the config was read from. Borrowed from the config. */
ROOST_API const char *roost_config_text(const struct roost_config *config, size_t *out_len);

/* cluster.num_nodes */
ROOST_API int32_t roost_config_num_nodes(const struct roost_config *config);

/* roost.mode: "hybrid", "model-parallel", or NULL if the file does not say it. It is for programs that plan
 * as the file says; roost_plan_new plans as its options say. */
ROOST_API const char *roost_config_mode(const struct roost_config *config);

/* What the file says about the engine: "local", "ray", or NULL; the address of the Ray cluster to join, or
 * NULL; whether runs reserve their devices there. */
ROOST_API const char *roost_config_engine(const struct roost_config *config);
ROOST_API const char *roost_config_ray_address(const struct roost_config *config);
ROOST_API bool roost_config_ray_reserves(const struct roost_config *config);

/* roost.cluster, borrowed from the config. NULL if it is not set. */
ROOST_API const char *roost_config_cluster(const struct roost_config *config);

/* The names of placed components in the order of the file, borrowed from the config. */
ROOST_API size_t roost_config_component_count(const struct roost_config *config);
ROOST_API const char *roost_config_component(const struct roost_config *config, size_t index);

/* Which entry of component_placement names the component. Components of one entry share its placement. */
ROOST_API size_t roost_config_component_rule(const struct roost_config *config, size_t index);

/* The labels of node groups that components name, borrowed from the config. A label may come twice. */
ROOST_API size_t roost_config_label_count(const struct roost_config *config);
ROOST_API const char *roost_config_label(const struct roost_config *config, size_t index);

/* An entry of cluster.node_groups. Its texts are borrowed from the config. */
struct roost_node_group_config {
    const char *label;
    const char *hardware_type; /* as declared; NULL = decided by what the nodes have */
    size_t hardware_type_len;
    bool ignores_hardware;
    size_t env_count; /* entries of env_configs */
};

/* The node groups in the order of the file. False if there is no such group. */
ROOST_API size_t roost_config_node_group_count(const struct roost_config *config);
ROOST_API bool roost_config_node_group(const struct roost_config *config, size_t index,
                                       struct roost_node_group_config *out);

/* The lowest node rank of the group that is at least `from`; -1 if there is none. */
ROOST_API int32_t roost_config_node_group_node(const struct roost_config *config, size_t index,
                                               int32_t from);

/* An entry of env_configs. Its texts are borrowed from the config. */
struct roost_env_config {
    const char *python_interpreter_path; /* NULL = none */
    size_t python_interpreter_path_len;
    size_t var_count;
};

struct roost_env_var {
    const char *name, *value;
    size_t name_len, value_len;
    bool is_secret; /* by its name, or by the source of its value: show *** instead of the value */
};

/* Entries of env_configs, their nodes (as above) and their variables. False if there is no such entry. */
ROOST_API bool roost_config_env_config(const struct roost_config *config, size_t group, size_t env,
                                       struct roost_env_config *out);
ROOST_API int32_t roost_config_env_node(const struct roost_config *config, size_t group, size_t env,
                                        int32_t from);
ROOST_API bool roost_config_env_var(const struct roost_config *config, size_t group, size_t env,
                                    size_t var, struct roost_env_var *out);

/* The environment variables that were looked up, set or not. Borrowed from the config. */
ROOST_API size_t roost_config_env_count(const struct roost_config *config);
ROOST_API const char *roost_config_env(const struct roost_config *config, size_t index);

#ifdef __cplusplus
}
#endif
#endif
