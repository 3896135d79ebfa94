/* model_settings.c - defaults follow the reference: a size that is not written is 1, and inference
 * takes after the actor, critic inference after the critic. */
#include "config/model_settings.h"

#include <stdio.h>

static void read_setting(struct reader *reader, const char *path, struct setting *out)
{
    size_t errors = reader->diag->errors;
    const struct node *node = resolve_path(&reader->resolver, path);
    char what[96];
    snprintf(what, sizeof what, "'%s'", path);
    if (node && !node_is_null(node)) {
        out->at = node_place(node);
        out->is_broken = !read_int(reader, node, what, 1, ROOST_RANK_MAX, &out->value);
    }
    out->is_broken = out->is_broken || reader->diag->errors > errors;
}

/* False when a fault of it was reported. */
static bool read_flag(struct reader *reader, const char *path, bool *out, struct place *out_at)
{
    size_t errors = reader->diag->errors;
    const struct node *node = resolve_path(&reader->resolver, path);
    char what[96];
    snprintf(what, sizeof what, "'%s'", path);
    if (!node || node_is_null(node))
        return reader->diag->errors == errors;
    if (out_at)
        *out_at = node_place(node);
    return read_bool(reader, node, what, out);
}

/* Reads <role>.model.*, what is not there staying as it is in `split`. */
static void read_split(struct reader *reader, const char *role, struct model_split *split)
{
    const struct {
        const char *key;
        struct setting *setting;
    } sizes[] = {
        {"tensor_model_parallel_size", &split->tensor},
        {"pipeline_model_parallel_size", &split->pipeline},
        {"context_parallel_size", &split->context},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s.model.%s", role, sizes[i].key);
        read_setting(reader, path, sizes[i].setting);
    }
}

static const struct setting one = {.value = 1};

struct model_settings *model_settings_read(struct reader *reader)
{
    struct model_settings *model = read_array(reader, struct model_settings, 1);
    if (!model)
        return NULL;
    model->actor = model->critic = (struct model_split){one, one, one};
    read_split(reader, "actor", &model->actor);
    read_split(reader, "critic", &model->critic);
    model->inference = (struct model_split){model->actor.tensor, model->actor.pipeline, one};
    bool has_own = resolve_path(&reader->resolver, "inference.model") != NULL;
    read_split(reader, has_own ? "inference" : "actor_inference", &model->inference);
    model->inference.context = one; /* only training splits a context */
    model->critic_inference =
        (struct model_split){model->critic.tensor, model->critic.pipeline, one};
    read_split(reader, "critic_inference", &model->critic_inference);
    model->critic_inference.context = one;
    model->rollout_tensor = model->rollout_pipeline = one;
    read_setting(reader, "rollout.tensor_parallel_size", &model->rollout_tensor);
    read_setting(reader, "rollout.pipeline_parallel_size", &model->rollout_pipeline);
    if (!read_flag(reader, "algorithm.recompute_logprobs", &model->recomputes_logprobs,
                   &model->recompute_at))
        model->recomputes_logprobs = true;
    model->is_auto_broken = !read_flag(reader, "cluster.auto_scheduler", &model->is_auto, NULL);
    read_flag(reader, "cluster.use_pre_process_policy", &model->preprocesses, NULL);
    return model;
}
