/* bundle_settings.h - roost.groups as it was written: slime's arguments, each with its place. What
 * is not written stays unset; src/bundle settles it. */
#ifndef CONFIG_BUNDLE_SETTINGS_H
#define CONFIG_BUNDLE_SETTINGS_H

#include <roost/bundle.h>

#include "config/reader.h"

enum { BUNDLE_GPUS_MAX = 1 << 24 }; /* of one job; as many as a component has processes */

struct count_setting {
    int32_t value;
    bool is_set;
    struct place at;
};

struct flag_setting {
    bool value, is_set;
    struct place at;
};

struct amount_setting {
    int64_t value; /* in 1/10000 */
    bool is_set;
    struct place at;
};

/* An entry of server_groups. */
struct bundle_servers {
    enum roost_worker_type type;
    struct count_setting num_gpus, per_engine;
    struct word model_path; /* of `overrides`; empty = the model's */
};

/* An entry of `sglang`. */
struct bundle_model {
    const char *name;
    struct place at;
    struct word model_path; /* empty = the one being trained */
    struct flag_setting update_weights;
    struct count_setting per_engine;
    struct bundle_servers *groups;
    int32_t group_count;
};

/* An entry of rollout_external_engine_addrs. */
struct bundle_external {
    const char *address; /* as written */
    enum roost_worker_type type;
    struct count_setting num_gpus; /* unset = only the engine knows */
};

enum colocate_size { COLOCATE_SIZE_MAX, COLOCATE_SIZE_ACTOR };

struct bundle_settings {
    struct place at; /* of the key `groups` */
    bool is_broken;  /* a value was in error: do not lay it out */
    bool is_seed;
    struct place profile_at;
    struct count_setting actor_num_nodes, actor_num_gpus_per_node, rollout_num_gpus,
        rollout_num_gpus_per_engine, num_gpus_per_node, prefill_num_servers, sglang_dp_size,
        port_base, dist_init_ports, num_http_posters;
    struct flag_setting colocate, debug_train_only, debug_rollout_only, rollout_external,
        use_critic, offload_train, offload_rollout, release_train, train_async, share_gpu_ids;
    struct amount_setting num_gpus_per_actor, num_gpus_per_part;
    struct word advantage_estimator, load_debug_rollout_data, hf_checkpoint;
    enum colocate_size colocate_size;
    bool has_colocate_size;
    bool has_models;
    struct place models_at;
    struct bundle_model *models;
    int32_t model_count;
    struct place external_at;
    struct bundle_external *external;
    int32_t external_count;
};

/* roost.groups.sglang (a list), sglang_config (a file) and rollout_external_engine_addrs. */
void bundle_read_models(struct reader *reader, const struct node *list,
                        struct bundle_settings *out);
void bundle_read_models_file(struct reader *reader, const struct node *path,
                             struct bundle_settings *out);
void bundle_read_external(struct reader *reader, const struct node *list,
                          struct bundle_settings *out);

/* Scalars of the two files above and of section_bundles.c. A value in error marks the settings. */
void bundle_read_count(struct reader *reader, const struct node *node, const char *key, int32_t min,
                       int32_t max, struct count_setting *out);
void bundle_read_flag(struct reader *reader, const struct node *node, const char *key,
                      struct flag_setting *out);
/* Whether a text was left empty or switched off, which is to leave it out: `false` is not a path. */
bool bundle_is_off(const struct node *node);
bool bundle_read_type(struct reader *reader, const struct node *node, enum roost_worker_type *out);

/* What an argument of a command line gives a key of `roost.groups`. */
enum bundle_key_kind {
    BUNDLE_KEY_VALUE,
    BUNDLE_KEY_FLAG, /* nothing: the argument itself says it */
    BUNDLE_KEY_LIST, /* one value or more */
};

/* The keys of `roost.groups`, by index; NULL after the last one. */
const char *bundle_key(size_t index, enum bundle_key_kind *out_kind);

#endif
