/* bundle_models.c - roost.groups.sglang: which servers run which model. The same list may stand in a
 * file of its own, below the key `sglang`. */
#include <string.h>

#include "config/bundle_settings.h"
#include "config/sections.h"
#include "config/yaml_load.h"

enum { MODELS_MAX = 1024, MODELS_BYTES_MAX = 1024 * 1024 };

bool bundle_read_type(struct reader *reader, const struct node *node, enum roost_worker_type *out)
{
    static const char *const known[] = {"regular", "prefill",     "decode",
                                        "encoder", "placeholder", NULL};
    struct word word;
    if (!read_word(reader, node, "'worker_type'", &word))
        return false;
    for (int i = 0; known[i]; i++) {
        if (sv_is(word.text, known[i])) {
            *out = (enum roost_worker_type)i;
            return true;
        }
    }
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "there is no worker type '%s'",
               quote(word.text).text);
    hint_known(reader, NULL, word.text, known);
    return false;
}

static void read_servers(struct reader *reader, const struct node *item, struct bundle_servers *out)
{
    struct bundle_settings *settings = reader->config->bundles;
    if (!want_mapping(reader, item, "an entry of 'server_groups'")) {
        settings->is_broken = true;
        return;
    }
    want_keys(reader, item, KEYS("worker_type", "num_gpus", "num_gpus_per_engine", "overrides"),
              "a server group");
    const struct node *node = read_key(reader, item, "worker_type");
    if (!node)
        say_missing(reader, item, "worker_type", "a server group");
    if (!node || !bundle_read_type(reader, node, &out->type))
        settings->is_broken = true;
    node = read_key(reader, item, "num_gpus");
    if (node) {
        bundle_read_count(reader, node, "num_gpus", 1, BUNDLE_GPUS_MAX, &out->num_gpus);
    } else {
        say_missing(reader, item, "num_gpus", "a server group");
        settings->is_broken = true;
    }
    node = read_key(reader, item, "num_gpus_per_engine");
    if (node)
        bundle_read_count(reader, node, "num_gpus_per_engine", 1, BUNDLE_GPUS_MAX,
                          &out->per_engine);
    node = read_key(reader, item, "overrides");
    if (!node)
        return;
    /* What is overridden is the server's business, but for the model it serves. */
    node = want_mapping(reader, node, "'overrides'") ? read_key(reader, node, "model_path") : NULL;
    if (node && !read_word(reader, node, "'model_path'", &out->model_path))
        settings->is_broken = true;
}

static bool read_groups(struct reader *reader, const struct node *item, struct bundle_model *out)
{
    const struct node *list = read_key(reader, item, "server_groups");
    const struct node *old = read_key(reader, item, "engine_groups");
    if (list && old) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(old),
                   "'engine_groups' is the old name of 'server_groups', and both are here");
        diag_hint(reader->diag, "keep 'server_groups'");
        return false;
    }
    list = list ? list : old;
    if (!list) {
        say_missing(reader, item, "server_groups", "a model of 'sglang'");
        return false;
    }
    if (!want_sequence(reader, list, "'server_groups'"))
        return false;
    out->groups = read_array(reader, struct bundle_servers, list->count);
    for (int32_t i = 0; out->groups && i < list->count; i++) {
        const struct node *entry = read_value(reader, list->items[i]);
        if (!entry)
            return false;
        read_servers(reader, entry, &out->groups[out->group_count++]);
    }
    return out->groups != NULL;
}

static bool read_name(struct reader *reader, const struct node *item,
                      const struct bundle_settings *settings, struct bundle_model *out)
{
    const struct node *node = read_key(reader, item, "name");
    struct word word;
    if (!node) {
        say_missing(reader, item, "name", "a model of 'sglang'");
        return false;
    }
    if (!read_word(reader, node, "'name'", &word))
        return false;
    out->at = word.at;
    if (!is_name(word.text)) {
        diag_error(reader->diag, ROOST_ERR_NAME, word.at, "'%s' cannot be the name of a model",
                   quote(word.text).text);
        diag_hint(reader->diag,
                  "a name is 1 to 63 of A-Z a-z 0-9 _ . - and does not start with . or -");
        return false;
    }
    for (int32_t i = 0; i < settings->model_count; i++) {
        if (!sv_is(word.text, settings->models[i].name))
            continue;
        diag_error(reader->diag, ROOST_ERR_NAME, word.at,
                   "two models of 'sglang' are named '%s'; the first is at line %d",
                   quote(word.text).text, (int)settings->models[i].at.line);
        diag_hint(reader->diag, "rename one of the two");
        return false;
    }
    out->name = read_copy(reader, word.text);
    return out->name != NULL;
}

static bool read_model(struct reader *reader, const struct node *item,
                       const struct bundle_settings *settings, struct bundle_model *out)
{
    if (!want_mapping(reader, item, "an entry of 'sglang'"))
        return false;
    want_keys(reader, item,
              KEYS("name", "model_path", "update_weights", "num_gpus_per_engine", "server_groups",
                   "engine_groups"),
              "a model of 'sglang'");
    bool is_good = read_name(reader, item, settings, out);
    const struct node *node = read_key(reader, item, "model_path");
    if (node)
        is_good = read_word(reader, node, "'model_path'", &out->model_path) && is_good;
    node = read_key(reader, item, "update_weights");
    if (node)
        bundle_read_flag(reader, node, "update_weights", &out->update_weights);
    node = read_key(reader, item, "num_gpus_per_engine");
    if (node)
        bundle_read_count(reader, node, "num_gpus_per_engine", 1, BUNDLE_GPUS_MAX,
                          &out->per_engine);
    return read_groups(reader, item, out) && is_good;
}

void bundle_read_models(struct reader *reader, const struct node *list, struct bundle_settings *out)
{
    out->has_models = true;
    out->models_at = node_place(list);
    if (!want_sequence(reader, list, "'sglang'")) {
        out->is_broken = true;
        return;
    }
    if (list->count > MODELS_MAX) {
        out->is_broken = true;
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(list),
                   "'sglang' lists %d models; at most %d are read", (int)list->count, MODELS_MAX);
        diag_hint(reader->diag, "put servers of one model into one entry");
        return;
    }
    out->models = read_array(reader, struct bundle_model, list->count);
    for (int32_t i = 0; out->models && i < list->count; i++) {
        const struct node *item = read_value(reader, list->items[i]);
        struct bundle_model model = {0};
        if (item && read_model(reader, item, out, &model))
            out->models[out->model_count++] = model;
        else
            out->is_broken = true;
    }
}

/* A path beside the config, unless it starts at the root. */
static const char *path_beside(struct reader *reader, struct strview path)
{
    struct strview config = sv_from(reader->config->source.name);
    if (sv_is(path, "-"))
        return "./-"; /* standard input is nobody's list of models */
    size_t folder = path.len && path.at[0] == '/' ? 0 : config.len;
    while (folder > 0 && config.at[folder - 1] != '/')
        folder--;
    char *whole = read_memory(reader, arena_array(reader->arena, char, folder + path.len + 1));
    if (!whole)
        return NULL;
    memcpy(whole, config.at, folder);
    memcpy(whole + folder, path.at, path.len);
    whole[folder + path.len] = '\0';
    return whole;
}

/* The tree of a file; NULL after it reported why. */
static struct node *load_file(struct reader *reader, const char *path, struct place at)
{
    struct source *source = read_array(reader, struct source, 1);
    if (!source)
        return NULL;
    source->name = path;
    return yaml_load_named(reader->arena, source, at, MODELS_BYTES_MAX,
                           "start the file with 'sglang:'", reader->diag);
}

void bundle_read_models_file(struct reader *reader, const struct node *path,
                             struct bundle_settings *out)
{
    struct word word;
    out->is_broken = true; /* until all went well */
    if (!read_word(reader, path, "'sglang_config'", &word))
        return;
    const char *name = path_beside(reader, word.text);
    const struct node *root = name ? load_file(reader, name, word.at) : NULL;
    size_t errors = reader->diag->errors;
    const struct node *list = root ? read_key(reader, root, "sglang") : NULL;
    if (root && !list && reader->diag->errors == errors) {
        /* The key is what proves it to be such a file: without it no line is shown. */
        struct source unread = {.name = name};
        struct place at = {.source = &unread, .line = root->line, .column = root->column};
        diag_error(reader->diag, ROOST_ERR_SCHEMA, at,
                   "a list of models stands below the key 'sglang'");
        diag_hint(reader->diag, "start the file with 'sglang:'");
    }
    if (!list)
        return;
    out->is_broken = false;
    want_keys(reader, root, KEYS("sglang"), "the file of 'sglang_config'");
    bundle_read_models(reader, list, out);
}
