/* component_ranks.c - from the columns of a plan back to the ranks that a component was placed on, in the
 * form that a strategy takes; and what these ranks count. */
#include "placement/plan.h"

/* A group of the component, where its ranks start, and the member that was met last. */
struct numbering {
    const struct node_group *group;
    int32_t index; /* in the component's labels */
    int32_t base;
    int32_t member;
};

static bool find_group(const struct roost_component *component, const struct roost_cluster *cluster,
                       int32_t index, struct numbering *out)
{
    bool is_node = component->strategy == ROOST_STRATEGY_NODE;
    *out = (struct numbering){.index = index};
    for (int32_t g = 0; g < index; g++) {
        const struct node_group *before =
            cluster_find_node_group(cluster, sv_from(component->node_groups[g]));
        if (!before)
            return false;
        out->base += is_node ? before->member_count : node_group_size(before);
    }
    out->group = cluster_find_node_group(cluster, sv_from(component->node_groups[index]));
    return out->group != NULL;
}

static bool find_member(struct numbering *it, int32_t node_rank)
{
    const struct node_group *group = it->group;
    if (it->member < group->member_count && group->node_of_member[it->member] == node_rank)
        return true;
    it->member = node_group_member_from(group, node_rank);
    return it->member < group->member_count && group->node_of_member[it->member] == node_rank;
}

/* On to the next group that has the node: the hardware of a process falls only where groups share
 * its node and it goes on in a later one. */
static bool find_later(const struct roost_component *component, const struct roost_cluster *cluster,
                       int32_t node_rank, struct numbering *it)
{
    while (it->index + 1 < component->node_group_count &&
           find_group(component, cluster, it->index + 1, it))
        if (find_member(it, node_rank))
            return true;
    return false;
}

static bool find_process(const struct roost_component *component,
                         const struct roost_cluster *cluster, int32_t process, struct numbering at,
                         int32_t *out_ranks)
{
    int32_t first = component->first_hardware[process];
    for (int32_t i = first; i < component->first_hardware[process + 1]; i++) {
        if (i > first && component->hardware[i] < component->hardware[i - 1] &&
            !find_later(component, cluster, component->cluster_node_rank[process], &at))
            return false;
        out_ranks[i] = at.base + at.group->first_hw_of_member[at.member] + component->hardware[i];
    }
    return true;
}

bool roost_component_ranks(const struct roost_component *component,
                           const struct roost_cluster *cluster, int32_t *out_ranks)
{
    struct numbering at = {0};
    for (int32_t p = 0; p < component->world_size; p++) {
        if ((!at.group || at.index != component->node_group[p]) &&
            !find_group(component, cluster, component->node_group[p], &at))
            return false;
        if (!find_member(&at, component->cluster_node_rank[p]))
            return false;
        if (component->strategy == ROOST_STRATEGY_NODE)
            out_ranks[p] = at.base + at.member;
        else if (!find_process(component, cluster, p, at, out_ranks))
            return false;
    }
    return true;
}

bool roost_component_holds_accelerators(const struct roost_component *component,
                                        const struct roost_cluster *cluster, int32_t rank)
{
    if (component->strategy == ROOST_STRATEGY_NODE)
        return false;
    const char *label = component->node_groups[component->node_group[rank]];
    const struct node_group *group = cluster_find_node_group(cluster, sv_from(label));
    return group && group->is_accelerator;
}
