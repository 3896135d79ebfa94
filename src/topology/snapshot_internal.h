/* snapshot_internal.h - the reading of a snapshot under way, shared by snapshot.c (document and nodes)
 * and snapshot_hardware.c (what a node has). */
#ifndef TOPOLOGY_SNAPSHOT_INTERNAL_H
#define TOPOLOGY_SNAPSHOT_INTERNAL_H

#include "base/json_reader.h"
#include "topology/cluster.h"

struct snapshot {
    struct roost_cluster *cluster;
    struct json_reader *json;
    struct diag *diag;
    struct cluster_node *nodes; /* grows; moves into the arena at the end */
    int32_t count, room;
};

/* Says that `what` must be something else than the token, with an example of it, unless a fault was
 * said already. Returns false. */
bool snapshot_refuse(struct snapshot *snapshot, struct json_token token, const char *what,
                     const char *wanted, const char *example);

struct json_token snapshot_next(struct snapshot *snapshot);

/* A string or null, a number from 0 to `max` or null; null leaves *out as it is. */
bool snapshot_text(struct snapshot *snapshot, const char *what, const char **out);
bool snapshot_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out);

/* The values of `accelerators` and `hardware` of a node. */
bool snapshot_accelerators(struct snapshot *snapshot, struct cluster_node *node, int32_t *count);
bool snapshot_hardware(struct snapshot *snapshot, struct cluster_node *node);

#endif
