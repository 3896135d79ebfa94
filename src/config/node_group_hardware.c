/* node_group_hardware.c - hardware of a node group: robots that the config declares to be there. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "config/hardware.h"
#include "config/sections.h"

enum { ROBOTS_MAX = 4096 };

static bool is_ip(struct strview text)
{
    char copy[INET6_ADDRSTRLEN];
    unsigned char address[sizeof(struct in6_addr)];
    if (text.len >= sizeof copy)
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return inet_pton(AF_INET, copy, address) == 1 || inet_pton(AF_INET6, copy, address) == 1;
}

static bool is_choice(struct strview text, const char *const *choices)
{
    for (; *choices; choices++)
        if (sv_is(text, *choices))
            return true;
    return false;
}

static void check_field(struct reader *reader, const struct hardware_field *field,
                        const struct node *value)
{
    char what[64];
    snprintf(what, sizeof what, "'%s'", field->name);
    struct word word;
    int32_t number;
    bool truth;
    if (!want_open(reader, value, what)) /* plans show robots with all their fields */
        return;
    switch (field->kind) {
    case FIELD_INT: read_int(reader, value, what, 0, ROOST_RANK_MAX, &number); return;
    case FIELD_BOOL: read_bool(reader, value, what, &truth); return;
    case FIELD_LIST:
        if (value->kind == NODE_MAPPING)
            want_sequence(reader, value, what);
        for (int32_t i = 0; value->kind == NODE_SEQUENCE && i < value->count; i++) {
            const struct node *item = read_value(reader, value->items[i]);
            if (item)
                read_word(reader, item, what, &word);
        }
        return;
    case FIELD_IP:
    case FIELD_TEXT: break;
    }
    if (!read_word(reader, value, what, &word))
        return;
    if (field->kind == FIELD_IP && !is_ip(word.text)) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "'%s' is not an IP address",
                   quote(word.text).text);
        diag_hint(reader->diag, "write one such as 192.168.1.10");
    } else if (field->choices && !is_choice(word.text, field->choices)) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, word.at, "%s cannot be '%s'", what,
                   quote(word.text).text);
        hint_known(reader, NULL, word.text, field->choices);
    }
}

static void check_fields(struct reader *reader, const struct hardware_type *type,
                         const struct node *config)
{
    const char *known[24] = {NULL};
    for (size_t i = 0; type->fields[i].name; i++)
        known[i] = type->fields[i].name;
    want_keys(reader, config, known, type->name);
    for (int32_t i = 0; i < config->count; i++) {
        const struct hardware_field *field = hardware_field_find(type, config->pairs[i].key->text);
        const struct node *value = field ? read_value(reader, config->pairs[i].value) : NULL;
        if (value && !node_is_null(value) && strcmp(field->name, "node_rank") != 0)
            check_field(reader, field, value);
    }
}

static bool has_node(const struct reader *reader, const struct node_group_config *group,
                     int64_t rank)
{
    if (!group->has_ranks)
        return true;
    if (group->node_ranks.is_all)
        return reader->config->num_nodes == 0 || rank < reader->config->num_nodes;
    return rankset_has(&group->node_ranks, (int32_t)rank);
}

static void read_robot(struct reader *reader, const struct node *config,
                       const struct hardware_type *type, struct node_group_config *group)
{
    if (config->kind != NODE_MAPPING) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(config),
                   "Each hardware config must be a dictionary, with at least node_rank");
        diag_hint(reader->diag, "write '- node_rank: 0', and its other fields below that");
        return;
    }
    check_fields(reader, type, config);
    const struct node *node = read_key(reader, config, "node_rank");
    if (!node) {
        say_missing(reader, config, "node_rank", type->name);
        return;
    }
    int32_t rank;
    if (!read_int(reader, node, "'node_rank'", 0, ROOST_RANK_MAX, &rank))
        return;
    if (!has_node(reader, group, rank)) {
        diag_error(reader->diag, ROOST_ERR_FIT, node_place(node),
                   "node_rank %d of this %s must be within node_ranks of its node group '%s'",
                   (int)rank, type->name, group->label ? group->label : "?");
        diag_hint(reader->diag,
                  group->node_ranks.is_all
                      ? "name a node of the group, or raise num_nodes beyond %d"
                      : "name a node of the group, or add node %d to its node_ranks",
                  (int)rank);
        return;
    }
    group->robots[group->robot_count++] = (struct robot){rank, config, node_place(config)};
}

/* The same fields with the same texts, in any order. */
static bool is_same(const struct node *a, const struct node *b)
{
    if (a->kind != b->kind || (a->kind != NODE_SCALAR && a->count != b->count))
        return false;
    if (a->kind == NODE_SCALAR)
        return sv_equal(a->text, b->text);
    for (int32_t i = 0; i < a->count; i++) {
        const struct node *left = a->kind == NODE_MAPPING ? a->pairs[i].value : a->items[i];
        const struct node *right =
            a->kind == NODE_MAPPING ? node_get(b, a->pairs[i].key->text) : b->items[i];
        if (!right || !is_same(left, right))
            return false;
    }
    return true;
}

static void check_distinct(struct reader *reader, const struct node_group_config *group)
{
    for (int32_t i = 1; i < group->robot_count; i++) {
        for (int32_t k = 0; k < i; k++) {
            const struct robot *early = &group->robots[k], *late = &group->robots[i];
            if (early->node_rank != late->node_rank || !is_same(early->config, late->config))
                continue;
            diag_error(reader->diag, ROOST_ERR_SCHEMA, late->at,
                       "Duplicate hardware configs: this one is the same as the one at %s",
                       place_name(early->at).text);
            diag_hint(reader->diag, "remove one, or tell them apart by a field");
            break;
        }
    }
}

void node_group_hardware(struct reader *reader, struct node_group_config *group,
                         const struct node *hardware)
{
    if (!want_mapping(reader, hardware, "'hardware'"))
        return;
    want_keys(reader, hardware, KEYS("type", "configs"), "hardware");
    const struct node *type_node = read_key(reader, hardware, "type");
    const struct node *configs = read_key(reader, hardware, "configs");
    if (!type_node)
        say_missing(reader, hardware, "type", "hardware");
    if (!configs)
        say_missing(reader, hardware, "configs", "hardware");
    if (!type_node || !configs || !read_word(reader, type_node, "'type'", &group->hardware_type))
        return;
    const struct hardware_type *type = hardware_type_find(group->hardware_type.text);
    if (!type) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, group->hardware_type.at,
                   "Unsupported hardware type '%s'", quote(group->hardware_type.text).text);
        diag_hint(reader->diag, "supported are DOSW1, DualFranka, Franka, GimArm and Turtle2; "
                                "accelerators are found, not declared");
        return;
    }
    if (!want_sequence(reader, configs, "'configs'"))
        return;
    if (configs->count > ROBOTS_MAX) {
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(configs), "more than %d robots",
                   ROBOTS_MAX);
        diag_hint(reader->diag, "declare the robots of some nodes in a node group of their own");
        return;
    }
    group->robots = read_array(reader, struct robot, configs->count);
    for (int32_t i = 0; group->robots && i < configs->count; i++) {
        const struct node *config = read_value(reader, configs->items[i]);
        if (config)
            read_robot(reader, config, type, group);
    }
    if (group->robots)
        check_distinct(reader, group);
}

/* A (type, node) pair and the group that declares robots there. */
struct owner {
    struct strview type;
    int32_t node_rank;
    int32_t group;
    const struct robot *robot;
};

static int by_owner(const void *a, const void *b)
{
    const struct owner *left = a, *right = b;
    int order = sv_compare(left->type, right->type);
    if (order)
        return order;
    if (left->node_rank != right->node_rank)
        return left->node_rank < right->node_rank ? -1 : 1;
    return (left->group > right->group) - (left->group < right->group);
}

void node_groups_check_robots(struct reader *reader)
{
    const struct roost_config *config = reader->config;
    size_t count = 0;
    for (int32_t g = 0; g < config->node_group_count; g++)
        count += (size_t)config->node_groups[g].robot_count;
    if (count < 2)
        return;
    struct owner *owners = read_array(reader, struct owner, count);
    if (!owners)
        return;
    count = 0;
    for (int32_t g = 0; g < config->node_group_count; g++)
        for (int32_t r = 0; r < config->node_groups[g].robot_count; r++)
            owners[count++] = (struct owner){config->node_groups[g].hardware_type.text,
                                             config->node_groups[g].robots[r].node_rank, g,
                                             &config->node_groups[g].robots[r]};
    qsort(owners, count, sizeof *owners, by_owner);
    for (size_t i = 1; i < count; i++) {
        const struct owner *early = &owners[i - 1], *late = &owners[i];
        if (!sv_equal(early->type, late->type) || early->node_rank != late->node_rank ||
            early->group == late->group)
            continue;
        diag_error(reader->diag, ROOST_ERR_SCHEMA, late->robot->at,
                   "Cannot have multiple hardware configs for %s on node %d: groups '%s' and '%s' "
                   "both declare them",
                   quote(late->type).text, (int)late->node_rank,
                   config->node_groups[early->group].label, config->node_groups[late->group].label);
        diag_hint(reader->diag, "declare all robots of one type on a node in one group");
    }
}
