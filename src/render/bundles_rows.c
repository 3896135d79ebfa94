/* bundles_rows.c - folding. Engines of one node are a run; runs on neighbouring nodes that hold the
 * same GPUs of their node become one row. */
#include "render/bundles_rows.h"

/* Engines of the group from `first` on that are on one machine; returns the last of them. */
static int32_t run_end(const struct roost_engines *it, int32_t first, int32_t end)
{
    int32_t last = first;
    while (last + 1 < end &&
           it->machine[it->first_part[last + 1]] == it->machine[it->first_part[first]])
        last++;
    return last;
}

static bool looks_alike(const struct roost_engines *it, int32_t first, int32_t last, int32_t next,
                        int32_t next_last)
{
    int32_t a = it->first_part[last], b = it->first_part[next];
    return next_last - next == last - first && it->machine[b] == it->machine[a] + 1 &&
           it->local_gpu[b] == it->local_gpu[it->first_part[first]];
}

static int32_t fold_nodes(const struct roost_engines *it, int32_t first, int32_t end)
{
    int32_t last = run_end(it, first, end), from = first;
    while (last + 1 < end) {
        int32_t next_last = run_end(it, last + 1, end);
        if (!looks_alike(it, from, last, last + 1, next_last))
            break;
        from = last + 1;
        last = next_last;
    }
    return last;
}

bool bundles_next_row(const struct roost_layout *layout, size_t *group, int32_t *engine,
                      struct bundles_row *out)
{
    const struct roost_engines *it = &layout->engines;
    if (*group >= layout->group_count)
        return false;
    const struct roost_server_group *now = &layout->groups[*group];
    int32_t end = now->first_engine + now->engine_count;
    bool has_parts = now->engine_count > 0 && now->first_slot >= 0;
    bool spans_nodes = has_parts && now->gpus_per_engine > layout->num_gpus_per_node;
    *out = (struct bundles_row){now, *engine, end - 1, 0, -1};
    if (has_parts && !spans_nodes)
        out->last_engine = fold_nodes(it, *engine, end);
    if (has_parts) {
        out->first_part = it->first_part[out->first_engine];
        out->last_part = it->first_part[out->last_engine + 1] - 1;
    }
    *engine = out->last_engine + 1;
    *group += *engine >= end;
    return true;
}
