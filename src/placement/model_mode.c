/* model_mode.c - collocated, disaggregated or auto, and what each asks of the roles. */
#include "placement/model_parallel_internal.h"

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
                       "Inference TP size %d is larger than the accelerators of '%s', %d",
                       (int)model->inference.tensor.value, mp->names[INFERENCE],
                       (int)mp->roles[INFERENCE].count);
            diag_hint(mp->diag,
                      "lower its tensor_model_parallel_size to at most %d, or give it %d "
                      "accelerators",
                      (int)mp->roles[INFERENCE].count, (int)model->inference.tensor.value);
            is_good = false;
        }
        if (!model->recomputes_logprobs) {
            diag_error(mp->diag, ROOST_ERR_SCHEMA,
                       model->recompute_at.line ? model->recompute_at : role_place(mp, INFERENCE),
                       "'%s' is placed, so algorithm.recompute_logprobs must be true",
                       mp->names[INFERENCE]);
            diag_hint(mp->diag, "set algorithm.recompute_logprobs: true, or take '%s' out",
                      mp->names[INFERENCE]);
            is_good = false;
        }
    }
    if (has(mp, CRITIC_INFERENCE) &&
        model->critic_inference.tensor.value > mp->roles[CRITIC_INFERENCE].count) {
        diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, CRITIC_INFERENCE),
                   "critic inference TP size %d is larger than its accelerators, %d",
                   (int)model->critic_inference.tensor.value,
                   (int)mp->roles[CRITIC_INFERENCE].count);
        diag_hint(mp->diag,
                  "lower its tensor_model_parallel_size to at most %d, or give it %d accelerators",
                  (int)mp->roles[CRITIC_INFERENCE].count,
                  (int)model->critic_inference.tensor.value);
        is_good = false;
    }
    return is_good;
}

bool model_mode_choose(struct model_parallel *mp)
{
    bool is_auto = mp->model->is_auto && !has(mp, CRITIC);
    if (!is_auto && role_equals(&mp->roles[ACTOR], &mp->roles[ROLLOUT])) {
        mp->plan->mode = ROOST_PLAN_COLLOCATED;
        return check_collocated(mp);
    }
    enum role_id a, b;
    bool has_failed = false;
    if (roles_overlap(mp, &a, &b, &has_failed)) {
        if (has_failed)
            return false;
        diag_error(
            mp->diag, ROOST_ERR_RANK, role_place(mp, b),
            "'%s' and '%s' share some accelerators: neither collocated (actor and rollout on the "
            "same) nor disaggregated (all apart)",
            mp->names[a], mp->names[b]);
        bool may_be_equal = !is_auto && a == ACTOR && b == ROLLOUT;
        diag_hint(mp->diag, may_be_equal ? "give them equal ranks, or ranks without any in common"
                                         : "give them ranks without any in common");
        return false;
    }
    mp->plan->mode = is_auto ? ROOST_PLAN_AUTO : ROOST_PLAN_DISAGGREGATED;
    bool is_good = !is_auto || check_auto(mp);
    return check_inference(mp) && is_good;
}
