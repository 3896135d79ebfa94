/* section_roost.c - the `roost` section: everything that is ours and not RLinf's. */
#include "config/sections.h"

static bool read_choice(struct reader *reader, const struct node *node, const char *what,
                        const char *const *choices)
{
    struct word word;
    if (!read_word(reader, node, what, &word))
        return false;
    for (const char *const *choice = choices; *choice; choice++)
        if (sv_is(word.text, *choice))
            return true;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "%s cannot be '%s'", what,
               quote(word.text).text);
    diag_hint(reader->diag, "write '%s' or '%s'", choices[0], choices[1]);
    return false;
}

static void read_logs(struct reader *reader, const struct node *logs)
{
    struct word dir;
    if (!want_mapping(reader, logs, "'logs'"))
        return;
    want_keys(reader, logs, KEYS("dir"), "roost.logs");
    const struct node *node = read_key(reader, logs, "dir");
    if (node)
        read_word(reader, node, "'dir'", &dir);
}

static void read_ray(struct reader *reader, const struct node *ray)
{
    struct word address;
    bool reserve;
    if (!want_mapping(reader, ray, "'ray'"))
        return;
    want_keys(reader, ray, KEYS("address", "reserve"), "roost.ray");
    const struct node *node = read_key(reader, ray, "address");
    if (node)
        read_word(reader, node, "'address'", &address);
    node = read_key(reader, ray, "reserve");
    if (node)
        read_bool(reader, node, "'reserve'", &reserve);
}

void section_roost(struct reader *reader, const struct node *roost)
{
    if (!want_mapping(reader, roost, "'roost'"))
        return;
    want_keys(reader, roost, KEYS("cluster", "engine", "launch", "logs", "ray", "groups"), "roost");
    struct word cluster;
    const struct node *node = read_key(reader, roost, "cluster");
    if (node && read_word(reader, node, "'cluster'", &cluster)) {
        reader->config->cluster = read_copy(reader, cluster.text);
        reader->config->cluster_at = cluster.at;
    }
    node = read_key(reader, roost, "engine");
    if (node)
        read_choice(reader, node, "'engine'", KEYS("local", "ray"));
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
        want_mapping(reader, node, "'groups'");
}
