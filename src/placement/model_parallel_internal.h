/* model_parallel_internal.h - roles, shared by the steps of model-parallel placement: roles.c finds and
 * measures them, model_mode.c decides the mode, model_size.c checks the sizes of the models against them,
 * model_parallel.c places them.
 *
 * Every step checks each role that is good so far, so that a fault in one role hides no fault in another.
 *
 * A role is a component with a fixed meaning. Overlap and equality are checked on physical accelerators
 * (numbered over the whole cluster), so that roles in different node groups compare correctly. Contiguity
 * is checked on the ranks that the user wrote. */
#ifndef PLACEMENT_MODEL_PARALLEL_INTERNAL_H
#define PLACEMENT_MODEL_PARALLEL_INTERNAL_H

#include "config/model_settings.h"
#include "placement/model_parallel.h"

enum role_id { ACTOR, ROLLOUT, REWARD, INFERENCE, CRITIC, CRITIC_INFERENCE, ROLE_COUNT };

struct role {
    int32_t component; /* -1 = the config has none */
    const struct bound_rule *rule;
    struct rank_range ranks; /* in its groups */
    int32_t count;           /* resources; 0 = not measured, because a fault was reported */
    int32_t *physical;       /* [count], accelerator numbers over the cluster */
};

struct model_parallel {
    struct roost_plan *plan;
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct model_settings *model;
    struct diag *diag;
    struct arena scratch;
    struct role roles[ROLE_COUNT];
    const char *names[ROLE_COUNT];
    bool is_auto;    /* the cluster is scheduled automatically: never collocated */
    bool is_settled; /* plan->mode is decided, and the roles obey its rules */
};

static inline bool has(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].component >= 0;
}

static inline bool is_measured(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].count > 0;
}

static inline struct place role_place(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].rule->rule->text.at;
}

/* Finds the components that have a role; reports required roles that are missing. */
void roles_find(struct model_parallel *mp, const struct bound_rule *rules);

/* Ranks, sizes and physical accelerators of every role whose rule is good. */
void roles_measure(struct model_parallel *mp);

/* Which roles, rewards aside, share an accelerator: bit b of out_shared[a] for a < b. False without
 * memory. */
bool roles_overlap(struct model_parallel *mp, uint8_t out_shared[ROLE_COUNT]);

/* Whether two roles hold the same accelerators in the same order. */
bool role_equals(const struct role *a, const struct role *b);

/* Decides is_auto, plan->mode and is_settled: the first match of auto, collocated, disaggregated. */
void model_mode_choose(struct model_parallel *mp);

/* Accelerators that one rollout process needs. */
int64_t rollout_each(const struct model_parallel *mp);

/* Reports model sizes that do not fit the accelerators of their roles. True when the rollout's sizes fit. */
bool model_size_check(struct model_parallel *mp);

/* How far apart the accelerators of one rollout process are; 0 when that cannot be computed: an error was
 * reported, now or before. */
int32_t model_size_stride(struct model_parallel *mp);

/* Whether rollout processes can serve on the actor's accelerators too. */
bool model_size_check_both(struct model_parallel *mp);

#endif
