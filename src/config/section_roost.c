/* section_roost.c - the `roost` section: everything that is ours and not RLinf's. */
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

static void read_logs(struct reader *reader, const struct node *logs)
{
    if (!want_mapping(reader, logs, "'logs'"))
        return;
    want_keys(reader, logs, KEYS("dir"), "roost.logs");
    const struct node *node = read_key(reader, logs, "dir");
    if (node)
        read_word(reader, node, "'dir'", &reader->config->logs_dir);
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
