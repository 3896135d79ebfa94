/* snapshot_internal.h - the reading of a snapshot under way, shared by snapshot.c (the document),
 * snapshot_node.c (a node) and snapshot_hardware.c (what a node has).
 *
 * Functions that return bool say whether reading can go on: a wrong value is said and left out, so
 * that all of them are said at once. False is for a fault of syntax or a lack of memory. */
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
    bool is_full;      /* there are more nodes than a cluster may have, which was said */
    bool has_bad_rank; /* a node's rank is not known, which was said */
};

/* Says that `what` must be something else than the token, with an example of it, and skips the value;
 * a token that failed was said already. */
bool snapshot_refuse(struct snapshot *snapshot, struct json_token token, const char *what,
                     const char *wanted, const char *example);

struct json_token snapshot_next(struct snapshot *snapshot);

/* Reads to the end of the value that the last token began. */
bool snapshot_skip(struct snapshot *snapshot);

/* A string or null, a number from 0 to `max` or null; null leaves *out as it is. */
bool snapshot_text(struct snapshot *snapshot, const char *what, const char **out);
bool snapshot_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out);

/* The node whose object was opened at `at`. */
bool snapshot_node(struct snapshot *snapshot, struct place at, struct cluster_node *node);

/* The values of `accelerators` and `hardware` of a node; *count is what is listed. */
bool snapshot_accelerators(struct snapshot *snapshot, struct cluster_node *node, int32_t *count);
bool snapshot_hardware(struct snapshot *snapshot, struct cluster_node *node);

#endif
