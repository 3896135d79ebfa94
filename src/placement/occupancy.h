/* occupancy.h - who uses each accelerator of a plan: how many processes of which components. */
#ifndef PLACEMENT_OCCUPANCY_H
#define PLACEMENT_OCCUPANCY_H

#include "base/text.h"
#include "placement/plan.h"

/* A crowd is the set of processes that use one accelerator: the processes of one component, on top of the
 * crowd of the components before it. Equal crowds have the same number; 0 = no process. */
struct crowd {
    int32_t below;     /* the crowd without `component` */
    int32_t component; /* index in the plan */
    int32_t count;     /* its processes */
    int32_t total;     /* processes of all components */
    /* The crowds with one more process than this one: of the same component, and of the component `asked`.
     * -1 = not made yet. */
    int32_t more, other, asked;
};

struct occupancy {
    struct arena arena;
    const int32_t *first_of_node; /* of the cluster: node n has accelerators first_of_node[n] .. */
    int32_t *crowd_of;            /* by accelerator of the cluster */
    int32_t total;                /* accelerators; 0 when the cluster counts something else */
    int32_t idle;                 /* of them, without any process */
    struct crowd *crowds;
    int32_t crowd_count, crowd_room;
};

/* Counts the processes of a plan on its cluster, which must outlive it. False without memory. Release it
 * in either case. */
bool occupancy_init(struct occupancy *occupancy, const struct roost_plan *plan,
                    const struct roost_cluster *cluster);
void occupancy_release(struct occupancy *occupancy);

/* "node 0: 6-7, node 3: 0": the idle accelerators of the first few nodes that have any. */
void occupancy_put_idle(struct text *out, const struct occupancy *occupancy,
                        const struct roost_cluster *cluster);

#endif
