/* model_size.c - checks the sizes of the models against the accelerators of their roles. Skips a size or a
 * role that already has an error. */
#include "placement/model_parallel_internal.h"

static bool check_tensor(struct model_parallel *mp, enum role_id id, struct setting tensor)
{
    if (tensor.is_broken || tensor.value <= mp->roles[id].count)
        return true;
    diag_error(mp->diag, ROOST_ERR_RANK, tensor.at.line ? tensor.at : role_place(mp, id),
               "the tensor parallel size of '%s' is %d, larger than its accelerators, %d",
               mp->names[id], (int)tensor.value, (int)mp->roles[id].count);
    diag_hint(mp->diag, "lower the size to at most %d, or give '%s' %d accelerators",
              (int)mp->roles[id].count, mp->names[id], (int)tensor.value);
    return false;
}

int64_t rollout_each(const struct model_parallel *mp)
{
    return (int64_t)mp->model->rollout_tensor.value * mp->model->rollout_pipeline.value;
}

/* Whether `count` accelerators of `what` are whole rollout processes. */
static bool check_multiple(struct model_parallel *mp, int64_t count, struct place at,
                           const char *what)
{
    int64_t each = rollout_each(mp);
    if (count % each == 0)
        return true;
    diag_error(
        mp->diag, ROOST_ERR_RANK, at,
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

static struct place rollout_size_place(const struct model_parallel *mp)
{
    struct place at = mp->model->rollout_tensor.at;
    return at.line ? at : role_place(mp, ROLLOUT);
}

/* Processes that are written hold whole models, each entry its own way. */
static bool check_written(struct model_parallel *mp)
{
    const struct rank_text *text = &mp->roles[ROLLOUT].rule->text;
    bool is_good = true;
    for (int32_t i = 0; i < text->count; i++) {
        const struct rank_entry *entry = &text->entries[i];
        int64_t each = range_size(entry->resources) / range_size(entry->processes);
        is_good = check_multiple(mp, each ? each : 1,
                                 text->count > 1 ? entry->at : rollout_size_place(mp),
                                 "a process of 'rollout'") &&
                  is_good;
    }
    return is_good;
}

static bool check_rollout(struct model_parallel *mp)
{
    const struct role *role = &mp->roles[ROLLOUT];
    if (!is_measured(mp, ROLLOUT) || !check_tensor(mp, ROLLOUT, mp->model->rollout_tensor) ||
        mp->model->rollout_tensor.is_broken || mp->model->rollout_pipeline.is_broken)
        return false;
    if (role->rule->text.has_processes)
        return check_written(mp);
    return check_multiple(mp, role->count, rollout_size_place(mp), "'rollout'");
}

static void check_inference(struct model_parallel *mp)
{
    const struct model_settings *model = mp->model;
    struct setting tensor = model->inference.tensor;
    if (is_measured(mp, INFERENCE) && !tensor.is_broken &&
        tensor.value > mp->roles[INFERENCE].count) {
        diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, INFERENCE),
                   "Inference TP size %d is larger than the accelerators of '%s', %d",
                   (int)tensor.value, mp->names[INFERENCE], (int)mp->roles[INFERENCE].count);
        diag_hint(mp->diag,
                  "lower its tensor_model_parallel_size to at most %d, or give it %d "
                  "accelerators",
                  (int)mp->roles[INFERENCE].count, (int)tensor.value);
    }
    if (has(mp, INFERENCE) && !model->recomputes_logprobs) {
        diag_error(mp->diag, ROOST_ERR_SCHEMA,
                   model->recompute_at.line ? model->recompute_at : role_place(mp, INFERENCE),
                   "'%s' is placed, so algorithm.recompute_logprobs must be true",
                   mp->names[INFERENCE]);
        diag_hint(mp->diag, "set algorithm.recompute_logprobs: true, or take '%s' out",
                  mp->names[INFERENCE]);
    }
}

static void check_critic_inference(struct model_parallel *mp)
{
    const struct role *role = &mp->roles[CRITIC_INFERENCE];
    struct setting tensor = mp->model->critic_inference.tensor;
    if (!is_measured(mp, CRITIC_INFERENCE) || tensor.is_broken || tensor.value <= role->count)
        return;
    diag_error(mp->diag, ROOST_ERR_RANK, role_place(mp, CRITIC_INFERENCE),
               "critic inference TP size %d is larger than its accelerators, %d", (int)tensor.value,
               (int)role->count);
    diag_hint(mp->diag,
              "lower its tensor_model_parallel_size to at most %d, or give it %d accelerators",
              (int)role->count, (int)tensor.value);
}

bool model_size_check(struct model_parallel *mp)
{
    if (is_measured(mp, ACTOR))
        check_tensor(mp, ACTOR, mp->model->actor.tensor);
    /* Where they have no place their sizes are nobody's business. */
    if (mp->plan->mode != ROOST_PLAN_COLLOCATED) {
        check_inference(mp);
        check_critic_inference(mp);
    }
    return check_rollout(mp);
}

int32_t model_size_stride(struct model_parallel *mp)
{
    struct setting actor = mp->model->actor.tensor, rollout = mp->model->rollout_tensor;
    bool may_collocate =
        mp->plan->mode == ROOST_PLAN_COLLOCATED || (!mp->is_settled && !mp->is_auto);
    if (!may_collocate)
        return 1;
    if (actor.is_broken || rollout.is_broken)
        return 0;
    if (actor.value <= rollout.value)
        return 1;
    if (mp->plan->mode != ROOST_PLAN_COLLOCATED)
        return 0;
    if (actor.value % rollout.value == 0)
        return actor.value / rollout.value;
    diag_error(mp->diag, ROOST_ERR_RANK, actor.at,
               "the actor's tensor parallel size %d is not a multiple of rollout's %d, so they "
               "cannot share accelerators",
               (int)actor.value, (int)rollout.value);
    diag_hint(mp->diag, "make the actor's %d, or rollout's a divisor of %d",
              (int)(actor.value / rollout.value * rollout.value), (int)actor.value);
    return 0;
}

bool model_size_check_both(struct model_parallel *mp)
{
    return check_multiple(mp, mp->roles[ACTOR].count, rollout_size_place(mp), "'actor'");
}
