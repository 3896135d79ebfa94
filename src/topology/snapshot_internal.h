/* snapshot_internal.h - the state of reading a snapshot, shared by snapshot.c (the document),
 * snapshot_node.c (a node), snapshot_hardware.c (a node's hardware) and snapshot_facts.c (what Ray and
 * the node's environment report about it).
 *
 * A bool result tells whether reading can continue. A wrong value is reported and skipped, so that one run
 * reports all of them. False means a syntax error or no memory. */
#ifndef TOPOLOGY_SNAPSHOT_INTERNAL_H
#define TOPOLOGY_SNAPSHOT_INTERNAL_H

#include "topology/cluster.h"
#include "json/json_reader.h"

struct snapshot {
    struct roost_cluster *cluster;
    struct json_reader *json;
    struct diag *diag;  /* receives errors; drops them until the file is known to be a snapshot */
    struct diag *known; /* becomes `diag` when the first key shows that the file is a snapshot */
    struct cluster_node *nodes; /* grows; moves into the arena at the end */
    int32_t count, room;
    bool is_file;        /* the user can open it and find its lines */
    bool is_full;        /* it has more nodes than a cluster may have; this was reported */
    bool has_bad_rank;   /* a node's rank is not known; this was reported */
    bool has_given_rank; /* a node's rank is from its environment */
};

enum ray_resource { RAY_GPU, RAY_NPU, RAY_RESOURCES };
enum { RANK_VARIABLES = 2 };

/* How many units of a resource Ray reports. */
struct ray_count {
    int32_t count;
    struct place at;
};

/* The value of a variable that gives a node its rank. */
struct rank_text {
    bool is_set;  /* and not empty */
    int32_t rank; /* -1 = the text is not a rank */
    struct quote text;
    struct place at;
};

/* Facts about a node, before they are settled. */
struct snapshot_facts {
    struct ray_count counts[RAY_RESOURCES];
    enum roost_accelerator labelled; /* the type of a GPU by Ray's label */
    struct rank_text ranks[RANK_VARIABLES];
};

/* Reports that `what` must be `wanted` instead of the event, with an example, and skips the value. A failed
 * event was reported already. */
bool snapshot_refuse(struct snapshot *snapshot, struct json_event event, const char *what,
                     const char *wanted, const char *example);

struct json_event snapshot_next(struct snapshot *snapshot);

/* Reads to the end of the value that the last event began. */
bool snapshot_skip(struct snapshot *snapshot);

/* A string or null, a number from 0 to `max` or null; null leaves *out as it is. */
bool snapshot_text(struct snapshot *snapshot, const char *what, const char **out);
bool snapshot_count(struct snapshot *snapshot, const char *what, int32_t max, int32_t *out);

/* The node whose object was opened at `at`. */
bool snapshot_node(struct snapshot *snapshot, struct place at, struct cluster_node *node);

/* The values of `accelerators` and `hardware` of a node; *count is what is listed. */
bool snapshot_accelerators(struct snapshot *snapshot, struct cluster_node *node, int32_t *count);
bool snapshot_hardware(struct snapshot *snapshot, struct cluster_node *node);

/* The values of `ray` and `env` of a node. */
bool snapshot_ray(struct snapshot *snapshot, struct snapshot_facts *facts);
bool snapshot_env(struct snapshot *snapshot, struct snapshot_facts *facts);

/* Settles how many accelerators of which type a node has, once its own fields agree with each other. The
 * node's own count holds; without one, Ray's count does. If both exist and differ, the lower one holds, with
 * a warning. */
void snapshot_settle_accelerators(struct snapshot *snapshot, const struct snapshot_facts *facts,
                                  struct cluster_node *node);

/* Settles the rank of a node that has no node_rank: ROOST_NODE_RANK, else RLINF_NODE_RANK. An empty
 * variable counts as not set. */
void snapshot_settle_rank(struct snapshot *snapshot, const struct snapshot_facts *facts,
                          struct cluster_node *node);

#endif
