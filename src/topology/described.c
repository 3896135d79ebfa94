/* described.c - a cluster that the calling program describes: nodes by rank, groups by their nodes. */
#include <string.h>

#include "topology/cluster.h"

static bool copy_units(struct roost_cluster *cluster, struct cluster_node *node,
                       const struct roost_node_description *described)
{
    for (size_t i = 0; i < described->hardware_count; i++) {
        struct unit *unit = arena_zeroed(&cluster->arena, struct unit, 1);
        const char *type = arena_copy(&cluster->arena, sv_from(described->hardware_types[i]));
        if (!unit || !type)
            return false;
        *unit = (struct unit){type, "{}", NULL};
        *(node->last_unit ? &node->last_unit->next : &node->units) = unit;
        node->last_unit = unit;
    }
    return true;
}

bool topology_from_description(struct roost_cluster *cluster,
                               const struct roost_cluster_description *description,
                               struct diag *diag)
{
    if (description->node_count < 1 || description->node_count > CLUSTER_NODES_MAX) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "a cluster has 1 to %d nodes, not %d",
                   CLUSTER_NODES_MAX, (int)description->node_count);
        diag_hint(diag, description->node_count < 1 ? "describe at least one node"
                                                    : "leave out nodes that nothing is placed on");
        return false;
    }
    cluster->nodes = arena_array(&cluster->arena, struct cluster_node, description->node_count);
    if (!cluster->nodes) {
        diag_nomem(diag);
        return false;
    }
    cluster->node_count = description->node_count;
    for (int32_t n = 0; n < description->node_count; n++) {
        const struct roost_node_description *described = &description->nodes[n];
        if (described->num_accelerators < 0 ||
            described->num_accelerators > CLUSTER_ACCELERATORS_MAX) {
            diag_error(diag, ROOST_ERR_LIMIT, NOWHERE,
                       "node %d has %d accelerators; 0 to %d can be numbered", (int)n,
                       (int)described->num_accelerators, CLUSTER_ACCELERATORS_MAX);
            diag_hint(diag, described->num_accelerators < 0 ? "write 0 for a node without any"
                                                            : "describe the rest as another node");
            return false;
        }
        cluster->nodes[n] = (struct cluster_node){
            .num_cpus = described->num_cpus > 0 ? described->num_cpus : -1,
            .explicit_rank = n,
            .accelerator_count = described->num_accelerators,
            .accelerator = described->accelerator,
        };
        if (!copy_units(cluster, &cluster->nodes[n], described)) {
            diag_nomem(diag);
            return false;
        }
    }
    return true;
}

/* Ranks of a group run through its nodes in rising order. To sort them here would give other units
 * to a rank than the describer's own order does. */
static bool check_rise(const struct roost_node_group_description *described, int32_t before,
                       int32_t rank, struct diag *diag)
{
    if (before < rank)
        return true;
    diag_error(diag, ROOST_ERR_RANK, NOWHERE,
               "the nodes of node group '%s' must rise, but %d comes after %d", described->label,
               (int)rank, (int)before);
    diag_hint(diag, "name each node once, in rising order");
    return false;
}

static bool add_node_group(struct roost_cluster *cluster,
                           const struct roost_node_group_description *described, struct diag *diag)
{
    struct arena scratch = ARENA_INIT;
    struct rankset ranks = {.ranges =
                                arena_array(&scratch, struct rank_range, described->node_count)};
    bool is_good = ranks.ranges != NULL;
    if (!is_good)
        diag_nomem(diag);
    for (int32_t i = 0; is_good && i < described->node_count; i++) {
        int32_t rank = described->node_ranks[i];
        is_good = rank >= 0 && rank < cluster->node_count;
        ranks.ranges[ranks.count++] = (struct rank_range){rank, rank};
        if (is_good) {
            is_good = i == 0 || check_rise(described, described->node_ranks[i - 1], rank, diag);
            continue;
        }
        diag_error(diag, ROOST_ERR_FIT, NOWHERE,
                   "node group '%s' names node %d, which is out of range: there are %d nodes",
                   described->label, (int)rank, (int)cluster->node_count);
        diag_hint(diag, "name nodes from 0 to %d", (int)cluster->node_count - 1);
    }
    if (is_good) {
        /* `node` counts nodes, whatever its describer says of it. */
        const char *type = strcmp(described->label, "node") == 0 ? NULL : described->hardware_type;
        rankset_settle(&ranks);
        const struct node_group_config group = {
            .label = described->label,
            .node_ranks = ranks,
            .hardware_type = {type ? sv_from(type) : SV(""), NOWHERE},
            .ignores_hardware =
                !type && (!described->finds_type || strcmp(described->label, "node") == 0),
        };
        is_good = topology_add_node_group(cluster, &group, diag);
    }
    arena_release(&scratch);
    return is_good;
}

bool topology_add_described(struct roost_cluster *cluster,
                            const struct roost_cluster_description *description, struct diag *diag)
{
    cluster->node_groups =
        arena_array(&cluster->arena, struct node_group, description->group_count + 2);
    if (!cluster->node_groups) {
        diag_nomem(diag);
        return false;
    }
    for (size_t g = 0; g < description->group_count; g++)
        if (!add_node_group(cluster, &description->groups[g], diag))
            return false;
    const struct node_group_config builtin[] = {
        {.label = "cluster", .node_ranks = {.is_all = true}},
        {.label = "node", .node_ranks = {.is_all = true}, .ignores_hardware = true},
    };
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
        if (!cluster_find_node_group(cluster, sv_from(builtin[i].label)) &&
            !topology_add_node_group(cluster, &builtin[i], diag))
            return false;
    return true;
}
