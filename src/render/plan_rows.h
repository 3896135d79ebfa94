/* plan_rows.h - a component's processes folded into the rows a person reads. */
#ifndef RENDER_PLAN_ROWS_H
#define RENDER_PLAN_ROWS_H

#include <roost/plan.h>

#include "base/arena.h"
#include "base/text.h"
#include "topology/cluster.h"

/* Processes on one node, or on several nodes in a row that look alike. */
struct plan_row {
    int32_t first_rank, last_rank;
    int32_t first_node, last_node;
    int32_t per_node;  /* processes on each */
    const char *label; /* node group */
    const char *holds; /* "0-7, 1 each"; owned by the list's arena */
};

struct plan_rows {
    struct arena arena;
    struct plan_row *list;
    size_t count, room;
};

/* Folds the component. False without memory. */
bool plan_rows_init(struct plan_rows *rows, const struct roost_component *component,
                    const struct roost_cluster *cluster);
void plan_rows_release(struct plan_rows *rows);

#endif
