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

/* Returns the processes that each unit has by rule, 0 = the units are listed one by one. */
static int32_t describe(struct text *out, const struct run *run)
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
    return share;
}

/* --- the resource ranks of a row --- */

static void add_range(struct plan_row *row, struct roost_range range)
{
    struct roost_range *last =
        row->resource_count ? &row->resources[row->resource_count - 1] : NULL;
    if (last && !row->has_more_resources && last->last + 1 == range.first)
        last->last = range.last;
    else if (row->resource_count < PLAN_ROW_RANGES)
        row->resources[row->resource_count++] = range;
    else
        row->has_more_resources = true;
}

/* The rank, among all that the component counts, of unit 0 of the run's node: groups are joined in the
 * order in which they are written. */
static int32_t first_resource(const struct run *run, const struct roost_cluster *cluster)
{
    const struct roost_component *it = run->component;
    bool is_node = it->strategy == ROOST_STRATEGY_NODE;
    int32_t own = it->node_group[run->first], first = 0;
    for (int32_t g = 0; g <= own; g++) {
        const struct node_group *group =
            cluster_find_node_group(cluster, sv_from(it->node_groups[g]));
        int32_t member = g < own ? group->member_count
                                 : node_group_member_from(group, it->cluster_node_rank[run->first]);
        first += is_node ? member : group->first_hw_of_member[member];
    }
    return first;
}

/* Which units the run uses, each once and rising; false without memory. */
static bool find_resources(struct plan_row *row, const struct run *run,
                           const struct roost_cluster *cluster)
{
    const struct roost_component *it = run->component;
    int32_t from = it->first_hardware[run->first], to = it->first_hardware[run->last + 1];
    int32_t base = first_resource(run, cluster), most = 0;
    if (it->strategy == ROOST_STRATEGY_NODE || from == to) {
        add_range(row, (struct roost_range){base, base});
        return true;
    }
    for (int32_t i = from; i < to; i++)
        most = it->hardware[i] > most ? it->hardware[i] : most;
    bool *is_used = calloc((size_t)most + 1, sizeof *is_used);
    if (!is_used)
        return false;
    for (int32_t i = from; i < to; i++)
        is_used[it->hardware[i]] = true;
    for (int32_t unit = 0; unit <= most; unit++)
        if (is_used[unit])
            add_range(row, (struct roost_range){base + unit, base + unit});
    free(is_used);
    return true;
}

void plan_row_put_resources(struct text *out, const struct plan_row *row)
{
    for (int32_t i = 0; i < row->resource_count; i++) {
        struct roost_range range = row->resources[i];
        text_puts(out, i ? "," : "");
        text_int(out, range.first);
        if (range.last > range.first) {
            text_char(out, '-');
            text_int(out, range.last);
        }
    }
    text_puts(out, row->has_more_resources ? ",..." : "");
}

/* --- folding --- */

static bool is_next(const struct plan_row *row, const struct plan_row *next)
{
    return row->last_node + 1 == next->first_node && row->last_rank + 1 == next->first_rank &&
           row->per_node == next->per_node && strcmp(row->label, next->label) == 0 &&
           strcmp(row->holds, next->holds) == 0;
}

static bool add(struct plan_rows *rows, struct plan_row row)
{
    if (rows->count && is_next(&rows->list[rows->count - 1], &row)) {
        struct plan_row *last = &rows->list[rows->count - 1];
        last->last_node = row.last_node;
        last->last_rank = row.last_rank;
        for (int32_t i = 0; i < row.resource_count; i++)
            add_range(last, row.resources[i]);
        last->has_more_resources |= row.has_more_resources;
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
    struct plan_row row = {.first_rank = run->first,
                           .last_rank = run->last,
                           .first_node = node,
                           .last_node = node,
                           .per_node = run->last - run->first + 1,
                           .label = label};
    struct text holds = TEXT_INIT;
    if (it->strategy != ROOST_STRATEGY_NODE && group && !group->is_accelerator)
        text_printf(&holds, "%s ", group->hardware_type);
    row.share = describe(&holds, run);
    row.holds = text_string(&holds);
    bool is_good = row.holds && find_resources(&row, run, cluster) && add(rows, row);
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
