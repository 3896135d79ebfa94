/* plan_rows.c - folding. A run is the processes of consecutive ranks on one node through one group;
 * neighbouring nodes whose runs look alike become one row. */
#include "render/plan_rows.h"

#include <stdlib.h>
#include <string.h>

struct run {
    const struct roost_component *component;
    int32_t first, last; /* process ranks */
};

static int32_t held(const struct roost_component *it, int32_t p)
{
    return it->first_hardware[p + 1] - it->first_hardware[p];
}

/* Every process holds `each` units, together a range without gaps: 0-7, 2 each. */
static bool is_block(const struct run *run)
{
    const struct roost_component *it = run->component;
    int32_t from = it->first_hardware[run->first], to = it->first_hardware[run->last + 1];
    for (int32_t p = run->first; p <= run->last; p++)
        if (held(it, p) != held(it, run->first))
            return false;
    for (int32_t i = from + 1; i < to; i++)
        if (it->hardware[i] != it->hardware[i - 1] + 1)
            return false;
    return true;
}

/* Every unit of a range is held by `share` processes in a row: 0-3, 2 share each. 0 = no. */
static int32_t share_of(const struct run *run)
{
    const struct roost_component *it = run->component;
    int32_t count = run->last - run->first + 1, share = 0;
    const int32_t *units = it->hardware + it->first_hardware[run->first];
    for (int32_t p = run->first; p <= run->last; p++)
        if (held(it, p) != 1)
            return 0;
    while (share < count && units[share] == units[0])
        share++;
    if (share < 2 || count % share != 0)
        return 0;
    for (int32_t i = 0; i < count; i++)
        if (units[i] != units[0] + i / share)
            return 0;
    return share;
}

static void put_range(struct text *out, int32_t first, int32_t last)
{
    text_printf(out, first == last ? "%d" : "%d-%d", (int)first, (int)last);
}

static void put_units(struct text *out, const int32_t *units, int32_t count)
{
    for (int32_t i = 0; i < count;) {
        int32_t last = i;
        while (last + 1 < count && units[last + 1] == units[last] + 1)
            last++;
        /* Two in a row read better apart: 0,1 */
        last = last == i + 1 ? i : last;
        if (i)
            text_char(out, ',');
        put_range(out, units[i], units[last]);
        i = last + 1;
    }
}

static void describe(struct text *out, const struct run *run)
{
    enum { LISTED = 64 };
    const struct roost_component *it = run->component;
    int32_t count = run->last - run->first + 1, each = held(it, run->first);
    const int32_t *units = it->hardware + it->first_hardware[run->first];
    int32_t share = each == 1 ? share_of(run) : 0;
    if (each == 0) {
        text_char(out, '-');
    } else if (share) {
        put_range(out, units[0], units[count - 1]);
        text_printf(out, units[0] == units[count - 1] ? ", shared by %d" : ", each shared by %d",
                    (int)share);
    } else if (is_block(run)) {
        put_range(out, units[0], units[count * each - 1]);
        if (count > 1)
            text_printf(out, ", %d each", (int)each);
    } else {
        for (int32_t p = run->first; p <= run->last && p < run->first + LISTED; p++) {
            text_puts(out, p > run->first ? " | " : "");
            put_units(out, it->hardware + it->first_hardware[p], held(it, p));
        }
        if (count > LISTED)
            text_printf(out, " | ... (%d more)", (int)(count - LISTED));
    }
}

static bool is_next(const struct plan_row *row, const struct plan_row *next)
{
    return row->last_node + 1 == next->first_node && row->last_rank + 1 == next->first_rank &&
           row->per_node == next->per_node && strcmp(row->label, next->label) == 0 &&
           strcmp(row->holds, next->holds) == 0;
}

static bool add(struct plan_rows *rows, struct plan_row row)
{
    if (rows->count && is_next(&rows->list[rows->count - 1], &row)) {
        rows->list[rows->count - 1].last_node = row.last_node;
        rows->list[rows->count - 1].last_rank = row.last_rank;
        return true;
    }
    if (rows->count == rows->room) {
        size_t room = rows->room ? rows->room * 2 : 16;
        struct plan_row *list = realloc(rows->list, room * sizeof *list);
        if (!list)
            return false;
        rows->list = list;
        rows->room = room;
    }
    row.holds = arena_copy(&rows->arena, sv_from(row.holds));
    rows->list[rows->count] = row;
    return rows->list[rows->count++].holds != NULL;
}

static bool add_run(struct plan_rows *rows, const struct run *run,
                    const struct roost_cluster *cluster)
{
    const struct roost_component *it = run->component;
    const char *label = it->node_groups[it->node_group[run->first]];
    const struct node_group *group = cluster_find_node_group(cluster, sv_from(label));
    int32_t node = it->cluster_node_rank[run->first];
    struct text holds = TEXT_INIT;
    if (it->strategy != ROOST_STRATEGY_NODE && group && !group->is_accelerator)
        text_printf(&holds, "%s ", group->hardware_type);
    describe(&holds, run);
    const char *text = text_string(&holds);
    bool is_good = text && add(rows, (struct plan_row){run->first, run->last, node, node,
                                                       run->last - run->first + 1, label, text});
    text_release(&holds);
    return is_good;
}

bool plan_rows_init(struct plan_rows *rows, const struct roost_component *component,
                    const struct roost_cluster *cluster)
{
    *rows = (struct plan_rows){0};
    for (int32_t p = 0; p < component->world_size;) {
        struct run run = {component, p, p};
        while (run.last + 1 < component->world_size &&
               component->cluster_node_rank[run.last + 1] == component->cluster_node_rank[p] &&
               component->node_group[run.last + 1] == component->node_group[p])
            run.last++;
        if (!add_run(rows, &run, cluster))
            return false;
        p = run.last + 1;
    }
    return true;
}

void plan_rows_release(struct plan_rows *rows)
{
    arena_release(&rows->arena);
    free(rows->list);
}
