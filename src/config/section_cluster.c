/* section_cluster.c - the keys of `cluster` and the components it places. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "config/sections.h"
#include "config/yaml11.h"

/* Whether the key was meant to be there, and what is wrong with it was reported. */
static bool is_meant(const struct reader *reader, const struct node *mapping, const char *key)
{
    const struct node *written = node_get(mapping, sv_from(key));
    if (written && !(written->resolved && node_is_null(written->resolved)))
        return true; /* what it stands for could not be had */
    for (size_t i = 0; i < sizeof reader->slips / sizeof *reader->slips; i++)
        if (reader->slips[i].mapping == mapping && strcmp(reader->slips[i].meant, key) == 0)
            return true;
    return false;
}

void say_missing(struct reader *reader, const struct node *mapping, const char *key,
                 const char *what)
{
    if (reader->resolver.is_exhausted || is_meant(reader, mapping, key))
        return;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(mapping),
               "Missing fields '['%s']' detected in %s", key, what);
    if (reader->leaves_defaults && node_get(reader->config->root, SV("defaults")))
        diag_hint(reader->diag, "it may be in a file that 'defaults' names: pass --hydra");
    else
        diag_hint(reader->diag, "add '%s:'", key);
}

static bool add_ranks(struct reader *reader, const struct node *node, struct rankset *out)
{
    yaml11_warn_number(node, reader->diag);
    return rankset_add(out, reader->arena, node->text, node_place(node), reader->diag) == ROOST_OK;
}

bool read_ranks(struct reader *reader, const struct node *node, const char *what,
                struct rankset *out)
{
    if (node->kind == NODE_MAPPING) {
        diag_error(reader->diag, ROOST_ERR_RANK, node_place(node),
                   "Invalid rank format: %s is a number, a text such as 0-3,5 or a list", what);
        diag_hint(reader->diag, "write 0-3, 'all' or [0, 1]");
        return false;
    }
    bool is_good = node->kind == NODE_SEQUENCE || add_ranks(reader, node, out);
    for (int32_t i = 0; node->kind == NODE_SEQUENCE && i < node->count; i++) {
        const struct node *item = read_value(reader, node->items[i]);
        if (item && item->kind != NODE_SCALAR) {
            diag_error(reader->diag, ROOST_ERR_RANK, node_place(item),
                       "Invalid rank format: a list of ranks holds numbers and ranges only");
            diag_hint(reader->diag, "write [0, 1, 4-7]");
        }
        is_good = item && item->kind == NODE_SCALAR && add_ranks(reader, item, out) && is_good;
    }
    rankset_settle(out);
    return is_good;
}

static void read_num_nodes(struct reader *reader, const struct node *cluster)
{
    const struct node *node = read_key(reader, cluster, "num_nodes");
    if (!node) {
        say_missing(reader, cluster, "num_nodes", "cluster");
        return;
    }
    int64_t value = 0;
    if (node->kind != NODE_SCALAR ||
        number_parse(node->text, ROOST_RANK_MAX, &value) != NUMBER_OK || value < 1) {
        const char *mark = node->kind == NODE_SCALAR ? "'" : "";
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
                   "'num_nodes' must be a positive integer, not %s%s%s", mark,
                   node->kind == NODE_SCALAR ? quote(node->text).text : "a list or mapping", mark);
        diag_hint(reader->diag, "write the number of nodes, such as 2");
        return;
    }
    if (node->is_quoted) {
        diag_warn(reader->diag, ROOST_WARN_REFERENCE_REFUSES, node_place(node),
                  "num_nodes is in quotes; RLinf takes only a bare number");
        diag_hint(reader->diag, "write num_nodes: %d", (int)value);
    }
    yaml11_warn_number(node, reader->diag);
    reader->config->num_nodes = (int32_t)value;
    reader->config->num_nodes_at = node_place(node);
}

/* Ranks, or a mapping with some: what a component has. */
static bool looks_placed(struct reader *reader, const struct node *value)
{
    struct rankset ranks = {0};
    struct diag quiet = diag_start(NULL, NULL);
    if (value->kind != NODE_SCALAR)
        return node_get(value, SV("placement")) != NULL;
    struct strview first = sv_sub(value->text, 0, sv_find(value->text, ':', 0));
    return value->text.len > 0 &&
           rankset_read(&ranks, reader->arena, first, NOWHERE, &quiet) == ROOST_OK;
}

/* The key is there, but nothing is below it: most likely its components are not indented. */
static void say_empty_placement(struct reader *reader, const struct node *cluster)
{
    const struct node *key = cluster->pairs[0].key;
    for (int32_t i = 0; i < cluster->count; i++)
        if (sv_is(cluster->pairs[i].key->text, "component_placement"))
            key = cluster->pairs[i].key;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(key),
               "'component_placement' has nothing below it");
    diag_hint(reader->diag, "indent the components below it, such as 'actor: 0-7'");
}

static void say_no_placement(struct reader *reader, const struct node *cluster)
{
    size_t errors = reader->diag->errors;
    say_missing(reader, cluster, "component_placement", "cluster");
    if (reader->diag->errors > errors && node_get(reader->config->root, SV("component_placement")))
        diag_hint(reader->diag, "it stands at the top level: indent it below 'cluster:'");
}

/* A key that is not known may be a component put in the wrong place, as an old document shows it. */
static void check_cluster_keys(struct reader *reader, const struct node *cluster)
{
    const char *const *known =
        KEYS("num_nodes", "component_placement", "node_groups", "profiling", "net_emulation",
             "tracer", "auto_scheduler", "use_pre_process_policy",
             "use_wait_before_last_iter_policy", "recreate_nccl_groups");
    for (int32_t i = 0; i < cluster->count; i++) {
        const struct node *key = cluster->pairs[i].key, *value = cluster->pairs[i].value;
        if (is_known_key(key, known))
            continue;
        say_unknown(reader, key, "cluster");
        if (is_known_key(key, KEYS("label", "node_ranks", "env_configs", "hardware",
                                   "hardware_type", "ignore_hardware")))
            diag_hint(reader->diag, "it belongs to an entry of 'node_groups'");
        else if (looks_placed(reader, value) && !nearest_word(key->text, known))
            diag_hint(reader->diag,
                      "a component is placed under 'component_placement': move '%s' there",
                      quote(key->text).text);
        else
            hint_known(reader, cluster, key->text, known);
    }
}

void section_cluster(struct reader *reader, const struct node *cluster)
{
    if (!want_mapping(reader, cluster, "'cluster'"))
        return;
    check_cluster_keys(reader, cluster);
    read_num_nodes(reader, cluster);
    const struct node *groups = read_key(reader, cluster, "node_groups");
    if (groups)
        section_node_groups(reader, groups);
    struct node *written = node_get(cluster, SV("component_placement"));
    const struct node *placement = written ? read_value(reader, written) : NULL;
    if (!written)
        say_no_placement(reader, cluster);
    else if (placement && node_is_null(placement))
        say_empty_placement(reader, cluster);
    else if (placement)
        section_components(reader, placement);
}
