/* plan_rows.h - a component's processes folded into the rows a person reads. */
#ifndef RENDER_PLAN_ROWS_H
#define RENDER_PLAN_ROWS_H

#include <roost/plan.h>

#include "base/arena.h"
#include "base/text.h"
#include "topology/cluster.h"

enum { PLAN_ROW_RANGES = 4 };

/* Processes on one node, or on several nodes in a row that look alike. */
struct plan_row {
    int32_t first_rank, last_rank;
    int32_t first_node, last_node;
    int32_t per_node;  /* processes on each */
    const char *label; /* node group */
    const char *holds; /* "0-7, 1 each"; owned by the list's arena */
    int32_t
        share; /* processes that each unit has by the component's own rule; 0 = holds lists them */
    /* The resource ranks that the row uses, as the config numbers them; only the first ranges. */
    struct roost_range resources[PLAN_ROW_RANGES];
    int32_t resource_count;
    bool has_more_resources;
};

struct plan_rows {
    struct arena arena;
    struct plan_row *list;
    size_t count, room;
};

/* Folds the component. False without memory. */
bool plan_rows_init(struct plan_rows *rows, const struct roost_component *component,
                    const struct roost_cluster *cluster);

/* "8-15", "0-3,8-11", with "..." for the ranges that the row does not keep. */
void plan_row_put_resources(struct text *out, const struct plan_row *row);
void plan_rows_release(struct plan_rows *rows);

#endif
