/* bundle.h - placement groups: how many accelerators a job of trainers and inference engines reserves,
 * which of them each role sees, and in what order.
 *
 * Words. A bundle is one reservation of 1 GPU and 1 CPU. The order is the sorted list of bundles, and slot
 * s is position s in it, counted from the start of the whole reservation. A share is the section of the
 * order that a role sees. An engine answers requests with `gpus` GPUs. A part is what an engine has on one
 * node; its node-0 part serves the requests. A machine owns ports; a virtual node (num_gpus_per_node) is
 * only a way of counting.
 *
 * The settings are `roost.groups` of a config, with slime's names. Nothing here contacts a cluster or takes
 * a port. Bundles are computed once and never change, and the same input always gives the same bundles. */
#ifndef ROOST_BUNDLE_H
#define ROOST_BUNDLE_H

#include <roost/cluster.h>
#include <roost/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Amounts of GPUs and CPUs are multiples of 1/ROOST_AMOUNT_ONE, so that 0.4 + 0.4 + 0.2 is exactly 1. */
#define ROOST_AMOUNT_ONE INT64_C(10000)

/* What the servers of a server group do. */
enum roost_worker_type {
    ROOST_WORKER_REGULAR,
    ROOST_WORKER_PREFILL,
    ROOST_WORKER_DECODE,
    ROOST_WORKER_ENCODER,
    ROOST_WORKER_PLACEHOLDER, /* reserves its GPUs and starts nothing */
};

/* "regular", "prefill", ... */
ROOST_API const char *roost_worker_type_word(enum roost_worker_type type);

/* Which row of the table of layouts applies; the first match wins. A and R are the numbers of GPUs of actor
 * and rollout. The comments give the condition, the GPUs in all, and the first GPU of rollout. */
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

/* What a role sees of the order: slots first .. first + count - 1. */
struct roost_share {
    int32_t first, count;
    int32_t world_size; /* workers of the role: trainers, or parts of engines */
    int64_t gpu_each;   /* GPU, and as much CPU, of one worker, in 1/ROOST_AMOUNT_ONE */
};

/* Servers of one kind. */
struct roost_server_group {
    const char *model; /* the name of the model */
    enum roost_worker_type type;
    int32_t num_gpus, gpus_per_engine;
    int32_t first_slot; /* -1 = external: it has no slots */
    int32_t first_rank;
    int32_t first_engine, engine_count;
    bool updates_weights; /* the model is the one that is trained */
    bool needs_offload;   /* it shares GPUs with trainers and must make room for them */
};

/* Engines and their parts as columns, all borrowed from the bundles. A part has ports on its own machine.
 * The columns say how many ports of each kind it wants, and at which offset they are among all ports of
 * the machine. An offset is meaningless where no port is wanted. */
struct roost_engines {
    int32_t engine_count, part_count;

    /* --- columns of engines --- */
    const int32_t *group;      /* index of its server group */
    const int32_t *first_part; /* engine_count + 1; external engines have no parts */
    const int32_t *gpus;       /* -1 = not known (external) */
    const int32_t *first_slot; /* -1 = external */
    /* For weight updates: its first GPU, counted over all engines; -1 = not known. */
    const int32_t *offset;
    const char *const *address; /* NULL unless the engine is external */

    /* --- columns of parts --- */
    const int32_t *rank;
    const int32_t *slot;      /* the first of its GPUs */
    const int32_t *node_rank; /* within the engine; 0 is the node-0 part */
    const int32_t *machine;   /* the node that it runs on */
    const int32_t *local_gpu; /* number of its first GPU on the machine */
    /* Consecutive ports wanted for rendezvous; 0 = it shares those of its engine. */
    const int32_t *dist_ports;
    const int32_t *boot_ports;                              /* 1 for prefill */
    const int32_t *server_at, *nccl_at, *boot_at, *dist_at; /* offsets */
};

/* A node and the slots on it. A node without a GPU has none. */
struct roost_machine {
    int32_t first_slot, slot_count;
    int32_t port_count; /* ports that all parts on it want */
};

/* The whole layout. */
struct roost_layout {
    enum roost_layout_row row;
    bool is_seed;      /* profile: seed */
    bool has_machines; /* the nodes are those of a cluster, not virtual ones */
    bool has_critic;
    bool has_gpu_ids; /* shares have GPU ids beside the order */
    bool offload_train, offload_rollout;
    int32_t num_gpus, rollout_offset;
    int32_t num_gpus_per_node; /* the most that a part can have */
    struct roost_share actor, critic, rollout;
    int64_t num_cpus; /* needed in all, in 1/ROOST_AMOUNT_ONE */
    int32_t port_base;
    int32_t machine_count;
    const struct roost_machine *machines; /* by node rank, up to the last with a slot */
    size_t group_count;
    const struct roost_server_group *groups;
    struct roost_engines engines;
};

struct roost_bundles;

struct roost_bundles_options {
    /* How many slots each node really has, in their order, instead of the cluster's accelerators. NULL = as
     * the cluster says, else as num_gpus_per_node says. */
    const int32_t *slots_of_node;
    int32_t node_count;
    /* With slots_of_node: the number of each slot's GPU on its node; -1 = its id is not a number. NULL =
     * count from 0 on every node. */
    const int32_t *gpu_of_slot;
    /* Compute only num_gpus, rollout_offset and the shares of trainers; ignore engines. */
    bool sizes_only;
};

/* Whether the config has `roost.groups`. */
ROOST_API bool roost_config_has_placement_groups(const struct roost_config *config);

/* Computes the layout that `roost.groups` of the config asks for. `cluster` (may be NULL) says how many
 * accelerators and CPUs the nodes have; slots fill its nodes in node order. NULL if there was any fault:
 * `report` has all of them and `err` the first (either may be NULL). All arguments are borrowed for the
 * call; `options` may be NULL. */
ROOST_API struct roost_bundles *roost_bundles_new(const struct roost_config *config,
                                                  const struct roost_cluster *cluster,
                                                  const struct roost_bundles_options *options,
                                                  struct roost_report *report,
                                                  struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_bundles_free(struct roost_bundles *bundles);

/* Borrowed from the bundles. */
ROOST_API const struct roost_layout *roost_bundles_layout(const struct roost_bundles *bundles);

/* --- the stable order --- */

/* What a probe inside a bundle found. The texts are borrowed for the call. */
struct roost_bundle {
    int32_t index;       /* of the bundle, from 0; each index once */
    const char *node_id; /* NULL = its address identifies the node */
    const char *address; /* of the node: IPv4, IPv6 or a name; NULL = not known */
    const char *gpu_id;  /* a number, a UUID, a MIG id: any text except an empty one */
    /* The node's visible devices, "GPU-a,GPU-b"; NULL = not known. */
    const char *visible;
};

/* Resolves a name: writes its address into `out` (`size` bytes) and returns true. False if the name is not
 * known. */
typedef bool (*roost_resolve_fn)(void *ctx, const char *name, char *out, size_t size);

/* Resolves a name by the system's resolver (DNS). Of several addresses it takes the first in node order. It
 * ignores `ctx`. */
ROOST_API bool roost_resolve_system(void *ctx, const char *name, char *out, size_t size);

struct roost_order_options {
    roost_resolve_fn resolve; /* NULL = resolve no name: names are ordered as names */
    void *resolve_ctx;
};

struct roost_order;

/* A name that was resolved, and the answer. */
struct roost_resolved {
    const char *name;
    const char *address; /* NULL = not known */
};

/* Sorts bundles: by node, then by GPU, then by bundle index. The bundles of a node stay together, whatever
 * its address is. Nodes: IPv4 by value (IPv4-mapped IPv6 too), IPv6 by value, names in natural order (gpu9
 * before gpu10), nodes without an address last; ties by node id. GPUs: numbers by value, then ids by their
 * position in the node's visible devices, then other ids by bytes. Resolves each distinct name once, and
 * only if `options` (may be NULL) has `resolve`. NULL on failure; `err` (may be NULL) names the bundle, its
 * node and the fault. */
ROOST_API struct roost_order *roost_order_new(const struct roost_bundle *bundles, size_t count,
                                              const struct roost_order_options *options,
                                              struct roost_error *err) ROOST_MUST_USE;
ROOST_API void roost_order_free(struct roost_order *order);

/* Columns by slot, borrowed from the order: bundle indices, nodes (0, 1, ...), and numbers of GPUs (-1 = the
 * id is not a number). */
ROOST_API size_t roost_order_count(const struct roost_order *order);
ROOST_API const int32_t *roost_order_indices(const struct roost_order *order);
ROOST_API const int32_t *roost_order_nodes(const struct roost_order *order);
ROOST_API const int32_t *roost_order_gpus(const struct roost_order *order);
ROOST_API size_t roost_order_resolved_count(const struct roost_order *order);
ROOST_API bool roost_order_resolved(const struct roost_order *order, size_t index,
                                    struct roost_resolved *out);

#ifdef __cplusplus
}
#endif
#endif
