/* model_parallel.c - roles -> mode -> strategies. A role with explicit process ranks is placed
 * exactly as written; a role without them gets the packed placement of its mode. */
#include "placement/model_parallel_internal.h"

static bool place_packed(struct model_parallel *mp, enum role_id id,
                         const struct selection *selection, struct rank_range ranks, int32_t each,
                         int32_t stride)
{
    struct roost_component *component = &mp->plan->components[mp->roles[id].component];
    struct arena *arena = &mp->plan->arena;
    struct roost_packed packed = {ranks.first, ranks.last, each, stride};
    struct holdings holdings;
    struct row_context context = {
        .cluster = mp->cluster,
        .selection = selection,
        .arena = arena,
        .diag = mp->diag,
        .at = role_place(mp, id),
        .name = component->name,
    };
    component->strategy = ROOST_STRATEGY_PACKED;
    component->packed = packed;
    return packed_hold(&packed, selection, arena, context.at, mp->diag, &holdings) &&
           component_set_labels(component, arena, selection, mp->diag) &&
           component_set_range(component, arena, ranks, mp->diag) &&
           rows_fill(&context, &holdings, component);
}

static bool place_as_written(struct model_parallel *mp, enum role_id id)
{
    struct roost_component *component = &mp->plan->components[mp->roles[id].component];
    struct row_context context = {.cluster = mp->cluster,
                                  .arena = &mp->plan->arena,
                                  .diag = mp->diag,
                                  .name = component->name};
    return component_place(&context, mp->roles[id].rule, component);
}

/* One process an accelerator, unless processes were written. */
static bool place_plain(struct model_parallel *mp, enum role_id id)
{
    const struct role *role = &mp->roles[id];
    if (role->rule->text.has_processes)
        return place_as_written(mp, id);
    return place_packed(mp, id, &role->rule->selection, role->ranks, 1, 1);
}

static void place_actor(struct model_parallel *mp, const struct selection *all)
{
    struct rank_range whole = {0, (int32_t)mp->cluster->accelerator_count - 1};
    if (!mp->is_auto)
        place_plain(mp, ACTOR);
    else if (mp->is_settled)
        place_packed(mp, ACTOR, all, whole, 1, 1);
}

static void place_rollout(struct model_parallel *mp, const struct selection *all)
{
    const struct role *role = &mp->roles[ROLLOUT];
    if (role->rule->text.has_processes) {
        place_as_written(mp, ROLLOUT);
        return;
    }
    int32_t each = (int32_t)rollout_each(mp), stride = model_size_stride(mp);
    if (mp->is_auto && mp->model->preprocesses) {
        struct rank_range both = {0, role->physical[role->count - 1]};
        if (mp->is_settled && model_size_check_both(mp))
            place_packed(mp, ROLLOUT, all, both, each, 1);
    } else if (stride > 0) {
        place_packed(mp, ROLLOUT, &role->rule->selection, role->ranks, each, stride);
    }
}

static void place_roles(struct model_parallel *mp, bool is_rollout_sized)
{
    struct selection all;
    if (!selection_init(&all, &mp->scratch, mp->cluster, NULL, 0, mp->diag))
        return;
    if (is_measured(mp, ACTOR))
        place_actor(mp, &all);
    if (is_rollout_sized)
        place_rollout(mp, &all);
    else if (is_measured(mp, ROLLOUT) && !mp->roles[ROLLOUT].rule->text.has_processes)
        model_size_stride(mp); /* the sizes of the two can clash whatever rollout has */
    for (enum role_id id = REWARD; id < ROLE_COUNT; id++) {
        bool is_unwanted =
            mp->plan->mode == ROOST_PLAN_COLLOCATED && (id == INFERENCE || id == CRITIC_INFERENCE);
        if (is_measured(mp, id) && !is_unwanted)
            place_plain(mp, id);
    }
}

static int32_t data_size(int32_t count, const struct model_split *split)
{
    return count / split->tensor.value / split->pipeline.value / split->context.value;
}

static bool derive_sizes(struct model_parallel *mp)
{
    struct roost_model_parallel *out =
        arena_zeroed(&mp->plan->arena, struct roost_model_parallel, 1);
    if (!out) {
        diag_nomem(mp->diag);
        return false;
    }
    const struct model_settings *model = mp->model;
    const struct role *roles = mp->roles;
#define SIZES(role, id, split)                                                                     \
    out->role##_world_size = has(mp, id) ? roles[id].count : 0;                                    \
    out->role##_tp_size = (split).tensor.value;                                                    \
    out->role##_pp_size = (split).pipeline.value;                                                  \
    out->role##_dp_size = data_size(out->role##_world_size, &(split));
    SIZES(actor, ACTOR, model->actor)
    SIZES(critic, CRITIC, model->critic)
    SIZES(inference, INFERENCE, model->inference)
    SIZES(critic_inference, CRITIC_INFERENCE, model->critic_inference)
#undef SIZES
    out->actor_cp_size = model->actor.context.value;
    out->critic_cp_size = model->critic.context.value;
    bool takes_both = mp->plan->mode == ROOST_PLAN_AUTO && model->preprocesses &&
                      !roles[ROLLOUT].rule->text.has_processes;
    out->rollout_world_size = roles[ROLLOUT].count + (takes_both ? roles[ACTOR].count : 0);
    out->rollout_tp_size = model->rollout_tensor.value;
    out->rollout_pp_size = model->rollout_pipeline.value;
    out->rollout_dp_size = (int32_t)(out->rollout_world_size / rollout_each(mp));
    out->reward_world_size = roles[REWARD].count;
    bool is_apart = mp->plan->mode != ROOST_PLAN_COLLOCATED;
    out->has_dedicated_inference = is_apart && has(mp, INFERENCE);
    out->has_dedicated_critic_inference = is_apart && has(mp, CRITIC_INFERENCE);
    mp->plan->model_parallel = out;
    return true;
}

void model_parallel_place(struct roost_plan *plan, const struct roost_config *config,
                          const struct roost_cluster *cluster, const struct bound_rule *rules,
                          bool *is_placed, struct diag *diag)
{
    struct model_parallel mp = {
        .plan = plan, .config = config, .cluster = cluster, .model = config->model, .diag = diag};
    if (!mp.model) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
                   "the config was read without what model-parallel placement needs");
        diag_hint(diag, "set reads_model in the options it is read with");
        return;
    }
    size_t errors = diag->errors;
    roles_find(&mp, rules);
    for (enum role_id id = 0; id < ROLE_COUNT; id++)
        if (has(&mp, id))
            is_placed[mp.roles[id].component] = true;
    roles_measure(&mp);
    model_mode_choose(&mp);
    place_roles(&mp, model_size_check(&mp));
    if (diag->errors == errors && mp.is_settled)
        derive_sizes(&mp);
    arena_release(&mp.scratch);
}
