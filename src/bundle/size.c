/* size.c - how many GPUs there are, where rollout starts, which GPUs each role sees, and on which nodes. */
#include "bundle/bundles.h"
#include "topology/cluster.h"

enum { NODE_GPUS = 8 };

static enum roost_layout_row choose_row(const struct settled *it)
{
    if (it->is_train_only)
        return ROOST_LAYOUT_TRAIN_ONLY;
    if (it->is_external)
        return it->is_rollout_only ? ROOST_LAYOUT_EXTERNAL_ROLLOUT : ROOST_LAYOUT_EXTERNAL;
    if (it->is_rollout_only)
        return ROOST_LAYOUT_ROLLOUT_ONLY;
    return it->is_colocated ? ROOST_LAYOUT_COLOCATE : ROOST_LAYOUT_DISAGGREGATED;
}

bool job_size(struct job *job)
{
    const struct settled *it = &job->settled;
    struct roost_layout *out = job->layout;
    int32_t actor = it->actor_gpus, rollout = it->rollout_gpus;
    out->row = choose_row(it);
    out->num_gpus = actor;
    if (out->row == ROOST_LAYOUT_ROLLOUT_ONLY)
        out->num_gpus = rollout;
    else if (out->row == ROOST_LAYOUT_COLOCATE && !it->is_colocate_cut && rollout > actor)
        out->num_gpus = rollout;
    else if (out->row == ROOST_LAYOUT_DISAGGREGATED)
        out->num_gpus = actor + rollout; /* both are far below the limits of the type */
    bool is_behind = out->row == ROOST_LAYOUT_EXTERNAL || out->row == ROOST_LAYOUT_DISAGGREGATED;
    out->rollout_offset = is_behind ? actor : 0;
    out->has_critic = it->has_critic;
    out->actor = (struct roost_share){0, out->num_gpus, actor, it->actor_share};
    out->critic = it->has_critic ? out->actor : (struct roost_share){0};
    out->rollout = (struct roost_share){out->rollout_offset, out->num_gpus - out->rollout_offset, 0,
                                        it->part_share};
    return true;
}

/* Slots of a node: measured, or its accelerators, or as counted. */
int32_t job_slots_of(const struct job *job, int32_t node)
{
    if (job->options->slots_of_node)
        return job->options->slots_of_node[node];
    return job->cluster ? job->cluster->nodes[node].accelerator_count
                        : job->layout->num_gpus_per_node;
}

/* The largest node: parts are as large as nodes allow, and what does not fit is reported later. */
static int32_t largest_node(const struct job *job, int32_t nodes)
{
    int32_t largest = 0;
    for (int32_t n = 0; n < nodes; n++)
        largest = job_slots_of(job, n) > largest ? job_slots_of(job, n) : largest;
    return largest;
}

static bool check_room(struct job *job, int64_t there)
{
    const struct roost_layout *layout = job->layout;
    if (there >= layout->num_gpus)
        return true;
    struct place at = layout->row == ROOST_LAYOUT_TRAIN_ONLY || layout->rollout_offset >= there
                          ? job_place(job, &job->settings->actor_num_nodes)
                          : job_place(job, &job->settings->rollout_num_gpus);
    diag_error(job->diag, ROOST_ERR_FIT, at,
               "the placement group takes %d GPUs (actor %d, rollout from slot %d), but there are "
               "%lld",
               (int)layout->num_gpus, (int)job->settled.actor_gpus, (int)layout->rollout_offset,
               (long long)there);
    diag_hint(job->diag, "take %lld fewer, or plan against a larger cluster",
              (long long)(layout->num_gpus - there));
    return false;
}

bool job_find_machines(struct job *job)
{
    struct roost_layout *layout = job->layout;
    const struct count_setting *per_node = &job->settings->num_gpus_per_node;
    layout->has_machines = job->options->slots_of_node || job->cluster;
    int32_t nodes = job->options->slots_of_node ? job->options->node_count
                    : job->cluster              ? job->cluster->node_count
                                                : 0;
    int32_t largest = largest_node(job, nodes);
    layout->num_gpus_per_node = per_node->is_set ? per_node->value : largest ? largest : NODE_GPUS;
    if (!layout->has_machines)
        nodes = (layout->num_gpus + layout->num_gpus_per_node - 1) / layout->num_gpus_per_node;
    job->machines = job_array(job, struct roost_machine, nodes);
    if (!job->machines)
        return false;
    int32_t slot = 0, used = 0;
    int64_t there = 0;
    for (int32_t n = 0; n < nodes; n++) {
        int32_t count = job_slots_of(job, n), left = layout->num_gpus - slot;
        there += count;
        job->machines[n] = (struct roost_machine){slot, count < left ? count : left, 0};
        slot += job->machines[n].slot_count;
        used = job->machines[n].slot_count > 0 ? n + 1 : used;
    }
    layout->machines = job->machines;
    layout->machine_count = used;
    return check_room(job, there);
}
