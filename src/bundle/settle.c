/* settle.c - the rules that decide which argument applies, in the order in which slime applies them. Reads
 * the user's settings and never changes them. */
#include "bundle/bundles.h"

enum { NODE_GPUS = 8 }; /* what slime takes for a node when only rollout is debugged */

static bool is_on(const struct flag_setting *flag)
{
    return flag->is_set && flag->value;
}

static int32_t count_or(const struct count_setting *count, int32_t otherwise)
{
    return count->is_set ? count->value : otherwise;
}

/* Two wishes that exclude each other; the rest can still be looked at. */
static void say_both(struct job *job, struct place at, const char *message)
{
    diag_error(job->diag, ROOST_ERR_SCHEMA, at, "%s", message);
    diag_hint(job->diag, "switch one of them off");
}

/* What holds whatever the mode is. */
static void settle_values(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    struct settled *out = &job->settled;
    struct roost_layout *layout = job->layout;
    bool is_seed = in->is_seed;
    layout->is_seed = is_seed;
    layout->has_gpu_ids = in->share_gpu_ids.is_set ? in->share_gpu_ids.value : !is_seed;
    layout->port_base = count_or(&in->port_base, is_seed ? 10000 : 20000);
    out->dist_ports =
        count_or(&in->dist_init_ports, is_seed ? 6 : 30) + count_or(&in->sglang_dp_size, 1);
    out->actor_share = in->num_gpus_per_actor.is_set ? in->num_gpus_per_actor.value
                       : is_seed                     ? 8000
                                                     : 4000;
    out->part_share = in->num_gpus_per_part.is_set ? in->num_gpus_per_part.value : 2000;
    out->posters_cpu = count_or(&in->num_http_posters, 0) * (ROOST_AMOUNT_ONE / 1000);
    out->per_engine = count_or(&in->rollout_num_gpus_per_engine, 1);
    out->is_colocate_cut =
        in->has_colocate_size ? in->colocate_size == COLOCATE_SIZE_ACTOR : is_seed;
    out->has_critic =
        in->use_critic.is_set ? in->use_critic.value : sv_is(in->advantage_estimator.text, "ppo");
}

static bool settle_actor(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    int64_t gpus = (int64_t)count_or(&in->actor_num_nodes, 1) *
                   count_or(&in->actor_num_gpus_per_node, NODE_GPUS);
    if (gpus > BUNDLE_GPUS_MAX) {
        diag_error(job->diag, ROOST_ERR_LIMIT, job_place(job, &in->actor_num_nodes),
                   "the actor takes %lld GPUs; at most %d are laid out", (long long)gpus,
                   BUNDLE_GPUS_MAX);
        diag_hint(job->diag, "lower actor_num_nodes or actor_num_gpus_per_node");
        return false;
    }
    job->settled.actor_gpus = (int32_t)gpus;
    return true;
}

/* Addresses mean external engines, whose GPUs are R: unless there is nothing to roll out. */
static void settle_external(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    struct settled *out = &job->settled;
    int64_t sum = 0;
    out->is_external = is_on(&in->rollout_external);
    if (in->external_count == 0 || out->is_train_only)
        return;
    out->is_external = true;
    for (int32_t i = 0; i < in->external_count && sum >= 0; i++)
        sum = in->external[i].num_gpus.is_set ? sum + in->external[i].num_gpus.value : -1;
    if (sum >= 0 && sum <= BUNDLE_GPUS_MAX)
        out->rollout_gpus = (int32_t)sum;
}

static void settle_rollout_only(struct job *job)
{
    struct settled *out = &job->settled;
    if (out->is_external)
        return;
    if (out->is_colocated && out->rollout_gpus < 0) {
        out->rollout_gpus = out->actor_gpus;
    } else if (out->rollout_gpus >= 0) {
        int32_t node = out->rollout_gpus < NODE_GPUS ? out->rollout_gpus : NODE_GPUS;
        out->actor_gpus = node ? out->rollout_gpus / node * node : 0;
    }
    out->is_colocated = false;
}

static void settle_offload(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    const struct settled *out = &job->settled;
    struct roost_layout *layout = job->layout;
    layout->offload_train = in->offload_train.is_set ? in->offload_train.value : out->is_colocated;
    layout->offload_rollout =
        in->offload_rollout.is_set ? in->offload_rollout.value : out->is_colocated;
    if (out->is_rollout_only)
        layout->offload_train = layout->offload_rollout = false;
    if (out->is_colocated && is_on(&in->release_train)) {
        layout->offload_train = false;
        layout->offload_rollout = true;
    }
    if (out->has_critic)
        layout->offload_train = true;
}

static bool check_rollout_gpus(struct job *job)
{
    const struct settled *out = &job->settled;
    if (out->rollout_gpus >= 0 || out->is_train_only || out->is_external)
        return true;
    diag_error(job->diag, ROOST_ERR_SCHEMA, job->settings->at,
               out->is_rollout_only
                   ? "'rollout_num_gpus' is not set, and debug_rollout_only takes nothing else"
                   : "'rollout_num_gpus' is not set, and only colocate takes it from the actor");
    diag_hint(job->diag, "write rollout_num_gpus: 8, or colocate: true");
    return false;
}

bool job_settle(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    struct settled *out = &job->settled;
    settle_values(job);
    if (!settle_actor(job))
        return false;
    out->rollout_gpus = count_or(&in->rollout_num_gpus, -1);
    out->is_colocated = is_on(&in->colocate);
    out->is_train_only = is_on(&in->debug_train_only) || in->load_debug_rollout_data.text.len > 0;
    out->is_rollout_only = is_on(&in->debug_rollout_only);
    settle_external(job);
    if (out->is_train_only && out->is_rollout_only)
        say_both(
            job, in->debug_rollout_only.at,
            is_on(&in->debug_train_only)
                ? "debug_train_only and debug_rollout_only cannot both be on"
                : "load_debug_rollout_data replays rollouts, so debug_rollout_only cannot be on");
    if (out->is_rollout_only)
        settle_rollout_only(job);
    if (out->is_colocated && out->rollout_gpus < 0)
        out->rollout_gpus = out->actor_gpus;
    settle_offload(job);
    if (out->is_colocated && is_on(&in->train_async))
        say_both(job, in->train_async.at,
                 "train_async trains while rollout runs, so colocate cannot be on");
    return check_rollout_gpus(job);
}
