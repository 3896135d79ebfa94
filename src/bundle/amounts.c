/* amounts.c - checks that the shares fit on a GPU and that there are CPUs for everything. This includes the
 * manager and the lock: they are outside the reservation and would silently wait for ever. */
#include "base/amount.h"
#include "bundle/bundles.h"
#include "topology/cluster.h"

enum { MANAGER_AND_LOCK = 2 * AMOUNT_ONE };

static struct place amount_place(const struct job *job)
{
    const struct bundle_settings *in = job->settings;
    return in->num_gpus_per_part.is_set    ? in->num_gpus_per_part.at
           : in->num_gpus_per_actor.is_set ? in->num_gpus_per_actor.at
           : in->use_critic.is_set         ? in->use_critic.at
                                           : in->at;
}

/* Whether a part takes its share of a GPU that trainers use. */
static bool has_shared_slot(const struct job *job)
{
    for (size_t g = 0; g < job->layout->group_count; g++)
        if (job->groups[g].engine_count > 0 && job->groups[g].first_slot >= 0 &&
            job->groups[g].first_slot < job->layout->actor.world_size)
            return true;
    return false;
}

static bool check_shares(struct job *job)
{
    const struct settled *it = &job->settled;
    bool has_part = has_shared_slot(job), has_trainer = job->layout->actor.world_size > 0;
    int64_t critic = it->has_critic ? it->actor_share : 0, part = has_part ? it->part_share : 0;
    int64_t sum = it->actor_share + critic + part;
    if (!has_trainer || sum <= AMOUNT_ONE)
        return true;
    diag_error(job->diag, ROOST_ERR_SCHEMA, amount_place(job),
               "one GPU cannot be shared by an actor of %s%s%s%s%s: together that is %s",
               amount_text(it->actor_share).text,
               !critic ? ""
               : part  ? ", a critic of "
                       : " and a critic of ",
               critic ? amount_text(critic).text : "", part ? " and a part of " : "",
               part ? amount_text(part).text : "", amount_text(sum).text);
    int64_t each = (AMOUNT_ONE - part) / (critic ? 2 : 1);
    int64_t left = AMOUNT_ONE - it->actor_share - critic;
    if (each > 0)
        diag_hint(job->diag, "set num_gpus_per_actor to at most %s", amount_text(each).text);
    else if (left > 0)
        diag_hint(job->diag, "set num_gpus_per_part to at most %s", amount_text(left).text);
    else
        diag_hint(job->diag, "lower num_gpus_per_part and num_gpus_per_actor to 1 together");
    return false;
}

/* Every bundle brings a CPU of its own node; the rest may be anywhere. What is not known of one node
 * is no excuse for another; *out_there is -1 when the sum is not known. */
static bool check_nodes(struct job *job, int64_t *out_there)
{
    bool is_good = true;
    *out_there = 0;
    for (int32_t n = 0; n < job->cluster->node_count; n++) {
        int32_t cpus = job->cluster->nodes[n].num_cpus;
        int32_t slots = n < job->layout->machine_count ? job->machines[n].slot_count : 0;
        *out_there = cpus < 0 || *out_there < 0 ? -1 : *out_there + cpus;
        if (is_good && cpus >= 0 && cpus < slots) {
            diag_error(job->diag, ROOST_ERR_FIT, job->settings->at,
                       "node %d has %d CPU%s for the %d bundles on it, which take one each", (int)n,
                       (int)cpus, cpus == 1 ? "" : "s", (int)slots);
            diag_hint(job->diag, "give the node more CPUs, or use fewer of its GPUs");
            is_good = false;
        }
    }
    return is_good;
}

static bool check_cpus(struct job *job)
{
    int64_t wanted = job->layout->num_cpus, there = 0;
    if (!job->cluster || job->options->slots_of_node)
        return true;
    if (!check_nodes(job, &there) || there < 0 || there * AMOUNT_ONE >= wanted)
        return job->diag->errors == 0;
    diag_error(job->diag, ROOST_ERR_FIT, job->settings->at,
               "%s CPUs are needed (%d for bundles, 2 for the rollout manager and its lock%s), but "
               "the cluster has %lld",
               amount_text(wanted).text, (int)job->layout->num_gpus,
               wanted > job->layout->num_gpus * (int64_t)AMOUNT_ONE + MANAGER_AND_LOCK
                   ? ", the rest for what stands outside"
                   : "",
               (long long)there);
    diag_hint(job->diag, "give the cluster more CPUs, or use fewer GPUs");
    return false;
}

bool job_check_amounts(struct job *job, bool has_machines)
{
    const struct settled *it = &job->settled;
    int64_t external = it->is_external ? job->layout->engines.engine_count * it->part_share : 0;
    job->layout->num_cpus =
        job->layout->num_gpus * (int64_t)AMOUNT_ONE + MANAGER_AND_LOCK + it->posters_cpu + external;
    bool is_good = check_shares(job);
    return (!has_machines || check_cpus(job)) && is_good;
}
