/* config.c - load -> compose -> override -> read sections: the steps of roost_config_load. */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"
#include "config/defaults.h"
#include "config/model_settings.h"
#include "config/override.h"
#include "config/secret_values.h"
#include "config/sections.h"
#include "config/yaml_load.h"

/* Keys of lines outlive the caller's: a plan still names them. */
static bool copy_keys(struct roost_config *config, const struct roost_config_options *options,
                      struct diag *diag)
{
    if (options->line_key_count == 0 || options->line_key_count > CONFIG_BYTES_MAX)
        return true; /* a text within the limit has no more lines */
    const char **keys = arena_array(&config->arena, const char *, options->line_key_count);
    for (size_t i = 0; keys && i < options->line_key_count; i++) {
        /* Lines of one value follow each other and share its key. */
        bool is_same = i > 0 && strcmp(options->line_keys[i], options->line_keys[i - 1]) == 0;
        keys[i] =
            is_same ? keys[i - 1] : arena_copy(&config->arena, sv_from(options->line_keys[i]));
        if (!keys[i])
            keys = NULL;
    }
    if (!keys) {
        diag_nomem(diag);
        return false;
    }
    config->source.line_keys = keys;
    config->source.line_key_count = (int32_t)options->line_key_count;
    return true;
}

static bool load_text(struct roost_config *config, const struct roost_config_options *options,
                      struct diag *diag)
{
    config->source.name = arena_copy(&config->arena, sv_from(options->path));
    if (!config->source.name) {
        diag_nomem(diag);
        return false;
    }
    if (!options->text) {
        bool is_read =
            file_read(&config->arena, options->path, CONFIG_BYTES_MAX, diag, &config->source.text);
        /* A byte order mark is no character of the text: columns count without it. */
        if (is_read && sv_starts(config->source.text, "\xef\xbb\xbf"))
            config->source.text = sv_sub(config->source.text, 3, config->source.text.len);
        return is_read;
    }
    if (options->text_len > CONFIG_BYTES_MAX) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "'%s' is larger than %d bytes",
                   quote(sv_from(options->path)).text, CONFIG_BYTES_MAX);
        diag_hint(diag, "check that it is the right file, or move what roost does not read out "
                        "of it");
        return false;
    }
    const char *copy =
        arena_copy(&config->arena, (struct strview){options->text, options->text_len});
    if (!copy) {
        diag_nomem(diag);
        return false;
    }
    config->source.text = (struct strview){copy, options->text_len};
    return copy_keys(config, options, diag);
}

static bool load_tree(struct roost_config *config, const struct roost_config_options *options,
                      struct diag *diag)
{
    struct node *root = yaml_load(&config->arena, &config->source, config->source.text, 1, 1, diag);
    if (!root)
        return false;
    if (root->kind != NODE_MAPPING) {
        diag_error(diag, ROOST_ERR_SCHEMA, node_place(root),
                   "a config is a mapping with a 'cluster' section");
        diag_hint(diag, "start it with 'cluster:', and indent what belongs to the cluster below");
        return false;
    }
    struct overrides overrides = {0};
    if (options->override_count && !overrides_init(&overrides, &config->arena, options->overrides,
                                                   options->override_count, diag))
        return false;
    if (options->follow_defaults)
        root = defaults_compose(&config->arena, options->path, root, &overrides, diag);
    if (root)
        root = overrides_apply(&overrides, &config->arena, root, diag);
    config->is_layered = options->follow_defaults || options->override_count;
    config->root = root;
    return root != NULL;
}

/* The top-level key that was meant to be `cluster`, if any looks like it. */
static void hint_cluster(const struct node *root, struct diag *diag)
{
    for (int32_t i = 0; i < root->count; i++) {
        const struct node *key = root->pairs[i].key;
        if (sv_is(key->text, "cluster"))
            continue; /* it is there, with nothing below it */
        if (sv_is_nocase(key->text, "cluster") || nearest_word(key->text, KEYS("cluster"))) {
            diag_hint(diag, "did you mean 'cluster' by '%s' at %s?", quote(key->text).text,
                      place_name(node_place(key)).text);
            return;
        }
    }
    diag_hint(diag, "add 'cluster:' with num_nodes and component_placement");
}

/* Whether the file has `roost.groups`, before anything is read. */
static bool has_placement_groups(const struct node *root)
{
    const struct node *roost = node_get(root, SV("roost"));
    return roost && roost->kind == NODE_MAPPING && node_get(roost, SV("groups"));
}

/* How many accelerators a copy of rollout's model takes. Only plain numbers count: without model-parallel
 * placement nobody asks what else these keys say. */
static void note_rollout_size(struct roost_config *config)
{
    enum { SIZE_MOST = 1024 };
    static const char *const keys[] = {"tensor_parallel_size", "pipeline_parallel_size"};
    const struct node *rollout = node_get(config->root, SV("rollout"));
    config->rollout_size = 1;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct node *node =
            rollout && rollout->kind == NODE_MAPPING ? node_get(rollout, sv_from(keys[i])) : NULL;
        int64_t size;
        if (!node || node->kind != NODE_SCALAR ||
            number_parse(node->text, SIZE_MOST, &size) != NUMBER_OK || size < 2)
            continue;
        if (config->rollout_size == 1)
            config->rollout_at = node_place(node);
        config->rollout_size *= size;
    }
}

static void read_sections(struct roost_config *config, const struct roost_config_options *options,
                          struct diag *diag)
{
    struct reader reader = {
        .config = config,
        .arena = &config->arena,
        .diag = diag,
        .is_composed = options->is_composed,
        .leaves_defaults = !options->follow_defaults,
        .resolver = {.arena = &config->arena,
                     .root = config->root,
                     .env = options->env,
                     .read = &config->env_read,
                     .secrets = &config->secrets,
                     .diag = diag},
    };
    if (options->line_key_count && !secret_look_for(&reader.resolver))
        return;
    const struct node *cluster = read_key(&reader, config->root, "cluster");
    const struct node *written = node_get(config->root, SV("cluster"));
    if (cluster) {
        section_cluster(&reader, cluster);
    } else if (!written && options->takes_placement_groups_alone &&
               has_placement_groups(config->root)) {
        /* A job of placement groups alone: nothing is placed by component. */
    } else if (!written || (written->resolved && node_is_null(written->resolved))) {
        diag_error(diag, ROOST_ERR_SCHEMA, node_place(config->root),
                   "Missing fields '['cluster']' detected in the config");
        if (node_get(config->root, SV("component_placement")))
            diag_hint(
                diag,
                "'component_placement' stands at the top level: indent it, and what goes with "
                "it, below 'cluster:'");
        else if (node_get(config->root, SV("defaults")) && !options->follow_defaults)
            diag_hint(diag, "it may be in a file that 'defaults' names: pass --hydra");
        else
            hint_cluster(config->root, diag);
    }
    const struct node *roost = read_key(&reader, config->root, "roost");
    if (roost)
        section_roost(&reader, roost);
    config->is_mode_chosen = !options->follows_mode;
    note_rollout_size(config);
    if (options->reads_model || (options->follows_mode && config->is_model_parallel))
        config->model = model_settings_read(&reader);
}

struct diag config_diag(const struct roost_config *config, struct roost_report *report,
                        struct roost_error *err)
{
    struct diag diag = diag_start(report, err);
    diag.secrets = config ? &config->secrets : NULL;
    return diag;
}

static struct roost_config *load(const struct roost_config_options *options,
                                 struct roost_report *report, struct roost_error *err,
                                 bool is_lenient)
{
    struct roost_config *config = calloc(1, sizeof *config);
    struct diag diag = config_diag(config, report, err);
    if (!config) {
        diag_nomem(&diag);
        return NULL;
    }
    bool has_tree = load_text(config, options, &diag) && load_tree(config, options, &diag);
    if (has_tree)
        read_sections(config, options, &diag);
    bool is_usable = is_lenient ? has_tree && diag.first != ROOST_ERR_MEMORY : diag.errors == 0;
    if (is_usable)
        return config;
    roost_config_free(config);
    return NULL;
}

struct roost_config *roost_config_load(const struct roost_config_options *options,
                                       struct roost_report *report, struct roost_error *err)
{
    return load(options, report, err, false);
}

struct roost_config *roost_config_load_lenient(const struct roost_config_options *options,
                                               struct roost_report *report, struct roost_error *err)
{
    return load(options, report, err, true);
}

void roost_config_free(struct roost_config *config)
{
    if (!config)
        return;
    arena_release(&config->arena);
    free(config);
}

const char *roost_config_text(const struct roost_config *config, size_t *out_len)
{
    *out_len = config->source.text.len;
    return config->source.text.at;
}

int32_t roost_config_num_nodes(const struct roost_config *config)
{
    return config->num_nodes;
}

const char *roost_config_mode(const struct roost_config *config)
{
    if (!config->has_mode)
        return NULL;
    return config->is_model_parallel ? "model-parallel" : "hybrid";
}

const char *roost_config_engine(const struct roost_config *config)
{
    if (!config->has_engine)
        return NULL;
    return config->engine == ENGINE_RAY ? "ray" : "local";
}

const char *roost_config_ray_address(const struct roost_config *config)
{
    return config->ray_address;
}

bool roost_config_ray_reserves(const struct roost_config *config)
{
    return !config->is_unreserved;
}

const char *roost_config_cluster(const struct roost_config *config)
{
    return config->cluster;
}

size_t roost_config_component_count(const struct roost_config *config)
{
    return (size_t)config->component_count;
}

const char *roost_config_component(const struct roost_config *config, size_t index)
{
    return index < (size_t)config->component_count ? config->components[index].name : NULL;
}

size_t roost_config_component_rule(const struct roost_config *config, size_t index)
{
    return index < (size_t)config->component_count ? (size_t)config->components[index].rule : 0;
}

size_t roost_config_env_count(const struct roost_config *config)
{
    return config->env_read.count;
}

const char *roost_config_env(const struct roost_config *config, size_t index)
{
    return index < config->env_read.count ? config->env_read.names[index] : NULL;
}
