/* model_parallel.c - roles -> mode -> strategies.
 *
 * A role is a component with a fixed meaning. Overlap and equality are judged on physical
 * accelerators (numbered over the whole cluster), so roles in different node groups compare rightly;
 * contiguity is judged on the ranks the user wrote. A role with explicit process ranks is placed
 * exactly as written; one without gets the packed placement its mode asks for. */
#include "placement/model_parallel.h"

#include <string.h>

#include "config/model_settings.h"

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

static bool has(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].component >= 0;
}

static struct place role_place(const struct model_parallel *mp, enum role_id id)
{
    return mp->roles[id].rule->rule->text.at;
}

static int32_t find_component(const struct roost_config *config, const char *name)
{
    for (int32_t c = 0; c < config->component_count; c++)
        if (strcmp(config->components[c].name, name) == 0)
            return c;
    return -1;
}

/* Roles that are there, and those that must be. */
static bool find_roles(struct model_parallel *mp, const struct bound_rule *rules)
{
    static const char *const names[] = {"actor",     "rollout", "reward",
                                        "inference", "critic",  "critic_inference"};
    static const char *const needed[] = {"Actor", "Rollout", "Reward"};
    bool is_good = true;
    for (int id = 0; id < ROLE_COUNT; id++) {
        struct role *role = &mp->roles[id];
        mp->names[id] = names[id];
        role->component = find_component(mp->config, names[id]);
        if (id == INFERENCE && role->component < 0) {
            role->component = find_component(mp->config, "actor_inference");
            mp->names[id] = role->component < 0 ? names[id] : "actor_inference";
        }
        if (role->component >= 0) {
            role->rule = &rules[mp->config->components[role->component].rule];
            is_good = is_good && role->rule->is_good;
            continue;
        }
        if (id > REWARD)
            continue;
        is_good = false;
        struct place at = mp->config->component_count ? mp->config->components[0].at : NOWHERE;
        diag_error(mp->diag, ROOST_ERR_SCHEMA, at,
                   "%s GPUs must be specified: model-parallel placement needs a component '%s'",
                   needed[id], names[id]);
        diag_hint(mp->diag, "place '%s', or plan with --mode hybrid", names[id]);
    }
    return is_good;
}

static bool check_units(struct model_parallel *mp, enum role_id id)
{
    const struct selection *selection = &mp->roles[id].rule->selection;
    bool is_accelerator = !selection->is_node;
    for (int32_t g = 0; g < selection->group_count; g++)
        is_accelerator = is_accelerator && selection->groups[g]->is_accelerator;
    if (!is_accelerator)
        diag_error(mp->diag, ROOST_ERR_HARDWARE, role_place(mp, id),
                   "model-parallel placement puts '%s' on accelerators, but its ranks count %s",
                   mp->names[id], selection->unit);
    return is_accelerator;
}

static bool check_contiguous(struct model_parallel *mp, enum role_id id)
{
    struct role *role = &mp->roles[id];
    const struct rank_text *text = &role->rule->text;
    for (int32_t i = 1; i < text->count; i++) {
        if (text->entries[i].resources.first == text->entries[i - 1].resources.last + 1)
            continue;
        diag_error(
            mp->diag, ROOST_ERR_RANK, text->entries[i].at,
            "ranks of '%s' must be contiguous in model-parallel placement, but '%s' leaves a gap",
            mp->names[id], quote(text->source.text).text);
        diag_hint(mp->diag, "use one range, such as %d-%d", (int)text->entries[0].resources.first,
                  (int)text->entries[text->count - 1].resources.last);
        return false;
    }
    role->ranks = (struct rank_range){text->entries[0].resources.first,
                                      text->entries[text->count - 1].resources.last};
    role->count = (int32_t)range_size(role->ranks);
    return true;
}

static bool find_physical(struct model_parallel *mp, enum role_id id)
{
    struct role *role = &mp->roles[id];
    const struct selection *selection = &role->rule->selection;
    const struct node_group *all = cluster_find_group(mp->cluster, SV("cluster"));
    role->physical = arena_array(&mp->scratch, int32_t, role->count);
    if (!role->physical) {
        diag_nomem(mp->diag);
        return false;
    }
    int32_t member = 0;
    for (int32_t i = 0; i < role->count; i++) {
        int32_t rank = role->ranks.first + i;
        member = selection_member(selection, rank, member);
        role->physical[i] = all->first_hw_of_member[selection->node_of_member[member]] + rank -
                            selection->first_hw_of_member[member];
    }
    return true;
}

static bool measure_roles(struct model_parallel *mp)
{
    bool is_good = true;
    for (enum role_id id = 0; id < ROLE_COUNT; id++)
        if (has(mp, id))
            is_good =
                check_units(mp, id) && check_contiguous(mp, id) && find_physical(mp, id) && is_good;
    return is_good;
}

/* The first pair of roles, rewards aside, that share an accelerator; false when none do. */
static bool find_overlap(struct model_parallel *mp, enum role_id *out_a, enum role_id *out_b,
                         bool *out_failed)
{
    int64_t total = mp->cluster->accelerator_count;
    uint8_t *owner = arena_zeroed(&mp->scratch, uint8_t, total);
    *out_failed = !owner;
    if (!owner) {
        diag_nomem(mp->diag);
        return true;
    }
    for (enum role_id id = 0; id < ROLE_COUNT; id++) {
        if (!has(mp, id) || id == REWARD)
            continue;
        for (int32_t i = 0; i < mp->roles[id].count; i++) {
            uint8_t *mark = &owner[mp->roles[id].physical[i]];
            if (*mark && *mark != id + 1) {
                *out_a = (enum role_id)(*mark - 1);
                *out_b = id;
                return true;
            }
            *mark = (uint8_t)(id + 1);
        }
    }
    return false;
}

static bool is_equal(const struct role *a, const struct role *b)
{
    return a->count == b->count &&
           memcmp(a->physical, b->physical, (size_t)a->count * sizeof *a->physical) == 0;
}

static bool check_collocated(struct model_parallel *mp)
{
    static const enum role_id unwanted[] = {INFERENCE, CRITIC_INFERENCE};
    for (size_t i = 0; i < 2; i++) {
        if (!has(mp, unwanted[i]))
            continue;
        diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, unwanted[i]),
                   "'%s' cannot be placed in collocated mode, where actor and rollout share their "
                   "accelerators",
                   mp->names[unwanted[i]]);
        diag_hint(mp->diag, "remove it, or give actor and rollout accelerators of their own");
        return false;
    }
    return true;
}

static bool check_auto(struct model_parallel *mp)
{
    const struct role *actor = &mp->roles[ACTOR], *rollout = &mp->roles[ROLLOUT];
    const struct role *last = has(mp, INFERENCE) ? &mp->roles[INFERENCE] : rollout;
    int32_t actor_end = actor->physical[actor->count - 1];
    int32_t rollout_end = rollout->physical[rollout->count - 1];
    const char *fault = NULL;
    enum role_id at = ACTOR;
    if (actor->physical[0] != 0) {
        fault = "actor must start at accelerator 0";
    } else if (rollout->physical[0] != actor_end + 1) {
        fault = "rollout must start right behind actor";
        at = ROLLOUT;
    } else if (has(mp, INFERENCE) && mp->roles[INFERENCE].physical[0] != rollout_end + 1) {
        fault = "inference must start right behind rollout";
        at = INFERENCE;
    } else if (last->physical[last->count - 1] != mp->cluster->accelerator_count - 1) {
        fault = "the last of them must end at the cluster's last accelerator";
        at = has(mp, INFERENCE) ? INFERENCE : ROLLOUT;
    }
    if (!fault)
        return true;
    diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, at), "with auto_scheduler %s", fault);
    diag_hint(mp->diag, "the cluster's accelerators are 0-%lld",
              (long long)mp->cluster->accelerator_count - 1);
    return false;
}

static bool check_inference(struct model_parallel *mp)
{
    bool is_good = true;
    const struct model_settings *model = mp->model;
    if (has(mp, INFERENCE)) {
        if (model->inference.tensor.value > mp->roles[INFERENCE].count) {
            diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, INFERENCE),
                       "Inference TP size %d is larger than the %d accelerators of '%s'",
                       (int)model->inference.tensor.value, (int)mp->roles[INFERENCE].count,
                       mp->names[INFERENCE]);
            is_good = false;
        }
        if (!model->recomputes_logprobs) {
            diag_error(mp->diag, ROOST_ERR_SCHEMA,
                       model->recompute_at.line ? model->recompute_at : role_place(mp, INFERENCE),
                       "'%s' is placed, so algorithm.recompute_logprobs must be true",
                       mp->names[INFERENCE]);
            is_good = false;
        }
    }
    if (has(mp, CRITIC_INFERENCE) &&
        model->critic_inference.tensor.value > mp->roles[CRITIC_INFERENCE].count) {
        diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, CRITIC_INFERENCE),
                   "critic inference TP size %d is larger than its %d accelerators",
                   (int)model->critic_inference.tensor.value,
                   (int)mp->roles[CRITIC_INFERENCE].count);
        is_good = false;
    }
    return is_good;
}

/* First match of auto, collocated, disaggregated. */
static bool choose_mode(struct model_parallel *mp)
{
    bool is_auto = mp->model->is_auto && !has(mp, CRITIC);
    if (!is_auto && is_equal(&mp->roles[ACTOR], &mp->roles[ROLLOUT])) {
        mp->plan->mode = ROOST_PLAN_COLLOCATED;
        return check_collocated(mp);
    }
    enum role_id a, b;
    bool has_failed = false;
    if (find_overlap(mp, &a, &b, &has_failed)) {
        if (has_failed)
            return false;
        diag_error(
            mp->diag, ROOST_ERR_RANK, role_place(mp, b),
            "'%s' and '%s' share some accelerators: neither collocated (actor and rollout on the "
            "same) nor disaggregated (all apart)",
            mp->names[a], mp->names[b]);
        diag_hint(mp->diag, "give them equal ranks, or ranks without any in common");
        return false;
    }
    mp->plan->mode = is_auto ? ROOST_PLAN_AUTO : ROOST_PLAN_DISAGGREGATED;
    return (!is_auto || check_auto(mp)) & check_inference(mp);
}

static bool check_tensor(struct model_parallel *mp, enum role_id id, struct setting tensor)
{
    if (tensor.value <= mp->roles[id].count)
        return true;
    diag_error(mp->diag, ROOST_ERR_RANK, tensor.at.line ? tensor.at : role_place(mp, id),
               "the tensor parallel size of '%s' is %d, but it has %d accelerators", mp->names[id],
               (int)tensor.value, (int)mp->roles[id].count);
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
        "%s has %lld accelerators, not a multiple of the %lld that one rollout process takes "
        "(tensor %d x pipeline %d)",
        what, (long long)count, (long long)each, (int)mp->model->rollout_tensor.value,
        (int)mp->model->rollout_pipeline.value);
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
    bool is_good = check_tensor(mp, ACTOR, mp->model->actor.tensor) &
                   check_tensor(mp, ROLLOUT, mp->model->rollout_tensor);
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
    if (has(mp, id)) {                                                                             \
        out->role##_world_size = roles[id].count;                                                  \
        out->role##_tp_size = (split).tensor.value;                                                \
        out->role##_pp_size = (split).pipeline.value;                                              \
        out->role##_dp_size = data_size(roles[id].count, &(split));                                \
    }
    SIZES(actor, ACTOR, model->actor)
    SIZES(critic, CRITIC, model->critic)
    SIZES(inference, INFERENCE, model->inference)
    SIZES(critic_inference, CRITIC_INFERENCE, model->critic_inference)
#undef SIZES
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
        return;
    }
    if (find_roles(&mp, rules) && measure_roles(&mp) && choose_mode(&mp) &&
        place_roles(&mp, is_placed))
        derive_sizes(&mp);
    arena_release(&mp.scratch);
}
