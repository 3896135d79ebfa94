/* server_groups.c - from the list of models to server groups: GPUs, first slot, first rank and engine size of
 * each. Refuses sizes that do not divide evenly. */
#include "bundle/bundles.h"

/* A server group before it has a place. */
struct wanted {
    const char *model;
    enum roost_worker_type type;
    int32_t num_gpus, per_engine;
    int32_t beside; /* GPUs of the servers that rollout_num_gpus counts too; 0 = none */
    bool updates_weights;
    struct place gpus_at, engine_at; /* where the two numbers were written, or nearly */
};

static void say_engine_size(struct job *job, const struct wanted *it, int32_t per_node)
{
    int32_t below = it->per_engine / per_node * per_node;
    diag_error(job->diag, ROOST_ERR_RANK, it->engine_at,
               "engines of %d GPUs do not fill nodes of %d: they take whole nodes or less than one",
               (int)it->per_engine, (int)per_node);
    diag_hint(job->diag,
              "use %d or %d GPUs per engine, or set num_gpus_per_node to what a machine has",
              (int)below, (int)(below + per_node));
}

static void say_left_over(struct job *job, const struct wanted *it)
{
    int32_t left = it->num_gpus % it->per_engine, below = it->num_gpus - left;
    diag_error(
        job->diag, ROOST_ERR_RANK, it->gpus_at,
        "%d GPUs %sare not a multiple of the %d that one engine takes: %d would be left over",
        (int)it->num_gpus, it->beside ? "that prefill leaves to decode " : "", (int)it->per_engine,
        (int)left);
    if (it->beside && below)
        diag_hint(job->diag, "set rollout_num_gpus to %d or %d", (int)(it->beside + below),
                  (int)(it->beside + below + it->per_engine));
    else if (it->beside)
        diag_hint(job->diag, "set rollout_num_gpus to %d, or use smaller engines",
                  (int)(it->beside + it->per_engine));
    else if (below)
        diag_hint(job->diag, "give them %d or %d GPUs", (int)below, (int)(below + it->per_engine));
    else
        diag_hint(job->diag, "give them %d GPUs, or use smaller engines", (int)it->per_engine);
}

static bool tiles(struct job *job, const struct wanted *it)
{
    int32_t per_node = job->layout->num_gpus_per_node;
    if (it->type == ROOST_WORKER_PLACEHOLDER)
        return true; /* nothing runs there */
    if (it->per_engine > per_node && it->per_engine % per_node != 0) {
        say_engine_size(job, it, per_node);
        return false;
    }
    if (it->num_gpus % it->per_engine == 0)
        return true;
    say_left_over(job, it);
    return false;
}

/* Puts the group behind those that are there. Goes on after an error, so that all are reported. */
static void add_group(struct job *job, const struct wanted *it, int32_t *gpu_offset)
{
    struct roost_layout *layout = job->layout;
    int32_t part =
        it->per_engine < layout->num_gpus_per_node ? it->per_engine : layout->num_gpus_per_node;
    int32_t first_slot = layout->rollout_offset + *gpu_offset;
    bool is_started = it->type != ROOST_WORKER_PLACEHOLDER && tiles(job, it);
    struct roost_server_group *out = &job->groups[layout->group_count];
    job->group_at[layout->group_count++] = it->gpus_at;
    *out = (struct roost_server_group){
        .model = it->model,
        .type = it->type,
        .num_gpus = it->num_gpus,
        .gpus_per_engine = it->per_engine,
        .first_slot = first_slot,
        .first_rank = job->ranks,
        .first_engine = layout->engines.engine_count,
        .engine_count = is_started ? it->num_gpus / it->per_engine : 0,
        .updates_weights = it->updates_weights,
        .needs_offload = layout->offload_rollout && it->type != ROOST_WORKER_PLACEHOLDER &&
                         first_slot < layout->actor.world_size,
    };
    job->ranks += it->num_gpus / part; /* a placeholder keeps the ranks it would have had */
    *gpu_offset += it->num_gpus;
    layout->engines.engine_count += out->engine_count;
    layout->engines.part_count += is_started ? it->num_gpus / part : 0;
}

static bool check_share(struct job *job, int32_t gpus, struct place at)
{
    const struct roost_layout *layout = job->layout;
    if (gpus <= layout->rollout.count)
        return true;
    diag_error(job->diag, ROOST_ERR_RANK, at,
               "engines take %d GPUs, but rollout's share has %d (slots %d-%d)", (int)gpus,
               (int)layout->rollout.count, (int)layout->rollout.first, (int)(layout->num_gpus - 1));
    diag_hint(job->diag,
              "lower rollout_num_gpus to %d, or let colocate take more: colocate_size: max",
              (int)layout->rollout.count);
    return false;
}

/* --- the list of models --- */

static struct strview path_of(const struct job *job, const struct bundle_model *model)
{
    return model->model_path.text.len ? model->model_path.text : job->settings->hf_checkpoint.text;
}

static bool check_paths(struct job *job, const struct bundle_model *model)
{
    for (int32_t i = 0; i < model->group_count; i++) {
        const struct word *path = &model->groups[i].model_path;
        struct strview all = path_of(job, model);
        if (path->text.len == 0 || (all.len && sv_equal(path->text, all)))
            continue;
        diag_error(job->diag, ROOST_ERR_SCHEMA, path->at,
                   "server groups of one model serve one path, but this one is '%s'",
                   quote(path->text).text);
        diag_hint(job->diag, "set model_path of the model '%s', or list another model",
                  model->name);
        return false;
    }
    return true;
}

static void add_model(struct job *job, const struct bundle_model *model, int32_t *gpu_offset)
{
    const struct bundle_settings *in = job->settings;
    bool is_trained =
        model->model_path.text.len == 0 || sv_equal(model->model_path.text, in->hf_checkpoint.text);
    for (int32_t i = 0; i < model->group_count; i++) {
        const struct bundle_servers *servers = &model->groups[i];
        const struct count_setting *each = servers->per_engine.is_set ? &servers->per_engine
                                           : model->per_engine.is_set
                                               ? &model->per_engine
                                               : &in->rollout_num_gpus_per_engine;
        struct wanted wanted = {
            .model = job_memory(job, arena_copy(&job->bundles->arena, sv_from(model->name))),
            .type = servers->type,
            .num_gpus = servers->num_gpus.value,
            .per_engine = each->is_set ? each->value : job->settled.per_engine,
            .updates_weights =
                model->update_weights.is_set ? model->update_weights.value : is_trained,
            .gpus_at = servers->num_gpus.at,
            .engine_at = each->is_set ? each->at : servers->num_gpus.at,
        };
        add_group(job, &wanted, gpu_offset);
    }
}

static bool check_sum(struct job *job, int64_t sum)
{
    if (sum == job->settled.rollout_gpus)
        return true;
    diag_error(job->diag, ROOST_ERR_RANK, job->settings->models_at,
               "the server groups take %lld GPUs, but rollout_num_gpus is %d", (long long)sum,
               (int)job->settled.rollout_gpus);
    if (sum < job->settled.rollout_gpus)
        diag_hint(job->diag,
                  "set rollout_num_gpus to %lld, or add a group of worker_type placeholder",
                  (long long)sum);
    else
        diag_hint(job->diag, "set rollout_num_gpus to %lld, or give the groups %lld fewer",
                  (long long)sum, (long long)sum - job->settled.rollout_gpus);
    return false;
}

static bool list_models(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    int64_t sum = 0;
    int32_t gpu_offset = 0;
    bool is_good = true;
    for (int32_t m = 0; m < in->model_count; m++) {
        is_good = check_paths(job, &in->models[m]) && is_good;
        for (int32_t i = 0; i < in->models[m].group_count; i++)
            sum += in->models[m].groups[i].num_gpus.value;
    }
    is_good = check_sum(job, sum) && is_good;
    if (sum > BUNDLE_GPUS_MAX) /* no longer a count */
        return false;
    for (int32_t m = 0; m < in->model_count; m++)
        add_model(job, &in->models[m], &gpu_offset);
    return is_good;
}

/* Without a list: regular servers, or prefill and decode. */
static bool list_default(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    int32_t left = job->settled.rollout_gpus, per_engine = job->settled.per_engine, gpu_offset = 0;
    struct place gpus_at =
        job_place(job, in->rollout_num_gpus.is_set ? &in->rollout_num_gpus : &in->actor_num_nodes);
    struct wanted wanted = {
        .model = "default",
        .per_engine = per_engine,
        .updates_weights = true,
        .gpus_at = gpus_at,
        .engine_at =
            in->rollout_num_gpus_per_engine.is_set ? in->rollout_num_gpus_per_engine.at : gpus_at,
    };
    if (left > 0 && in->prefill_num_servers.is_set && in->prefill_num_servers.value > 0) {
        int64_t prefill = (int64_t)in->prefill_num_servers.value * per_engine;
        if (prefill >= left) {
            diag_error(job->diag, ROOST_ERR_RANK, in->prefill_num_servers.at,
                       "%d prefill servers of %d GPU%s leave none of %d for decode",
                       (int)in->prefill_num_servers.value, (int)per_engine,
                       per_engine == 1 ? "" : "s", (int)left);
            diag_hint(job->diag, "lower prefill_num_servers, or raise rollout_num_gpus");
            return false;
        }
        wanted.type = ROOST_WORKER_PREFILL;
        wanted.num_gpus = (int32_t)prefill;
        add_group(job, &wanted, &gpu_offset);
        wanted.type = ROOST_WORKER_DECODE;
        wanted.beside = (int32_t)prefill;
        left -= (int32_t)prefill;
    }
    wanted.num_gpus = left;
    if (left > 0)
        add_group(job, &wanted, &gpu_offset);
    return true;
}

/* Engines that run already: no slots, no ranks, no ports. */
static bool list_external(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    for (int32_t i = 0; i < in->external_count; i++) {
        const struct count_setting *gpus = &in->external[i].num_gpus;
        job->groups[i] = (struct roost_server_group){
            .model = "default",
            .type = in->external[i].type,
            .num_gpus = gpus->is_set ? gpus->value : -1,
            .gpus_per_engine = gpus->is_set ? gpus->value : -1,
            .first_slot = -1,
            .first_rank = i,
            .first_engine = i,
            .engine_count = 1,
            .updates_weights = true,
        };
    }
    job->layout->group_count = (size_t)in->external_count;
    job->layout->engines.engine_count = in->external_count;
    return true;
}

/* Three ways to say which servers there are, of which one is enough. */
static bool check_exclusive(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    bool has_prefill = in->prefill_num_servers.is_set && in->prefill_num_servers.value > 0;
    bool is_external = in->external_count > 0 || job->settled.is_external;
    if (!in->has_models || (!has_prefill && !is_external))
        return true;
    diag_error(job->diag, ROOST_ERR_SCHEMA, in->models_at,
               "a list of models cannot stand beside %s",
               is_external ? "external engines" : "prefill_num_servers");
    diag_hint(job->diag, is_external ? "take the list out, or the external engines"
                                     : "add a server group of worker_type prefill instead");
    return false;
}

bool job_list_server_groups(struct job *job)
{
    const struct bundle_settings *in = job->settings;
    size_t room = (size_t)in->external_count + 2;
    for (int32_t m = 0; m < in->model_count; m++)
        room += (size_t)in->models[m].group_count;
    job->groups = job_array(job, struct roost_server_group, room);
    job->group_at = job->groups ? job_array(job, struct place, room) : NULL;
    if (!job->group_at || !check_exclusive(job))
        return false;
    job->layout->groups = job->groups;
    if (job->layout->row == ROOST_LAYOUT_TRAIN_ONLY)
        return true;
    if (job->settled.is_external)
        return list_external(job);
    size_t errors = job->diag->errors;
    bool is_good = in->has_models ? list_models(job) : list_default(job);
    is_good = check_share(job, job->settled.rollout_gpus, job_place(job, &in->rollout_num_gpus)) &&
              is_good;
    return is_good && job->diag->errors == errors;
}
