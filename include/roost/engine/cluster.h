/* cluster.h - clusters, for engines and bindings: a cluster that a program describes, a cluster as the
 * managers report it, and the name that Ray has for accelerators. */
#ifndef ROOST_ENGINE_CLUSTER_H
#define ROOST_ENGINE_CLUSTER_H

#include <roost/cluster.h>
#include <roost/render.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- a cluster that a program describes --- */

/* A node. */
struct roost_node_description {
    enum roost_accelerator accelerator;
    int32_t num_accelerators;
    const char *const *hardware_types; /* one for each robot or other unit of the node */
    size_t hardware_count;
    int32_t num_cpus; /* 0 = not known */
};

/* A node group. */
struct roost_node_group_description {
    const char *label;
    /* What its ranks count. NULL = nodes; the group `node` always counts nodes. */
    const char *hardware_type;
    /* In rising order. */
    const int32_t *node_ranks;
    int32_t node_count;
    /* No type was declared: its ranks count accelerators if a node has one, else nodes. */
    bool finds_type;
};

struct roost_cluster_description {
    /* By node rank. */
    const struct roost_node_description *nodes;
    int32_t node_count;
    /* The groups `cluster` and `node` are added if they are not among these. */
    const struct roost_node_group_description *groups;
    size_t group_count;
};

/* Builds a cluster from descriptions, which it borrows for the call. NULL on failure; `err` (may be NULL)
 * says why. */
ROOST_API struct roost_cluster *roost_cluster_new_described(
    const struct roost_cluster_description *description, struct roost_error *err) ROOST_MUST_USE;

/* --- for runs on this machine --- */

/* The longest text of roost_simulated_text, NUL included. */
enum { ROOST_SIMULATED_MAX = 128 };

/* "simulated: 2 nodes with 16 accelerators run on this machine, which has 0", if the cluster has more nodes or
 * accelerators than this machine, which it looks at. Otherwise it returns false and leaves `out` as it is. */
ROOST_API bool roost_simulated_text(const struct roost_cluster *cluster,
                                    char out[ROOST_SIMULATED_MAX]);

/* --- for managers and reservations --- */

/* Writes a cluster as the managers of a run report it, in JSON: the nodes and node groups of a snapshot, and
 * the config (may be NULL) with its overrides. A run and a registry server take this text as their
 * `view`. */
ROOST_API enum roost_code roost_render_cluster_view(const struct roost_cluster *cluster,
                                                    const struct roost_config *config,
                                                    roost_write_fn write, void *ctx) ROOST_MUST_USE;

/* The Ray resource that stands for the accelerators of a node, given how many of each Ray counts there:
 * "GPU", or "NPU" if there is no whole GPU. Used to reserve a plan. */
ROOST_API const char *roost_ray_resource(double gpus, double npus);

#ifdef __cplusplus
}
#endif
#endif
