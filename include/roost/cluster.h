/* cluster.h - what there is to place processes on: nodes, accelerators, robots, node groups.
 *
 * A cluster is built once from a description (a spec such as "2x8", a snapshot file, or this
 * machine) and, usually, from the config that names its groups and robots; then it is only read. */
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

/* "NV_GPU", "NO_ACCEL", ... */
ROOST_API const char *roost_accelerator_type(enum roost_accelerator accelerator);

/* Reads how a node names the model of its accelerators: "NV_GPU:A800", or "A800" alone, which is
 * NVIDIA's as in a spec. *out_model points into `text`. */
ROOST_API enum roost_code roost_accelerator_read(const char *text, enum roost_accelerator *out_type,
                                                 const char **out_model,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Ray's name for the accelerators of a node where it counts these: "GPU", or "NPU" where there is no
 * whole GPU. For who reserves there what was planned. */
ROOST_API const char *roost_ray_resource(double gpus, double npus);

struct roost_cluster;

struct roost_cluster_options {
    /* "local", a spec ("2x8", "1x8 A800,1x4 AMD", "3x0") or the path of a snapshot file. NULL takes
     * roost.cluster of the config. */
    const char *text;
    /* A snapshot in memory, as a program has it that looked for the nodes itself; `text` is then what
     * errors call it. Nodes of a Ray cluster may be described by what Ray and their environment say
     * (`ray`, `env`: docs/cluster.md), which is settled here. NULL = none. */
    const char *snapshot;
    /* Borrowed for the call; NULL = no config: all nodes, and only the built-in groups. */
    const struct roost_config *config;
    /* How many nodes to take, in node order; 0 = as the config says, else all. A config that says
     * otherwise is an error. */
    int32_t num_nodes;
};

/* Builds a cluster: finds the nodes, puts them in order, keeps the first num_nodes of them, adds the
 * config's robots and node groups. Faults go to `report` and `err` (either may be NULL). NULL on
 * failure. */
ROOST_API struct roost_cluster *roost_cluster_new(const struct roost_cluster_options *options,
                                                  struct roost_report *report,
                                                  struct roost_error *err);
ROOST_API void roost_cluster_free(struct roost_cluster *cluster);

/* A node of a cluster that somebody else describes. */
struct roost_node_part {
    enum roost_accelerator accelerator;
    int32_t num_accelerators;
    const char *const *hardware_types; /* one for every robot and the like on it */
    size_t hardware_count;
    int32_t num_cpus; /* 0 = not known */
};

/* A node group of such a cluster. */
struct roost_group_part {
    const char *label;
    const char *hardware_type; /* what its ranks count; NULL = nodes, as always for `node` */
    const int32_t *node_ranks; /* rising */
    int32_t node_count;
    bool finds_type; /* no type was declared: accelerators where a node has one, else nodes */
};

struct roost_cluster_parts {
    const struct roost_node_part *nodes; /* by node rank */
    int32_t node_count;
    const struct roost_group_part
        *groups; /* `cluster` and `node` are added when they are not here */
    size_t group_count;
};

/* Builds a cluster from parts, all borrowed for the call. NULL on failure, `err` (may be NULL) says
 * why. */
ROOST_API struct roost_cluster *roost_cluster_new_parts(const struct roost_cluster_parts *parts,
                                                        struct roost_error *err);

/* Whether `text` has the form of a spec, rather than being a file or "local". */
ROOST_API bool roost_cluster_is_spec(const char *text);

ROOST_API int32_t roost_cluster_node_count(const struct roost_cluster *cluster);
ROOST_API int64_t roost_cluster_accelerator_count(const struct roost_cluster *cluster);

/* A node, text borrowed from the cluster. */
struct roost_node {
    int32_t node_rank;
    const char *id;      /* NULL = not known */
    const char *address; /* NULL = not known, the node is synthetic */
    int32_t num_cpus;    /* -1 = not known */
    enum roost_accelerator accelerator;
    const char *accelerator_model; /* NULL = not known */
    int32_t num_accelerators;
    int32_t num_hardware; /* robots and the like */
};

/* Fills *out; false when there is no such node. */
ROOST_API bool roost_cluster_node(const struct roost_cluster *cluster, int32_t node_rank,
                                  struct roost_node *out);

/* A robot, or anything else that a node has and the config counts; borrowed from the cluster. */
struct roost_hardware {
    const char *type;
    const char *config; /* its fields as a JSON object */
};

/* Fills *out with one of a node's num_hardware units; false when there is no such. */
ROOST_API bool roost_cluster_hardware(const struct roost_cluster *cluster, int32_t node_rank,
                                      int32_t index, struct roost_hardware *out);

/* A node group, text and ranks borrowed from the cluster. */
struct roost_node_group {
    const char *label;
    const char
        *hardware_type; /* what its ranks count: "Accelerator", "Franka", ...; NULL = nodes */
    const int32_t *node_ranks;
    int32_t node_count;
    int64_t resource_count; /* ranks are 0 .. resource_count - 1 */
};

/* Configured groups in the order written, then `cluster` and `node`. */
ROOST_API size_t roost_cluster_group_count(const struct roost_cluster *cluster);
ROOST_API bool roost_cluster_group(const struct roost_cluster *cluster, size_t index,
                                   struct roost_node_group *out);

/* Where rank `rank` of a group is: its node, and which unit of that node it is (0 where ranks count
 * nodes). false when there is no such group or rank. */
ROOST_API bool roost_cluster_locate(const struct roost_cluster *cluster, size_t group, int32_t rank,
                                    int32_t *out_node_rank, int32_t *out_local_rank);

#ifdef __cplusplus
}
#endif
#endif
