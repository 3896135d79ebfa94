/* bundle.h - placement groups: how many accelerators a job of trainers and inference engines takes
 * in one reservation, which part of it each role sees, and in what order.
 *
 * Words. A bundle is one reservation of 1 GPU and 1 CPU. The order is the list of bundles after
 * sorting; slot s is position s in it, counted from the start of the whole reservation. A share is a
 * role's piece of the order. An engine answers requests with `gpus` GPUs; a part is the piece of an
 * engine on one node, and the node-0 part is the one that serves. A machine owns ports; a virtual
 * node (num_gpus_per_node) is only a way of counting.
 *
 * The settings are `roost.groups` of a config, with slime's names. Nothing here talks to a cluster
 * or takes a port: bundles are computed once, then only read, and the same input gives the same
 * bundles, always. */
#ifndef ROOST_BUNDLE_H
#define ROOST_BUNDLE_H

#include <roost/cluster.h>
#include <roost/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Amounts of GPUs and CPUs are counted in this many pieces of one, so that 0.4 + 0.4 + 0.2 is 1. */
#define ROOST_AMOUNT_ONE INT64_C(10000)

/* What the servers of a group do. */
enum roost_worker_type {
    ROOST_WORKER_REGULAR,
    ROOST_WORKER_PREFILL,
    ROOST_WORKER_DECODE,
    ROOST_WORKER_ENCODER,
    ROOST_WORKER_PLACEHOLDER, /* reserves its GPUs and starts nothing */
};

/* "regular", "prefill", ... */
ROOST_API const char *roost_worker_type_word(enum roost_worker_type type);

/* Which row of the layout's table applied; the first that matches wins. A is the actor's GPUs, R
 * rollout's. */
enum roost_layout_row {
    ROOST_LAYOUT_TRAIN_ONLY,       /* debug_train_only: A, rollout from 0 */
    ROOST_LAYOUT_EXTERNAL_ROLLOUT, /* rollout_external and debug_rollout_only: A, 0 */
    ROOST_LAYOUT_EXTERNAL,         /* rollout_external: A, A */
    ROOST_LAYOUT_ROLLOUT_ONLY,     /* debug_rollout_only: R, 0 */
    ROOST_LAYOUT_COLOCATE,         /* colocate: the larger of A and R (profile seed: A), 0 */
    ROOST_LAYOUT_DISAGGREGATED,    /* otherwise: A + R, A */
};

/* "train-only", "disaggregated", ... */
ROOST_API const char *roost_layout_row_word(enum roost_layout_row row);

/* A role's piece of the order: slots first .. first + count - 1. */
struct roost_share {
    int32_t first, count;
    int32_t world_size; /* workers of the role: trainers, or parts of engines */
    int64_t gpu_each;   /* of one GPU, in 1/ROOST_AMOUNT_ONE; as much of one CPU */
};

/* Servers of one kind. */
struct roost_server_group {
    const char *model; /* its name */
    enum roost_worker_type type;
    int32_t num_gpus, gpus_per_engine;
    int32_t first_slot; /* -1 = external: it has no slots */
    int32_t first_rank;
    int32_t first_engine, engine_count;
    bool updates_weights; /* the model is the one being trained */
    bool needs_offload;   /* it shares GPUs with trainers and is moved away for them */
};

/* Engines and their parts, as columns; all arrays are borrowed from the bundles. A part has ports
 * of its own machine: how many it wants of each kind, and where they stand in the row of all ports
 * that its machine is asked for. 0 wanted = none, and the offset means nothing. */
struct roost_engines {
    int32_t engine_count, part_count;
    /* of engines */
    const int32_t *group;      /* index of its server group */
    const int32_t *first_part; /* engine_count + 1; external engines have no parts */
    const int32_t *gpus;       /* -1 = not known (external) */
    const int32_t *first_slot; /* -1 = external */
    const int32_t
        *offset; /* for weight updates: its first GPU, counted over all engines; -1 = not known */
    const char *const *address; /* NULL, or of external engines */
    /* of parts */
    const int32_t *rank;
    const int32_t *slot;       /* first of its GPUs */
    const int32_t *node_rank;  /* within the engine; 0 is the node-0 part */
    const int32_t *machine;    /* the node it runs on */
    const int32_t *local_gpu;  /* number of its first GPU on the machine */
    const int32_t *dist_ports; /* ports wanted in a block for rendezvous; 0 = shares its engine's */
    const int32_t *boot_ports; /* 1 for prefill */
    const int32_t *server_at, *nccl_at, *boot_at, *dist_at; /* offsets */
};

/* A node, and the slots that are on it (none, where it has no GPU). */
struct roost_machine {
    int32_t first_slot, slot_count;
    int32_t port_count; /* wanted by all parts on it */
};

/* Everything that is the same for all engines. */
struct roost_layout {
    enum roost_layout_row row;
    bool is_seed;      /* profile: seed */
    bool has_machines; /* nodes are those of a cluster, not counted by num_gpus_per_node */
    bool has_critic;
    bool has_gpu_ids; /* shares tell GPU ids beside the order */
    bool offload_train, offload_rollout;
    int32_t num_gpus, rollout_offset;
    int32_t num_gpus_per_node; /* the largest part */
    struct roost_share actor, critic, rollout;
    int64_t num_cpus; /* all that is needed, in 1/ROOST_AMOUNT_ONE */
    int32_t port_base;
    int32_t machine_count;
    const struct roost_machine *machines; /* by node rank, up to the last that has a slot */
    size_t group_count;
    const struct roost_server_group *groups;
    struct roost_engines engines;
};

struct roost_bundles;

struct roost_bundles_options {
    /* Slots that were really found on each node, in their order, instead of a cluster's accelerators;
     * NULL = as the cluster says, or else as num_gpus_per_node. */
    const int32_t *slots_of_node;
    int32_t node_count;
    /* With slots_of_node: the number of each slot's GPU on its node, as it was found, for all of them;
     * -1 = its id is no number. NULL = counted from 0 on every node. */
    const int32_t *gpu_of_slot;
    bool
        sizes_only; /* num_gpus, rollout_offset and the trainers' shares; engines are not looked at */
};

/* Whether the config has `roost.groups`. */
ROOST_API bool roost_config_has_groups(const struct roost_config *config);

/* Lays out what `roost.groups` of the config asks for. `cluster` (may be NULL) tells how many
 * accelerators and CPUs the nodes have; slots fill its nodes in node order. Faults go to `report`,
 * the first to `err` (either may be NULL); NULL when there was any. All arguments are borrowed for
 * the call; `options` may be NULL. */
ROOST_API struct roost_bundles *roost_bundles_new(const struct roost_config *config,
                                                  const struct roost_cluster *cluster,
                                                  const struct roost_bundles_options *options,
                                                  struct roost_report *report,
                                                  struct roost_error *err);
ROOST_API void roost_bundles_free(struct roost_bundles *bundles);

/* Borrowed from the bundles. */
ROOST_API const struct roost_layout *roost_bundles_layout(const struct roost_bundles *bundles);

/* --- the stable order --- */

/* What a probe answered from inside a bundle. Texts are borrowed for the call. */
struct roost_bundle {
    int32_t index;       /* of the bundle, from 0, each once */
    const char *node_id; /* who the node is; NULL = its address tells */
    const char *address; /* of the node: IPv4, IPv6 or a name; NULL = not known */
    const char *gpu_id;  /* a number, a UUID, a MIG id: any text but an empty one */
    /* The node's visible devices, "GPU-a,GPU-b"; NULL = not known. */
    const char *visible;
};

/* Asks who a name is: writes an address into `out` (`size` bytes) and returns true, or false when
 * nobody knows. */
typedef bool (*roost_resolve_fn)(void *ctx, const char *name, char *out, size_t size);

/* Asks the system's resolver (DNS). Of several addresses the first in the order of nodes. `ctx` is
 * not used. */
ROOST_API bool roost_resolve_system(void *ctx, const char *name, char *out, size_t size);

struct roost_order_options {
    roost_resolve_fn resolve; /* NULL = nobody is asked: names are ordered as names */
    void *resolve_ctx;
};

struct roost_order;

/* A name that was asked for, and the answer. */
struct roost_resolved {
    const char *name;
    const char *address; /* NULL = nobody knew */
};

/* Puts bundles in order: by node, then by GPU, then by bundle index. The bundles of a node stay
 * together, whatever its address is. Nodes: IPv4 by value (IPv4-mapped IPv6 too), IPv6 by value,
 * names in natural order (gpu9 before gpu10), nodes without an address last; ties by node id. GPUs:
 * numbers by value, then ids by their position in the node's visible devices, then other ids by
 * bytes. Each distinct name is asked for once, and only when `options` (may be NULL) says so. NULL
 * on failure, `err` (may be NULL) names the bundle, its node and what is wrong. */
ROOST_API struct roost_order *roost_order_new(const struct roost_bundle *bundles, size_t count,
                                              const struct roost_order_options *options,
                                              struct roost_error *err);
ROOST_API void roost_order_free(struct roost_order *order);

/* Borrowed from the order. */
ROOST_API size_t roost_order_count(const struct roost_order *order);
ROOST_API const int32_t *roost_order_indices(const struct roost_order *order); /* by slot */
ROOST_API const int32_t *roost_order_nodes(
    const struct roost_order *order); /* by slot: 0, 1, ... */
ROOST_API const int32_t *roost_order_gpus(
    const struct roost_order *order); /* by slot: the GPU's number; -1 = its id is none */
ROOST_API size_t roost_order_resolved_count(const struct roost_order *order);
ROOST_API bool roost_order_resolved(const struct roost_order *order, size_t index,
                                    struct roost_resolved *out);

#ifdef __cplusplus
}
#endif
#endif
