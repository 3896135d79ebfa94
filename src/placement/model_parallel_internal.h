/* model_parallel_internal.h - roles, shared by the three steps of model-parallel placement: roles.c
 * finds and measures them, model_mode.c decides the mode, model_parallel.c places them.
 *
 * A role is a component with a fixed meaning. Overlap and equality are judged on physical
 * accelerators (numbered over the whole cluster), so roles in different node groups compare rightly;
 * contiguity is judged on the ranks the user wrote. */
#ifndef PLACEMENT_MODEL_PARALLEL_INTERNAL_H
#define PLACEMENT_MODEL_PARALLEL_INTERNAL_H

#include "config/model_settings.h"
#include "placement/model_parallel.h"

enum role_id { ACTOR, ROLLOUT, REWARD, INFERENCE, CRITIC, CRITIC_INFERENCE, ROLE_COUNT };

struct role {
    int32_t component; /* -1 = not there */
    const struct bound_rule *rule;
    struct rank_range ranks; /* in its groups */
    int32_t count;           /* resources */
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
};

static inline bool has(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].component >= 0;
}

static inline struct place role_place(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].rule->rule->text.at;
}

/* Finds the components with a role and those that are missing. What is wrong was said. */
bool roles_find(struct model_parallel *mp, const struct bound_rule *rules);

/* Ranks, sizes and physical accelerators of every role that is there. */
bool roles_measure(struct model_parallel *mp);

/* The first pair of roles, rewards aside, that share an accelerator; false when none do. Without
 * memory *out_failed is set and true returned. */
bool roles_overlap(struct model_parallel *mp, enum role_id *out_a, enum role_id *out_b,
                   bool *out_failed);

/* Whether two roles hold the same accelerators in the same order. */
bool role_equals(const struct role *a, const struct role *b);

/* Decides plan->mode: the first match of auto, collocated, disaggregated. */
bool model_mode_choose(struct model_parallel *mp);

#endif
