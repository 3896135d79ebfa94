/* section_roost.c - the `roost` section: everything that is ours and not RLinf's. */
#include "base/bytes.h"
#include "base/duration.h"
#include "config/sections.h"

/* The index of the choice that was made; 0 after it reported that it is none. */
static int read_choice(struct reader *reader, const struct node *node, const char *what,
                       const char *const *choices)
{
    struct word word;
    if (!read_word(reader, node, what, &word))
        return 0;
    for (const char *const *choice = choices; *choice; choice++)
        if (sv_is(word.text, *choice))
            return (int)(choice - choices);
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "%s cannot be '%s'", what,
               quote(word.text).text);
    diag_hint(reader->diag, "write '%s' or '%s'", choices[0], choices[1]);
    return 0;
}

static void read_age(struct reader *reader, const struct node *node)
{
    struct word word;
    struct roost_prune_limits *keep = &reader->config->logs_keep;
    if (!read_word(reader, node, "'age'", &word))
        return;
    keep->has_age = duration_parse(word.text, &keep->age);
    if (keep->has_age)
        return;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "'age' cannot be '%s'",
               quote(word.text).text);
    diag_hint(reader->diag, "write a whole number and s, m, h, d or w: 30d");
}

static void read_size(struct reader *reader, const struct node *node)
{
    struct word word;
    struct roost_prune_limits *keep = &reader->config->logs_keep;
    if (!read_word(reader, node, "'size'", &word))
        return;
    keep->has_size = bytes_parse(word.text, &keep->size);
    if (keep->has_size)
        return;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "'size' cannot be '%s'",
               quote(word.text).text);
    diag_hint(reader->diag, "write a whole number and K, M, G or T: 10G");
}

static void read_keep(struct reader *reader, const struct node *keep)
{
    int32_t count;
    if (!want_mapping(reader, keep, "'keep'"))
        return;
    want_keys(reader, keep, KEYS("age", "count", "size"), "roost.logs.keep");
    const struct node *node = read_key(reader, keep, "age");
    if (node)
        read_age(reader, node);
    node = read_key(reader, keep, "count");
    if (node && read_int(reader, node, "'count'", 0, INT32_MAX, &count)) {
        reader->config->logs_keep.has_count = true;
        reader->config->logs_keep.count = count;
    }
    node = read_key(reader, keep, "size");
    if (node)
        read_size(reader, node);
}

static void read_logs(struct reader *reader, const struct node *logs)
{
    if (!want_mapping(reader, logs, "'logs'"))
        return;
    want_keys(reader, logs, KEYS("dir", "keep"), "roost.logs");
    const struct node *node = read_key(reader, logs, "dir");
    if (node)
        read_word(reader, node, "'dir'", &reader->config->logs_dir);
    node = read_key(reader, logs, "keep");
    if (node)
        read_keep(reader, node);
}

static void read_ray(struct reader *reader, const struct node *ray)
{
    struct word address;
    bool reserve;
    struct roost_config *config = reader->config;
    if (!want_mapping(reader, ray, "'ray'"))
        return;
    want_keys(reader, ray, KEYS("address", "reserve"), "roost.ray");
    const struct node *node = read_key(reader, ray, "address");
    if (node && read_word(reader, node, "'address'", &address))
        config->ray_address = read_copy(reader, address.text);
    node = read_key(reader, ray, "reserve");
    if (node && read_bool(reader, node, "'reserve'", &reserve))
        config->is_unreserved = !reserve;
}

void section_roost(struct reader *reader, const struct node *roost)
{
    if (!want_mapping(reader, roost, "'roost'"))
        return;
    want_keys(reader, roost, KEYS("cluster", "engine", "mode", "launch", "logs", "ray", "groups"),
              "roost");
    struct word cluster;
    const struct node *node = read_key(reader, roost, "cluster");
    if (node && read_word(reader, node, "'cluster'", &cluster)) {
        reader->config->cluster = read_copy(reader, cluster.text);
        reader->config->cluster_at = cluster.at;
    }
    node = read_key(reader, roost, "engine");
    if (node) {
        reader->config->engine =
            (enum engine)read_choice(reader, node, "'engine'", KEYS("local", "ray"));
        reader->config->has_engine = true;
    }
    node = read_key(reader, roost, "mode");
    if (node) {
        reader->config->is_model_parallel =
            read_choice(reader, node, "'mode'", KEYS("hybrid", "model-parallel")) == 1;
        reader->config->has_mode = true;
    }
    node = read_key(reader, roost, "launch");
    if (node)
        section_launch(reader, node);
    node = read_key(reader, roost, "logs");
    if (node)
        read_logs(reader, node);
    node = read_key(reader, roost, "ray");
    if (node)
        read_ray(reader, node);
    node = read_key(reader, roost, "groups");
    if (node)
        section_bundles(reader, roost, node);
}
