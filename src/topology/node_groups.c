/* node_groups.c - puts robots on their nodes, and builds node groups with their ranks.
 *
 * A group's ranks count units of its hardware type, node by node in rising node rank; without a type
 * they count its nodes. `cluster` and `node` hold all nodes; `node` never counts hardware. */
#include <stdlib.h>
#include <string.h>

#include "config/hardware.h"
#include "topology/cluster.h"
#include "json/json_writer.h"

int32_t node_count_units(const struct cluster_node *node, struct strview type)
{
    if (sv_is(type, HARDWARE_ACCELERATOR))
        return node->accelerator_count;
    int32_t count = 0;
    for (const struct unit *unit = node->units; unit; unit = unit->next)
        count += sv_is(type, unit->type);
    return count;
}

const struct node_group *cluster_find_node_group(const struct roost_cluster *cluster,
                                                 struct strview label)
{
    for (int32_t g = 0; g < cluster->node_group_count; g++)
        if (sv_is(label, cluster->node_groups[g].label))
            return &cluster->node_groups[g];
    return NULL;
}

static const struct node *resolved(const struct node *node)
{
    return node->resolved ? node->resolved : node;
}

static void put_scalar(struct json_writer *json, const struct node *value, enum field_kind kind)
{
    if (node_is_null(value))
        json_put_null(json);
    else if (kind == FIELD_BOOL)
        json_put_bool(json, sv_is_nocase(value->text, "true") || sv_is_nocase(value->text, "yes") ||
                                sv_is_nocase(value->text, "on"));
    else if (kind == FIELD_INT)
        json_put_int(json, strtoll(value->text.at, NULL, 10));
    else
        json_put_view(json, value->text);
}

static void put_texts(struct json_writer *json, const struct node *sequence)
{
    json_open_array(json);
    for (int32_t i = 0; i < sequence->count; i++) {
        const struct node *item = resolved(sequence->items[i]);
        json_put_view(json, item->kind == NODE_SCALAR ? item->text : SV(""));
    }
    json_close(json);
}

/* A robot's fields as a JSON object, in the order written, each by its kind. */
static const char *robot_json(struct arena *arena, struct strview type_name,
                              const struct node *config)
{
    const struct hardware_type *type = hardware_type_find(type_name);
    struct text out = TEXT_INIT;
    struct json_writer json = json_writer_on(&out, JSON_SPACED);
    json_open_object(&json);
    for (int32_t i = 0; i < config->count; i++) {
        const struct hardware_field *field = hardware_field_find(type, config->pairs[i].key->text);
        const struct node *value = resolved(config->pairs[i].value);
        enum field_kind kind = field ? field->kind : FIELD_TEXT;
        json_key_view(&json, config->pairs[i].key->text);
        if (value->kind == NODE_SCALAR)
            put_scalar(&json, value, kind);
        else if (value->kind == NODE_SEQUENCE)
            put_texts(&json, value);
        else
            json_put_null(&json); /* a mapping, which is refused elsewhere */
    }
    json_close(&json);
    const char *string = text_string(&out);
    const char *copy = string ? arena_copy(arena, sv_from(string)) : NULL;
    text_release(&out);
    return copy;
}

/* What the config declares of a type on a node replaces what a snapshot saw of it there. */
static void drop_units(struct cluster_node *node, struct strview type)
{
    struct unit *kept = NULL, **tail = &kept;
    node->last_unit = NULL;
    for (struct unit *unit = node->units; unit; unit = unit->next) {
        if (sv_is(type, unit->type))
            continue;
        *tail = unit;
        tail = &unit->next;
        node->last_unit = unit;
    }
    *tail = NULL;
    node->units = kept;
}

bool topology_add_robots(struct roost_cluster *cluster, const struct roost_config *config,
                         struct diag *diag)
{
    for (int32_t g = 0; g < config->node_group_count; g++) {
        const struct node_group_config *group = &config->node_groups[g];
        for (int32_t r = 0; r < group->robot_count; r++)
            if (group->robots[r].node_rank < cluster->node_count)
                drop_units(&cluster->nodes[group->robots[r].node_rank], group->hardware_type.text);
    }
    for (int32_t g = 0; g < config->node_group_count; g++) {
        const struct node_group_config *group = &config->node_groups[g];
        const char *type =
            group->robot_count ? arena_copy(&cluster->arena, group->hardware_type.text) : "";
        for (int32_t r = 0; r < group->robot_count; r++) {
            const struct robot *robot = &group->robots[r];
            if (robot->node_rank >= cluster->node_count)
                continue;
            struct cluster_node *node = &cluster->nodes[robot->node_rank];
            struct unit *unit = arena_zeroed(&cluster->arena, struct unit, 1);
            const char *json =
                unit ? robot_json(&cluster->arena, group->hardware_type.text, robot->config) : NULL;
            if (!json || !type) {
                diag_nomem(diag);
                return false;
            }
            *unit = (struct unit){type, json, NULL};
            *(node->last_unit ? &node->last_unit->next : &node->units) = unit;
            node->last_unit = unit;
        }
    }
    return true;
}

/* Fills members and numbering from `ranks`; a rank beyond the cluster was reported by who read it. */
static bool fill_members(struct roost_cluster *cluster, struct node_group *group,
                         const struct rankset *ranks, struct diag *diag)
{
    int32_t count = 0;
    if (ranks->is_all)
        count = cluster->node_count;
    for (int32_t n = ranks->is_all ? -1 : rankset_next(ranks, 0); n >= 0 && n < cluster->node_count;
         n = rankset_next(ranks, n + 1))
        count++;
    cluster->member_count += count;
    if (cluster->member_count > CLUSTER_TOTAL_MAX) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "node groups of more than %d nodes in all",
                   CLUSTER_TOTAL_MAX);
        diag_hint(diag, "use fewer or smaller node groups");
        return false;
    }
    group->node_of_member = arena_array(&cluster->arena, int32_t, count);
    group->first_hw_of_member = arena_array(&cluster->arena, int32_t, count + 1);
    if (!group->node_of_member || !group->first_hw_of_member) {
        diag_nomem(diag);
        return false;
    }
    int32_t n = ranks->is_all ? 0 : rankset_next(ranks, 0);
    for (int32_t m = 0; m < count; m++) {
        group->node_of_member[m] = n;
        n = ranks->is_all ? n + 1 : rankset_next(ranks, n + 1);
    }
    group->member_count = count;
    return true;
}

static void number_units(const struct roost_cluster *cluster, struct node_group *group)
{
    int32_t next = 0;
    for (int32_t m = 0; m < group->member_count; m++) {
        const struct cluster_node *node = &cluster->nodes[group->node_of_member[m]];
        group->first_hw_of_member[m] = next;
        next += !group->hardware_type   ? 1
                : group->is_accelerator ? node->accelerator_count
                                        : node_count_units(node, sv_from(group->hardware_type));
    }
    group->first_hw_of_member[group->member_count] = next;
}

/* Declared type, else accelerators when there are any, else nodes. */
static bool choose_type(struct roost_cluster *cluster, struct node_group *group,
                        const struct node_group_config *config, struct diag *diag)
{
    if (config->hardware_type.text.len) {
        group->hardware_type = arena_copy(&cluster->arena, config->hardware_type.text);
        if (!group->hardware_type) {
            diag_nomem(diag);
            return false;
        }
    } else if (!config->ignores_hardware) {
        for (int32_t m = 0; m < group->member_count && !group->hardware_type; m++)
            if (cluster->nodes[group->node_of_member[m]].accelerator_count)
                group->hardware_type = HARDWARE_ACCELERATOR;
    }
    group->is_accelerator =
        group->hardware_type && strcmp(group->hardware_type, HARDWARE_ACCELERATOR) == 0;
    return true;
}

bool topology_add_node_group(struct roost_cluster *cluster, const struct node_group_config *config,
                             struct diag *diag)
{
    struct node_group *group = &cluster->node_groups[cluster->node_group_count];
    *group = (struct node_group){.label = arena_copy(&cluster->arena, sv_from(config->label)),
                                 .is_broken = config->is_broken};
    if (!group->label) {
        diag_nomem(diag);
        return false;
    }
    if (!fill_members(cluster, group, &config->node_ranks, diag) ||
        !choose_type(cluster, group, config, diag))
        return false;
    number_units(cluster, group);
    cluster->node_group_count++;
    return true;
}

bool topology_add_node_groups(struct roost_cluster *cluster, const struct roost_config *config,
                              struct diag *diag)
{
    int32_t configured = config ? config->node_group_count : 0;
    cluster->node_groups = arena_array(&cluster->arena, struct node_group, configured + 2);
    if (!cluster->node_groups) {
        diag_nomem(diag);
        return false;
    }
    for (int32_t g = 0; g < configured; g++)
        if (!topology_add_node_group(cluster, &config->node_groups[g], diag))
            return false;
    const struct node_group_config all = {.label = "cluster", .node_ranks = {.is_all = true}};
    const struct node_group_config nodes = {
        .label = "node", .node_ranks = {.is_all = true}, .ignores_hardware = true};
    return topology_add_node_group(cluster, &all, diag) &&
           topology_add_node_group(cluster, &nodes, diag);
}
