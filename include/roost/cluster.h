/* cluster.h - what processes can be placed on: nodes, accelerators, robots, node groups.
 *
 * A cluster is built once from a spec such as "2x8", a snapshot file, or this machine, and usually from a
 * config that names its node groups and robots. After that it never changes. */
#ifndef ROOST_CLUSTER_H
#define ROOST_CLUSTER_H

#include <roost/config.h>
#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, type in JSON, word in a spec */
#define ROOST_ACCELERATOR_MAP(X)                                                                   \
    X(NONE, "NO_ACCEL", "")                                                                        \
    X(NVIDIA, "NV_GPU", "NVIDIA")                                                                  \
    X(AMD, "AMD_GPU", "AMD")                                                                       \
    X(ASCEND, "NPU", "ASCEND")                                                                     \
    X(INTEL, "INTEL_GPU", "INTEL")                                                                 \
    X(MUSA, "MUSA_GPU", "MUSA")                                                                    \
    X(KUNLUN, "KUNLUN_XPU", "KUNLUN")

enum roost_accelerator {
#define X(name, type, word) ROOST_ACCELERATOR_##name,
    ROOST_ACCELERATOR_MAP(X)
#undef X
};

/* How many kinds of accelerators there are, NONE among them. */
enum {
#define X(name, type, word) +1
    ROOST_ACCELERATOR_COUNT = 0 ROOST_ACCELERATOR_MAP(X)
#undef X
};

/* "NV_GPU", "NO_ACCEL", ... */
ROOST_API const char *roost_accelerator_type(enum roost_accelerator accelerator);

/* Reads the model of a node's accelerators: "NV_GPU:A800", or "A800" alone, which is NVIDIA's as in a spec.
 * *out_model points into `text`. */
ROOST_API enum roost_code roost_accelerator_read(const char *text, enum roost_accelerator *out_type,
                                                 const char **out_model,
                                                 struct roost_error *err) ROOST_MUST_USE;

struct roost_cluster;

struct roost_cluster_options {
    /* "local", a spec ("2x8", "1x8 A800,1x4 AMD", "3x0") or the path of a snapshot file. NULL takes
     * roost.cluster of the config. */
    const char *text;
    /* A snapshot in memory, from a program that found the nodes itself; errors then call it `text`. Nodes
     * of a Ray cluster may have what Ray and their environment report (`ray`, `env`); this call derives
     * their accelerators and ranks from that. NULL = none. */
    const char *snapshot;
    /* Borrowed for the call. NULL = take all nodes, and only the built-in node groups. */
    const struct roost_config *config;
    /* How many nodes to take, in node order. 0 = as the config says, else all. It is an error if the
     * config says something else. */
    int32_t num_nodes;
};

/* Builds a cluster: finds the nodes, sorts them, keeps the first num_nodes, and adds the config's robots and
 * node groups. NULL on failure: `report` has every fault and `err` the first (either may be NULL). */
ROOST_API struct roost_cluster *roost_cluster_new(const struct roost_cluster_options *options,
                                                  struct roost_report *report,
                                                  struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_cluster_free(struct roost_cluster *cluster);

/* Whether `text` has the form of a spec; otherwise it is a file or "local". */
ROOST_API bool roost_cluster_is_spec(const char *text);

ROOST_API int32_t roost_cluster_node_count(const struct roost_cluster *cluster);
ROOST_API int64_t roost_cluster_accelerator_count(const struct roost_cluster *cluster);

/* A node. Its texts are borrowed from the cluster. */
struct roost_node {
    int32_t node_rank;
    const char *id;      /* NULL = not known */
    const char *address; /* NULL = not known: the node is synthetic */
    int32_t num_cpus;    /* -1 = not known */
    enum roost_accelerator accelerator;
    const char *accelerator_model; /* NULL = not known */
    int32_t num_accelerators;
    int32_t num_hardware; /* robots and other units */
};

/* Fills *out. False if there is no such node. */
ROOST_API bool roost_cluster_node(const struct roost_cluster *cluster, int32_t node_rank,
                                  struct roost_node *out);

/* A robot, or another unit of a node that the config counts. Borrowed from the cluster. */
struct roost_hardware {
    const char *type;
    const char *config; /* its fields as a JSON object */
};

/* Fills *out with one of the num_hardware units of a node. False if there is no such unit. */
ROOST_API bool roost_cluster_hardware(const struct roost_cluster *cluster, int32_t node_rank,
                                      int32_t index, struct roost_hardware *out);

/* A node group. Its texts and ranks are borrowed from the cluster. */
struct roost_node_group {
    const char *label;
    /* What its ranks count: "Accelerator", "Franka", ... NULL = nodes. */
    const char *hardware_type;
    const int32_t *node_ranks;
    int32_t node_count;
    int64_t resource_count; /* ranks are 0 .. resource_count - 1 */
};

/* The node groups of the config in their order, then `cluster` and `node`. */
ROOST_API size_t roost_cluster_node_group_count(const struct roost_cluster *cluster);
ROOST_API bool roost_cluster_node_group(const struct roost_cluster *cluster, size_t index,
                                        struct roost_node_group *out);

/* Finds rank `rank` of a node group: its node, and its unit of that node (0 if ranks count nodes). False if
 * there is no such group or rank. */
ROOST_API bool roost_cluster_locate(const struct roost_cluster *cluster, size_t group, int32_t rank,
                                    int32_t *out_node_rank, int32_t *out_local_rank);

#ifdef __cplusplus
}
#endif
#endif
