/* section_bundles.c - roost.groups: the arguments of placement groups, by slime's names. Reads, says
 * what cannot be read, and decides nothing: which default holds depends on the other arguments. */
#include <stdio.h>

#include "base/amount.h"
#include "config/bundle_settings.h"
#include "config/sections.h"

enum { PORT_MAX = 65535, BLOCK_MAX = 4096 };

static const struct {
    const char *key;
    size_t at;
    int32_t min, max;
} counts[] = {
#define COUNT(name, min, max) {#name, offsetof(struct bundle_settings, name), min, max}
    COUNT(actor_num_nodes, 0, BUNDLE_GPUS_MAX),
    COUNT(actor_num_gpus_per_node, 0, BUNDLE_GPUS_MAX),
    COUNT(rollout_num_gpus, 0, BUNDLE_GPUS_MAX),
    COUNT(rollout_num_gpus_per_engine, 1, BUNDLE_GPUS_MAX),
    COUNT(num_gpus_per_node, 1, 1024),
    COUNT(prefill_num_servers, 0, BUNDLE_GPUS_MAX),
    COUNT(sglang_dp_size, 1, BLOCK_MAX),
    COUNT(port_base, 1024, PORT_MAX),
    COUNT(dist_init_ports, 0, BLOCK_MAX),
    COUNT(num_http_posters, 0, BUNDLE_GPUS_MAX),
#undef COUNT
};

static const struct {
    const char *key;
    size_t at;
} flags[] =
    {
#define FLAG(name) {#name, offsetof(struct bundle_settings, name)}
        FLAG(colocate),    FLAG(debug_train_only), FLAG(debug_rollout_only), FLAG(rollout_external),
        FLAG(use_critic),  FLAG(offload_train),    FLAG(offload_rollout),    FLAG(release_train),
        FLAG(train_async), FLAG(share_gpu_ids),
#undef FLAG
    },
  amounts[] =
      {
#define AMOUNT(name) {#name, offsetof(struct bundle_settings, name)}
          AMOUNT(num_gpus_per_actor),
          AMOUNT(num_gpus_per_part),
#undef AMOUNT
      },
  words[] = {
#define WORD(name) {#name, offsetof(struct bundle_settings, name)}
      WORD(advantage_estimator),
      WORD(load_debug_rollout_data),
      WORD(hf_checkpoint),
#undef WORD
  };

static const char *const other_keys[] = {
    "profile", "colocate_size", "sglang", "sglang_config", "rollout_external_engine_addrs",
};

#define COUNT_OF(table) (sizeof(table) / sizeof *(table))
#define FIELD(T, out, offset) ((T *)(void *)((char *)(out) + (offset)))

static const char *naming(char *out, size_t size, const char *key)
{
    snprintf(out, size, "'%s'", key);
    return out;
}

void bundle_read_count(struct reader *reader, const struct node *node, const char *key, int32_t min,
                       int32_t max, struct count_setting *out)
{
    char what[64];
    if (!read_int(reader, node, naming(what, sizeof what, key), min, max, &out->value)) {
        reader->config->bundles->is_broken = true;
        return;
    }
    out->is_set = true;
    out->at = node_place(node);
}

void bundle_read_flag(struct reader *reader, const struct node *node, const char *key,
                      struct flag_setting *out)
{
    char what[64];
    if (!read_bool(reader, node, naming(what, sizeof what, key), &out->value)) {
        reader->config->bundles->is_broken = true;
        return;
    }
    out->is_set = true;
    out->at = node_place(node);
}

static void read_amount(struct reader *reader, const struct node *node, const char *key,
                        struct amount_setting *out)
{
    enum amount_result result = AMOUNT_MALFORMED;
    if (node->kind == NODE_SCALAR)
        result = amount_parse(node->text, AMOUNT_ONE, &out->value);
    if (result == AMOUNT_OK && out->value > 0) {
        out->is_set = true;
        out->at = node_place(node);
        return;
    }
    reader->config->bundles->is_broken = true;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
               result == AMOUNT_TOO_FINE
                   ? "'%s' has more than four decimals: '%s'"
                   : "'%s' must be a share of one GPU, above 0 and at most 1, not '%s'",
               key, node->kind == NODE_SCALAR ? quote(node->text).text : "a list or mapping");
    diag_hint(reader->diag, "write a decimal number such as 0.4");
}

/* One of two words; *out says whether it is the second. */
static bool read_either(struct reader *reader, const struct node *node, const char *key,
                        const char *first, const char *second, bool *out)
{
    char what[64];
    struct word word;
    if (!read_word(reader, node, naming(what, sizeof what, key), &word))
        return false;
    *out = sv_is(word.text, second);
    if (*out || sv_is(word.text, first))
        return true;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "'%s' must be %s or %s, not '%s'", key,
               first, second, quote(word.text).text);
    diag_hint(reader->diag, "leave it out for %s", first);
    return false;
}

bool bundle_is_off(const struct node *node)
{
    return node->kind == NODE_SCALAR && (node->text.len == 0 || sv_is_nocase(node->text, "false"));
}

static void read_tables(struct reader *reader, const struct node *groups,
                        struct bundle_settings *out)
{
    const struct node *node;
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if ((node = read_key(reader, groups, counts[i].key)))
            bundle_read_count(reader, node, counts[i].key, counts[i].min, counts[i].max,
                              FIELD(struct count_setting, out, counts[i].at));
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        if ((node = read_key(reader, groups, flags[i].key)))
            bundle_read_flag(reader, node, flags[i].key,
                             FIELD(struct flag_setting, out, flags[i].at));
    for (size_t i = 0; i < COUNT_OF(amounts); i++)
        if ((node = read_key(reader, groups, amounts[i].key)))
            read_amount(reader, node, amounts[i].key,
                        FIELD(struct amount_setting, out, amounts[i].at));
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        char what[64];
        node = read_key(reader, groups, words[i].key);
        if (node && !bundle_is_off(node) &&
            !read_word(reader, node, naming(what, sizeof what, words[i].key),
                       FIELD(struct word, out, words[i].at)))
            out->is_broken = true;
    }
}

const char *bundle_key(size_t index, enum bundle_key_kind *out_kind)
{
    *out_kind = BUNDLE_KEY_VALUE;
    if (index < COUNT_OF(counts))
        return counts[index].key;
    index -= COUNT_OF(counts);
    if (index < COUNT_OF(flags)) {
        *out_kind = BUNDLE_KEY_FLAG;
        return flags[index].key;
    }
    index -= COUNT_OF(flags);
    if (index < COUNT_OF(amounts))
        return amounts[index].key;
    index -= COUNT_OF(amounts);
    if (index < COUNT_OF(words))
        return words[index].key;
    index -= COUNT_OF(words);
    if (index >= COUNT_OF(other_keys))
        return NULL;
    /* The external engines come last. */
    *out_kind = index + 1 < COUNT_OF(other_keys) ? BUNDLE_KEY_VALUE : BUNDLE_KEY_LIST;
    return other_keys[index];
}

/* A word of the seed's that means something else one level further down. */
static void check_keys(struct reader *reader, const struct node *groups)
{
    const char *known[COUNT_OF(counts) + COUNT_OF(flags) + COUNT_OF(amounts) + COUNT_OF(words) +
                      COUNT_OF(other_keys) + 1];
    enum bundle_key_kind kind;
    size_t count = 0;
    while ((known[count] = bundle_key(count, &kind)))
        count++;
    for (int32_t i = 0; i < groups->count; i++) {
        const struct node *key = groups->pairs[i].key;
        if (is_known_key(key, known))
            continue;
        say_unknown(reader, key, "roost.groups");
        if (sv_is(key->text, "num_gpus_per_engine"))
            diag_hint(reader->diag,
                      "GPUs of an engine are rollout_num_gpus_per_engine; what a part "
                      "takes of its GPU is num_gpus_per_part");
        else
            hint_known(reader, groups, key->text, known);
    }
}

static void read_lists(struct reader *reader, const struct node *groups,
                       struct bundle_settings *out)
{
    const struct node *list = read_key(reader, groups, "sglang");
    const struct node *path = read_key(reader, groups, "sglang_config");
    const struct node *external = read_key(reader, groups, "rollout_external_engine_addrs");
    if (path && bundle_is_off(path))
        path = NULL;
    if (list && path) {
        out->is_broken = true;
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(path),
                   "'sglang' and 'sglang_config' both say which servers there are");
        diag_hint(reader->diag, "keep one of them");
    } else if (list) {
        bundle_read_models(reader, list, out);
    } else if (path) {
        bundle_read_models_file(reader, path, out);
    }
    if (external)
        bundle_read_external(reader, external, out);
}

/* What is wrong with the whole is reported at its key, not at whatever comes first below it. */
static struct place key_place(const struct node *roost)
{
    for (int32_t i = 0; i < roost->count; i++)
        if (sv_is(roost->pairs[i].key->text, "groups"))
            return node_place(roost->pairs[i].key);
    return node_place(roost);
}

void section_bundles(struct reader *reader, const struct node *roost, const struct node *groups)
{
    struct bundle_settings *out = read_array(reader, struct bundle_settings, 1);
    if (!out)
        return;
    reader->config->bundles = out;
    out->is_broken = !want_mapping(reader, groups, "'groups'");
    if (out->is_broken)
        return;
    out->at = key_place(roost);
    check_keys(reader, groups);
    read_tables(reader, groups, out);
    const struct node *node = read_key(reader, groups, "profile");
    bool is_second = false;
    if (node && !read_either(reader, node, "profile", "present", "seed", &out->is_seed))
        out->is_broken = true;
    out->profile_at = node ? node_place(node) : out->at;
    node = read_key(reader, groups, "colocate_size");
    if (node && read_either(reader, node, "colocate_size", "max", "actor", &is_second)) {
        out->has_colocate_size = true;
        out->colocate_size = is_second ? COLOCATE_SIZE_ACTOR : COLOCATE_SIZE_MAX;
    } else if (node) {
        out->is_broken = true;
    }
    read_lists(reader, groups, out);
}

bool roost_config_has_placement_groups(const struct roost_config *config)
{
    return config->bundles != NULL;
}
