/* occupancy.c - one number per accelerator: its crowd. Accelerators with the same users share one crowd, so
 * that a big cluster costs one number per accelerator, and comparing two nodes means comparing numbers. Reads
 * a finished plan. */
#include "placement/occupancy.h"

#include <stdlib.h>

static struct crowd make_crowd(int32_t below, int32_t component, int32_t count, int32_t total)
{
    return (struct crowd){.below = below,
                          .component = component,
                          .count = count,
                          .total = total,
                          .more = -1,
                          .other = -1,
                          .asked = -1};
}

/* A new crowd; -1 without memory. */
static int32_t add_crowd(struct occupancy *occupancy, struct crowd crowd)
{
    if (occupancy->crowd_count == occupancy->crowd_room) {
        int32_t room = occupancy->crowd_room ? occupancy->crowd_room * 2 : 64;
        struct crowd *list = realloc(occupancy->crowds, (size_t)room * sizeof *list);
        if (!list)
            return -1;
        occupancy->crowds = list;
        occupancy->crowd_room = room;
    }
    occupancy->crowds[occupancy->crowd_count] = crowd;
    return occupancy->crowd_count++;
}

/* The crowd `from` with one more process of the component; -1 without memory. Components come in order,
 * so a crowd needs to remember only what the newest one made of it. */
static int32_t next_crowd(struct occupancy *occupancy, int32_t from, int32_t component)
{
    struct crowd old = occupancy->crowds[from];
    if (old.component == component) {
        if (old.more < 0) {
            int32_t made = add_crowd(
                occupancy, make_crowd(old.below, component, old.count + 1, old.total + 1));
            occupancy->crowds[from].more = made;
        }
        return occupancy->crowds[from].more;
    }
    if (old.asked != component) {
        int32_t made = add_crowd(occupancy, make_crowd(from, component, 1, old.total + 1));
        occupancy->crowds[from].other = made;
        occupancy->crowds[from].asked = made < 0 ? -1 : component;
        return made;
    }
    return old.other;
}

/* Adds every process of a component to what it holds. */
static bool count_component(struct occupancy *occupancy, const struct roost_plan *plan, int32_t c,
                            const struct roost_cluster *cluster, struct arena *scratch)
{
    const struct roost_component *component = &plan->components[c];
    bool *is_accelerator = arena_array(scratch, bool, component->node_group_count);
    if (!is_accelerator)
        return false;
    for (int32_t g = 0; g < component->node_group_count; g++)
        is_accelerator[g] =
            cluster_find_node_group(cluster, sv_from(component->node_groups[g]))->is_accelerator;
    for (int32_t p = 0; p < component->world_size; p++) {
        if (!is_accelerator[component->node_group[p]])
            continue;
        int32_t *on_node =
            occupancy->crowd_of + occupancy->first_of_node[component->cluster_node_rank[p]];
        for (int32_t i = component->first_hardware[p]; i < component->first_hardware[p + 1]; i++) {
            int32_t *at = &on_node[component->hardware[i]];
            int32_t next = next_crowd(occupancy, *at, c);
            if (next < 0)
                return false;
            occupancy->idle -= *at == 0;
            *at = next;
        }
    }
    return true;
}

bool occupancy_init(struct occupancy *occupancy, const struct roost_plan *plan,
                    const struct roost_cluster *cluster)
{
    *occupancy = (struct occupancy){0};
    const struct node_group *all = cluster_find_node_group(cluster, SV("cluster"));
    if (!all->is_accelerator)
        return true;
    occupancy->first_of_node = all->first_hw_of_member;
    occupancy->total = occupancy->idle = node_group_size(all);
    occupancy->crowd_of = arena_zeroed(&occupancy->arena, int32_t, occupancy->total);
    bool is_good = occupancy->crowd_of && add_crowd(occupancy, make_crowd(-1, -1, 0, 0)) == 0;
    struct arena scratch = ARENA_INIT;
    for (int32_t c = 0; is_good && c < plan->component_count; c++)
        is_good = count_component(occupancy, plan, c, cluster, &scratch);
    arena_release(&scratch);
    return is_good;
}

void occupancy_release(struct occupancy *occupancy)
{
    arena_release(&occupancy->arena);
    free(occupancy->crowds);
}

void occupancy_put_idle(struct text *out, const struct occupancy *occupancy,
                        const struct roost_cluster *cluster)
{
    enum { NODES_SHOWN = 4 };
    int shown = 0;
    for (int32_t n = 0; n < cluster->node_count; n++) {
        int32_t count = cluster->nodes[n].accelerator_count;
        const int32_t *crowd_of = occupancy->crowd_of + occupancy->first_of_node[n];
        bool has_label = false;
        for (int32_t a = 0; a < count; a++) {
            if (crowd_of[a])
                continue;
            if (!has_label && shown++ == NODES_SHOWN) {
                text_puts(out, ", ...");
                return;
            }
            int32_t last = a;
            while (last + 1 < count && !crowd_of[last + 1])
                last++;
            if (has_label)
                text_char(out, ',');
            else
                text_printf(out, "%snode %d: ", shown > 1 ? ", " : "", (int)n);
            text_printf(out, a == last ? "%d" : "%d-%d", (int)a, (int)last);
            has_label = true;
            a = last;
        }
    }
}
