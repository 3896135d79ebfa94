/* rows.c - what a process of a plan sees, and whether two of them are alike. */
#include <string.h>

#include "binding.h"

int32_t row_visible(const struct roost_component *it, int32_t rank, int32_t index)
{
    bool sees_own = !it->visible_count || it->visible_count[rank] < 0;
    return sees_own ? it->hardware[it->first_hardware[rank] + index] : index;
}

int32_t row_visible_count(const struct roost_component *it, int32_t rank)
{
    bool sees_own = !it->visible_count || it->visible_count[rank] < 0;
    return sees_own ? it->first_hardware[rank + 1] - it->first_hardware[rank]
                    : it->visible_count[rank];
}

static bool hardware_equal(const struct roost_component *a, int32_t rank_a,
                           const struct roost_component *b, int32_t rank_b)
{
    int32_t first_a = a->first_hardware[rank_a], first_b = b->first_hardware[rank_b];
    int32_t count = a->first_hardware[rank_a + 1] - first_a;
    int32_t seen = row_visible_count(a, rank_a);
    if (count != b->first_hardware[rank_b + 1] - first_b || seen != row_visible_count(b, rank_b))
        return false;
    for (int32_t i = 0; i < count; i++)
        if (a->hardware[first_a + i] != b->hardware[first_b + i])
            return false;
    for (int32_t i = 0; i < seen; i++)
        if (row_visible(a, rank_a, i) != row_visible(b, rank_b, i))
            return false;
    return true;
}

bool rows_equal(const struct roost_component *a, int32_t rank_a, const struct roost_component *b,
                int32_t rank_b)
{
    return rank_a == rank_b && a->cluster_node_rank[rank_a] == b->cluster_node_rank[rank_b] &&
           a->placement_node_rank[rank_a] == b->placement_node_rank[rank_b] &&
           a->local_accelerator_rank[rank_a] == b->local_accelerator_rank[rank_b] &&
           a->accelerator[rank_a] == b->accelerator[rank_b] &&
           a->local_rank[rank_a] == b->local_rank[rank_b] &&
           a->local_world_size[rank_a] == b->local_world_size[rank_b] &&
           a->isolate_accelerator == b->isolate_accelerator &&
           strcmp(a->node_groups[a->node_group[rank_a]], b->node_groups[b->node_group[rank_b]]) ==
               0 &&
           hardware_equal(a, rank_a, b, rank_b);
}
