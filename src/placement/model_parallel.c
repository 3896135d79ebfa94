/* model_parallel.c - roles -> mode -> strategies. A role with explicit process ranks is placed
 * exactly as written; one without gets the packed placement its mode asks for. */
#include "placement/model_parallel_internal.h"

static bool check_tensor(struct model_parallel *mp, enum role_id id, struct setting tensor)
{
    if (tensor.value <= mp->roles[id].count)
        return true;
    diag_error(mp->diag, ROOST_ERR_RANK, tensor.at.line ? tensor.at : role_place(mp, id),
               "the tensor parallel size of '%s' is %d, larger than its accelerators, %d",
               mp->names[id], (int)tensor.value, (int)mp->roles[id].count);
    diag_hint(mp->diag, "lower the size to at most %d, or give '%s' %d accelerators",
              (int)mp->roles[id].count, mp->names[id], (int)tensor.value);
    return false;
}

/* Accelerators that one rollout process needs. */
static int64_t rollout_each(const struct model_parallel *mp)
{
    return (int64_t)mp->model->rollout_tensor.value * mp->model->rollout_pipeline.value;
}

static bool check_rollout_size(struct model_parallel *mp, int64_t count, const char *what)
{
    int64_t each = rollout_each(mp);
    if (count % each == 0)
        return true;
    struct place at = mp->model->rollout_tensor.at;
    diag_error(
        mp->diag, ROOST_ERR_RANK, at.line ? at : role_place(mp, ROLLOUT),
        "%s has %lld, not a multiple of the %lld accelerators that one rollout process takes "
        "(tensor %d x pipeline %d)",
        what, (long long)count, (long long)each, (int)mp->model->rollout_tensor.value,
        (int)mp->model->rollout_pipeline.value);
    int64_t below = count / each * each;
    if (below)
        diag_hint(mp->diag, "give it %lld or %lld accelerators, or lower the sizes of rollout",
                  (long long)below, (long long)below + each);
    else
        diag_hint(mp->diag, "give it %lld accelerators, or lower the sizes of rollout",
                  (long long)each);
    return false;
}

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
    const struct rank_text *text = &mp->roles[id].rule->text;
    for (int32_t i = 0; id == ROLLOUT && i < text->count; i++) {
        int64_t units = range_size(text->entries[i].resources);
        int64_t each = units / range_size(text->entries[i].processes);
        if (!check_rollout_size(mp, each ? each : 1, "a process of 'rollout'"))
            return false;
    }
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

static bool place_rollout(struct model_parallel *mp, const struct selection *all)
{
    const struct role *role = &mp->roles[ROLLOUT];
    int32_t actor_tensor = mp->model->actor.tensor.value, tensor = mp->model->rollout_tensor.value;
    if (role->rule->text.has_processes)
        return place_as_written(mp, ROLLOUT);
    if (!check_rollout_size(mp, role->count, "'rollout'"))
        return false;
    int32_t each = (int32_t)rollout_each(mp), stride = 1;
    if (mp->plan->mode == ROOST_PLAN_COLLOCATED && actor_tensor > tensor) {
        if (actor_tensor % tensor != 0) {
            diag_error(
                mp->diag, ROOST_ERR_RANK, mp->model->actor.tensor.at,
                "the actor's tensor parallel size %d is not a multiple of rollout's %d, so they "
                "cannot share accelerators",
                (int)actor_tensor, (int)tensor);
            diag_hint(mp->diag, "make the actor's %d, or rollout's a divisor of %d",
                      (int)(actor_tensor / tensor * tensor), (int)actor_tensor);
            return false;
        }
        stride = actor_tensor / tensor;
    }
    if (mp->plan->mode == ROOST_PLAN_AUTO && mp->model->preprocesses) {
        struct rank_range both = {0, role->physical[role->count - 1]};
        return check_rollout_size(mp, mp->roles[ACTOR].count, "'actor'") &&
               place_packed(mp, ROLLOUT, all, both, each, 1);
    }
    return place_packed(mp, ROLLOUT, &role->rule->selection, role->ranks, each, stride);
}

static bool place_roles(struct model_parallel *mp, bool *is_placed)
{
    struct selection all;
    if (!selection_init(&all, &mp->scratch, mp->cluster, NULL, 0, mp->diag))
        return false;
    for (enum role_id id = 0; id < ROLE_COUNT; id++)
        if (has(mp, id))
            is_placed[mp->roles[id].component] = true;
    bool is_good = check_tensor(mp, ACTOR, mp->model->actor.tensor);
    is_good = check_tensor(mp, ROLLOUT, mp->model->rollout_tensor) && is_good;
    if (!is_good)
        return false;
    struct rank_range whole = {0, (int32_t)mp->cluster->accelerator_count - 1};
    is_good = mp->plan->mode == ROOST_PLAN_AUTO ? place_packed(mp, ACTOR, &all, whole, 1, 1)
                                                : place_plain(mp, ACTOR);
    is_good = place_rollout(mp, &all) && is_good;
    for (enum role_id id = REWARD; id < ROLE_COUNT; id++)
        if (has(mp, id))
            is_good = place_plain(mp, id) && is_good;
    return is_good;
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
    if (roles_find(&mp, rules) && roles_measure(&mp) && model_mode_choose(&mp) &&
        place_roles(&mp, is_placed))
        derive_sizes(&mp);
    arena_release(&mp.scratch);
}
