/* model_mode.c - decides collocated, disaggregated or auto, and checks what each mode requires of the
 * roles. */
#include "placement/model_parallel_internal.h"

static bool check_collocated(struct model_parallel *mp)
{
    static const enum role_id unwanted[] = {INFERENCE, CRITIC_INFERENCE};
    bool is_good = true;
    for (size_t i = 0; i < 2; i++) {
        if (!has(mp, unwanted[i]))
            continue;
        diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, unwanted[i]),
                   "'%s' cannot be placed in collocated mode, where actor and rollout share their "
                   "accelerators",
                   mp->names[unwanted[i]]);
        diag_hint(mp->diag, "remove it, or give actor and rollout accelerators of their own");
        is_good = false;
    }
    return is_good;
}

static bool check_apart(struct model_parallel *mp)
{
    uint8_t shared[ROLE_COUNT];
    if (!roles_overlap(mp, shared))
        return false;
    bool is_good = true;
    for (enum role_id a = 0; a < ROLE_COUNT; a++) {
        for (enum role_id b = a + 1; b < ROLE_COUNT; b++) {
            if (!(shared[a] & 1u << b))
                continue;
            diag_error(
                mp->diag, ROOST_ERR_RANK, role_place(mp, b),
                "'%s' and '%s' share some accelerators: neither collocated (actor and rollout on "
                "the same) nor disaggregated (all apart)",
                mp->names[a], mp->names[b]);
            bool may_be_equal = !mp->is_auto && a == ACTOR && b == ROLLOUT;
            diag_hint(mp->diag, may_be_equal
                                    ? "give them equal ranks, or ranks without any in common"
                                    : "give them ranks without any in common");
            is_good = false;
        }
    }
    return is_good;
}

static bool refuse_auto(struct model_parallel *mp, enum role_id at, const char *fault)
{
    diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, at), "with auto_scheduler %s", fault);
    diag_hint(mp->diag, "the cluster's accelerators are 0-%lld",
              (long long)mp->cluster->accelerator_count - 1);
    return false;
}

/* Whether `id` starts where `before` ends; a role that was not measured is not judged by. */
static bool follows(const struct model_parallel *mp, enum role_id before, enum role_id id)
{
    const struct role *first = &mp->roles[before], *second = &mp->roles[id];
    return !is_measured(mp, before) || !is_measured(mp, id) ||
           second->physical[0] == first->physical[first->count - 1] + 1;
}

static bool check_auto(struct model_parallel *mp)
{
    bool is_good = true;
    if (is_measured(mp, ACTOR) && mp->roles[ACTOR].physical[0] != 0)
        is_good = refuse_auto(mp, ACTOR, "actor must start at accelerator 0");
    if (!follows(mp, ACTOR, ROLLOUT))
        is_good = refuse_auto(mp, ROLLOUT, "rollout must start right behind actor");
    if (!follows(mp, ROLLOUT, INFERENCE))
        is_good = refuse_auto(mp, INFERENCE, "inference must start right behind rollout");
    enum role_id end = has(mp, INFERENCE) ? INFERENCE : ROLLOUT;
    const struct role *last = &mp->roles[end];
    if (is_measured(mp, end) &&
        last->physical[last->count - 1] != mp->cluster->accelerator_count - 1)
        is_good =
            refuse_auto(mp, end, "the last of them must end at the cluster's last accelerator");
    return is_good;
}

void model_mode_choose(struct model_parallel *mp)
{
    mp->is_auto = mp->model->is_auto && !has(mp, CRITIC);
    mp->plan->mode = mp->is_auto ? ROOST_PLAN_AUTO : ROOST_PLAN_DISAGGREGATED;
    bool has_both = is_measured(mp, ACTOR) && is_measured(mp, ROLLOUT);
    if (mp->model->is_auto_broken || (!mp->is_auto && !has_both))
        return; /* who may share with whom depends on what is missing */
    if (!mp->is_auto && role_equals(&mp->roles[ACTOR], &mp->roles[ROLLOUT])) {
        mp->plan->mode = ROOST_PLAN_COLLOCATED;
        mp->is_settled = check_collocated(mp);
        return;
    }
    mp->is_settled = check_apart(mp) && (!mp->is_auto || check_auto(mp)) && has_both;
}
