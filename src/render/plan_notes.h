/* plan_notes.h - what stands above and below the table of a plan. */
#ifndef RENDER_PLAN_NOTES_H
#define RENDER_PLAN_NOTES_H

#include <roost/plan.h>

#include "base/text.h"
#include "topology/cluster.h"

struct plan_notes {
    struct text *out;
    int width; /* of a line */
    const struct roost_plan *plan;
    const struct roost_cluster *cluster;
    const char *only; /* the components that are shown, "a,b"; NULL = all */
    const int32_t
        *shares; /* by component: processes that share an accelerator by its own rule; 0 = none */
};

/* "hybrid: 2 nodes, 16 accelerators (NV_GPU H100)" and an empty line. */
void plan_notes_put_summary(struct plan_notes *notes);

/* An empty line, then: derived sizes, components that are not isolated, accelerators that carry several
 * processes or none, and the number of processes. False without memory. */
bool plan_notes_put(struct plan_notes *notes);

/* How much of `text` fits into `room`: up to a blank, or behind a mark. */
size_t cut_length(const char *text, size_t room);

#endif
