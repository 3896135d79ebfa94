/* plan.h - the place of every process of every component.
 *
 * A plan consists of columns: for each component, arrays with one number per process. It is computed once,
 * from a config and a cluster or from one strategy and a cluster. It owns its columns and never changes.
 * The same input always gives the same plan. */
#ifndef ROOST_PLAN_H
#define ROOST_PLAN_H

#include <roost/cluster.h>
#include <roost/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the components of a config are placed. */
enum roost_mode {
    ROOST_MODE_HYBRID,         /* every component as the config says */
    ROOST_MODE_MODEL_PARALLEL, /* actor, rollout, reward, ... by the sizes of their models */
};

/* The kind of a plan. ROOST_MODE_HYBRID gives ROOST_PLAN_HYBRID. */
enum roost_plan_mode {
    ROOST_PLAN_HYBRID,
    ROOST_PLAN_COLLOCATED,    /* actor and rollout share their accelerators */
    ROOST_PLAN_DISAGGREGATED, /* each has its own accelerators */
    ROOST_PLAN_AUTO,          /* accelerators move between them during the run */
};

enum roost_strategy { ROOST_STRATEGY_FLEXIBLE, ROOST_STRATEGY_PACKED, ROOST_STRATEGY_NODE };

/* Which rule LOCAL_RANK follows. */
enum roost_local_rank {
    ROOST_LOCAL_RANK_RLINF,
    ROOST_LOCAL_RANK_TORCHRUN,
    ROOST_LOCAL_RANK_ZERO,
    ROOST_LOCAL_RANK_DEVICE,
};

/* The words that JSON and Python use: "hybrid", "flexible", "rlinf". */
ROOST_API const char *roost_plan_mode_word(enum roost_plan_mode mode);
ROOST_API const char *roost_strategy_word(enum roost_strategy strategy);
ROOST_API const char *roost_local_rank_word(enum roost_local_rank rule);

/* The ranks from first to last, both included. */
struct roost_range {
    int32_t first, last;
};

/* Ranks start..end in blocks: every process holds per_process of them, `stride` apart. */
struct roost_packed {
    int32_t start, end;
    int32_t per_process; /* at least 1 */
    int32_t stride;      /* at least 1 */
};

/* One component. Every array is indexed by process rank and borrowed from the plan. */
struct roost_component {
    const char *name; /* "" for a plan of one strategy */
    enum roost_strategy strategy;
    struct roost_packed packed; /* for the strategy `packed` */
    enum roost_local_rank local_rank_rule;
    bool isolate_accelerator;
    int32_t world_size;
    const char *const *node_groups; /* labels; `node_group` below indexes them */
    int32_t node_group_count;
    const struct roost_range *hardware_ranges; /* resource ranks in the groups, as written */
    int32_t hardware_range_count;

    const int32_t *cluster_node_rank;
    const int32_t *placement_node_rank;
    const int32_t *local_accelerator_rank; /* -1 = the node has none */
    const int32_t *local_rank;
    const int32_t *local_world_size;
    const int32_t *node_group;
    const uint8_t *accelerator; /* enum roost_accelerator of the node */

    /* local_hardware_ranks of process p: hardware[first_hardware[p] .. first_hardware[p + 1] - 1] */
    const int32_t *first_hardware; /* world_size + 1 */
    const int32_t *hardware;

    /* visible_accelerators: process p sees accelerators 0 .. visible_count[p] - 1 of its node; where
     * the column is NULL or -1 it sees exactly its own hardware. */
    const int32_t *visible_count;
};

/* Sizes that model-parallel placement derives. A missing component has world size 0, but the sizes of its
 * model are set. */
struct roost_model_parallel {
    int32_t actor_world_size, actor_tp_size, actor_pp_size, actor_cp_size, actor_dp_size;
    int32_t critic_world_size, critic_tp_size, critic_pp_size, critic_cp_size, critic_dp_size;
    int32_t inference_world_size, inference_tp_size, inference_pp_size, inference_dp_size;
    int32_t critic_inference_world_size, critic_inference_tp_size, critic_inference_pp_size,
        critic_inference_dp_size;
    int32_t rollout_world_size, rollout_tp_size, rollout_pp_size, rollout_dp_size;
    int32_t reward_world_size;
    bool has_dedicated_inference, has_dedicated_critic_inference;
};

struct roost_plan;

struct roost_plan_options {
    enum roost_mode mode;
    /* Every process sees all accelerators of its node. */
    bool shares_accelerators;
};

/* Places every component of the config. For ROOST_MODE_MODEL_PARALLEL the config must have been read with
 * `reads_model`. The cluster must have as many nodes as the config says, unless it was built from
 * descriptions. NULL if there was any fault: `report` has those of all components and `err` the first
 * (either may be NULL). All arguments are borrowed for the call; `options` may be NULL. */
ROOST_API struct roost_plan *roost_plan_new(const struct roost_config *config,
                                            const struct roost_cluster *cluster,
                                            const struct roost_plan_options *options,
                                            struct roost_report *report,
                                            struct roost_error *err) ROOST_MUST_USE;

/* Checks what needs no cluster: the rank texts of all components and their sum. If the config was read for
 * model-parallel placement, also checks that it has the components for it. */
ROOST_API enum roost_code roost_plan_check_texts(const struct roost_config *config,
                                                 struct roost_report *report,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Warns about what is valid but looks like a mistake: idle accelerators, env_configs that reach no process,
 * sizes of a model that only model-parallel placement reads. */
ROOST_API void roost_plan_advise(const struct roost_plan *plan, const struct roost_config *config,
                                 const struct roost_cluster *cluster, struct roost_report *report);

ROOST_API void roost_plan_free(struct roost_plan *plan);

ROOST_API enum roost_plan_mode roost_plan_mode(const struct roost_plan *plan);
ROOST_API size_t roost_plan_component_count(const struct roost_plan *plan);

/* A component, borrowed from the plan. NULL if there is no such component. In a model-parallel plan with
 * critic_inference, `actor_inference` is another name of `inference`. */
ROOST_API const struct roost_component *roost_plan_component(const struct roost_plan *plan,
                                                             size_t index);
ROOST_API const struct roost_component *roost_plan_find(const struct roost_plan *plan,
                                                        const char *name);

/* The derived sizes. NULL unless the plan is model-parallel. */
ROOST_API const struct roost_model_parallel *roost_plan_model_parallel(
    const struct roost_plan *plan);

/* --- one strategy on a cluster: plans with a single component that has no name --- */

/* What the ranks of a strategy count: labels of node groups, in order. None = `cluster`. */
struct roost_scope {
    const char *const *labels;
    size_t label_count;
    bool shares_accelerators;
};

/* Check a strategy without a cluster. The constructors below check it again. */
ROOST_API enum roost_code roost_packed_check(const struct roost_packed *packed,
                                             struct roost_error *err) ROOST_MUST_USE;
ROOST_API enum roost_code roost_flexible_check(const int32_t *first, const int32_t *ranks,
                                               int32_t process_count,
                                               struct roost_error *err) ROOST_MUST_USE;
ROOST_API enum roost_code roost_node_check(const int32_t *node_ranks, int32_t process_count,
                                           struct roost_error *err) ROOST_MUST_USE;

ROOST_API struct roost_plan *roost_plan_new_packed(const struct roost_cluster *cluster,
                                                   const struct roost_scope *scope,
                                                   const struct roost_packed *packed,
                                                   struct roost_error *err) ROOST_MUST_USE;

/* Process i holds ranks[first[i] .. first[i + 1] - 1]; `first` has process_count + 1 entries. Processes are
 * numbered by their lowest rank. */
ROOST_API struct roost_plan *roost_plan_new_flexible(const struct roost_cluster *cluster,
                                                     const struct roost_scope *scope,
                                                     const int32_t *first, const int32_t *ranks,
                                                     int32_t process_count,
                                                     struct roost_error *err) ROOST_MUST_USE;

/* Process i runs on node node_ranks[i] of the scope, after sorting. */
ROOST_API struct roost_plan *roost_plan_new_node(const struct roost_cluster *cluster,
                                                 const struct roost_scope *scope,
                                                 const int32_t *node_ranks, int32_t process_count,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Whether a process holds the accelerators in its hardware[]. Processes placed on nodes or robots hold none,
 * whatever they see. `cluster` is the one of the plan. */
ROOST_API bool roost_component_holds_accelerators(const struct roost_component *component,
                                                  const struct roost_cluster *cluster,
                                                  int32_t rank);

/* --- from a component back to its strategy, to place it on another cluster --- */

/* Fills out_ranks with one rank for each entry of the component's hardware[] (for the strategy `node`: one
 * per process). With these ranks, and with its node_groups as labels, the constructors above place the
 * component as it is. False if `cluster` is not the one of the plan. A packed component has `packed`
 * instead. */
ROOST_API bool roost_component_ranks(const struct roost_component *component,
                                     const struct roost_cluster *cluster, int32_t *out_ranks);

#ifdef __cplusplus
}
#endif
#endif
