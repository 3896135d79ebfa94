/* engines.c - engines and their parts, column by column. parts.c has checked before that each part can be
 * where its slots are.
 *
 * Keeps: slots and machines rise from part to part within a server group. */
#include "bundle/bundles.h"

/* Columns while they are filled. */
struct columns {
    int32_t *group, *first_part, *gpus, *first_slot, *offset;
    const char **address;
    int32_t *rank, *slot, *node_rank, *machine, *local_gpu, *dist_ports, *boot_ports;
};

static bool alloc(struct job *job, struct columns *out)
{
    struct roost_engines *engines = &job->layout->engines;
    int32_t **of_engines[] = {&out->group, &out->gpus, &out->first_slot, &out->offset};
    int32_t **of_parts[] = {&out->rank,      &out->slot,       &out->node_rank, &out->machine,
                            &out->local_gpu, &out->dist_ports, &out->boot_ports};
    bool is_good = (out->first_part = job_array(job, int32_t, engines->engine_count + 1)) != NULL;
    for (size_t i = 0; is_good && i < sizeof of_engines / sizeof *of_engines; i++)
        is_good = (*of_engines[i] = job_array(job, int32_t, engines->engine_count)) != NULL;
    for (size_t i = 0; is_good && i < sizeof of_parts / sizeof *of_parts; i++)
        is_good = (*of_parts[i] = job_array(job, int32_t, engines->part_count)) != NULL;
    if (is_good && job->settled.is_external)
        is_good = (out->address = job_array(job, const char *, engines->engine_count)) != NULL;
    engines->group = out->group;
    engines->first_part = out->first_part;
    engines->gpus = out->gpus;
    engines->first_slot = out->first_slot;
    engines->offset = out->offset;
    engines->address = out->address;
    engines->rank = out->rank;
    engines->slot = out->slot;
    engines->node_rank = out->node_rank;
    engines->machine = out->machine;
    engines->local_gpu = out->local_gpu;
    engines->dist_ports = out->dist_ports;
    engines->boot_ports = out->boot_ports;
    return is_good;
}

/* What ports a part wants: prefill one more, and one block of an engine for its first part. */
static void fill_ports(const struct job *job, const struct roost_server_group *group,
                       const struct columns *out, int32_t part)
{
    out->boot_ports[part] = group->type == ROOST_WORKER_PREFILL;
    out->dist_ports[part] = out->node_rank[part] == 0 ? job->settled.dist_ports : 0;
}

static void fill_group(struct job *job, size_t g, const struct columns *out, int32_t *next_part)
{
    const struct roost_server_group *group = &job->groups[g];
    int32_t size = job_part_size(job, group->gpus_per_engine);
    int32_t per_engine = group->gpus_per_engine / size, machine = 0, rank = group->first_rank;
    for (int32_t i = 0; i < group->engine_count; i++) {
        int32_t engine = group->first_engine + i;
        int32_t slot = group->first_slot + i * group->gpus_per_engine;
        out->group[engine] = (int32_t)g;
        out->gpus[engine] = group->gpus_per_engine;
        out->first_slot[engine] = slot;
        out->offset[engine] = slot - job->layout->rollout_offset;
        out->first_part[engine] = *next_part;
        for (int32_t node_rank = 0; node_rank < per_engine; node_rank++, slot += size) {
            int32_t part = (*next_part)++;
            machine = job_machine_of(job, slot, machine);
            out->rank[part] = rank++;
            out->slot[part] = slot;
            out->node_rank[part] = node_rank;
            out->machine[part] = machine;
            out->local_gpu[part] = job_gpu_of(job, slot, machine);
            fill_ports(job, group, out, part);
        }
    }
}

static bool fill_external(struct job *job, const struct columns *out)
{
    int64_t offset = 0;
    for (int32_t i = 0; i < job->layout->engines.engine_count; i++) {
        const struct bundle_external *it = &job->settings->external[i];
        out->group[i] = i;
        out->gpus[i] = it->num_gpus.is_set ? it->num_gpus.value : -1;
        out->first_slot[i] = -1;
        out->offset[i] = offset >= 0 && offset <= BUNDLE_GPUS_MAX ? (int32_t)offset : -1;
        offset = it->num_gpus.is_set && offset >= 0 ? offset + it->num_gpus.value : -1;
        out->address[i] = job_memory(job, arena_copy(&job->bundles->arena, sv_from(it->address)));
        if (!out->address[i])
            return false;
    }
    return true;
}

bool job_place_engines(struct job *job)
{
    struct roost_layout *layout = job->layout;
    struct columns columns = {0};
    if (!alloc(job, &columns))
        return false;
    if (job->settled.is_external)
        return fill_external(job, &columns);
    if (!job_check_parts(job))
        return false;
    int32_t next_part = 0;
    for (size_t g = 0; g < layout->group_count; g++)
        fill_group(job, g, &columns, &next_part);
    columns.first_part[layout->engines.engine_count] = next_part;
    layout->rollout.world_size = next_part;
    return true;
}
