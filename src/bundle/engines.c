/* engines.c - engines and their parts, column by column. A part's GPUs are on one node: an engine
 * starts its processes on consecutive GPUs of the machine it is on, whatever slots say.
 *
 * Keeps: slots and machines rise from part to part within a server group. */
#include "bundle/bundles.h"
#include "topology/cluster.h"

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

/* The machine of a slot, looking on from `machine`: slots rise. */
static int32_t machine_of(const struct job *job, int32_t slot, int32_t machine)
{
    while (slot >= job->machines[machine].first_slot + job->machines[machine].slot_count)
        machine++;
    return machine;
}

static int32_t part_size(const struct job *job, int32_t per_engine)
{
    int32_t per_node = job->layout->num_gpus_per_node;
    return per_engine < per_node ? per_engine : per_node;
}

/* The first part of `size` GPUs from `first` on that two machines share; -1 = none. */
static int32_t find_straddling(const struct job *job, int32_t first, int32_t count, int32_t size)
{
    int32_t machine = 0;
    for (int32_t slot = first; slot < first + count; slot += size) {
        machine = machine_of(job, slot, machine);
        if (slot + size > job->machines[machine].first_slot + job->machines[machine].slot_count)
            return slot;
    }
    return -1;
}

/* Sizes of engines that would do: the largest divisor of this one. */
static int32_t largest_that_fits(const struct job *job, const struct roost_server_group *group)
{
    for (int32_t size = part_size(job, group->gpus_per_engine) - 1; size > 0; size--)
        if (group->num_gpus % size == 0 &&
            find_straddling(job, group->first_slot, group->num_gpus, size) < 0)
            return size;
    return 1;
}

/* The GPUs of a node. Behind those there are, more like the last one are thought of: a cure may need
 * them. */
static int32_t node_width(const struct job *job, int32_t node)
{
    int32_t count = job->options->slots_of_node ? job->options->node_count
                    : job->cluster              ? job->cluster->node_count
                                                : node + 1;
    return count > 0 ? job_slots_of(job, node < count ? node : count - 1) : 0;
}

/* Whether parts of `size` GPUs from `first` on would each be on one node. */
static bool would_fit(const struct job *job, int32_t first, int32_t count, int32_t size)
{
    int32_t node = 0, empty = 0, width = node_width(job, 0);
    int64_t start = 0;
    for (int64_t slot = first; slot < (int64_t)first + count; slot += size) {
        while (slot >= start + width) {
            start += width;
            empty = width ? 0 : empty + 1;
            width = node_width(job, ++node);
            if (empty > job->layout->machine_count + 1)
                return false; /* nodes without any, and no end of them */
        }
        if (slot + size > start + width)
            return false;
    }
    return true;
}

/* The fewest GPUs that could be left out before the group so that it fits; 0 = none of less than a node. */
static int32_t find_gap(const struct job *job, const struct roost_server_group *group, int32_t size)
{
    for (int32_t gap = 1; gap < job->layout->num_gpus_per_node; gap++)
        if (would_fit(job, group->first_slot + gap, group->num_gpus, size))
            return gap;
    return 0;
}

/* Whether all nodes that are used have as many GPUs as this one, and engines are whole numbers of nodes or
 * nodes of engines. */
static bool would_fit_nodes(const struct job *job, int32_t width, int32_t engine)
{
    for (int32_t i = 0; i < job->layout->machine_count; i++)
        if (node_width(job, i) != width)
            return false;
    return width > 0 && (engine % width == 0 || width % engine == 0);
}

/* Only what would help: each is tried before it is told. */
static void hint_straddling(struct job *job, const struct roost_server_group *group,
                            int32_t machine)
{
    int32_t size = part_size(job, group->gpus_per_engine), smaller = largest_that_fits(job, group);
    int32_t before = job->layout->rollout_offset, gap = find_gap(job, group, size);
    const char *many = smaller == 1 ? "" : "s";
    int32_t more = (before + size - 1) / size * size;
    if (group->first_slot == before && before % size != 0 &&
        would_fit(job, more, group->num_gpus, size))
        diag_hint(job->diag,
                  "let the actor take a multiple of %d GPUs (not %d), or use %d GPU%s per engine",
                  (int)size, (int)before, (int)smaller, many);
    else if (size > node_width(job, machine) && job->layout->has_machines &&
             would_fit_nodes(job, node_width(job, machine), group->gpus_per_engine))
        diag_hint(job->diag,
                  "set num_gpus_per_node to what machines have, or use %d GPU%s per engine",
                  (int)smaller, many);
    else if (gap > 0)
        diag_hint(job->diag, "use %d GPU%s per engine, or a placeholder of %d GPU%s before it",
                  (int)smaller, many, (int)gap, gap == 1 ? "" : "s");
    else
        diag_hint(job->diag, "use %d GPU%s per engine", (int)smaller, many);
}

static void say_straddling(struct job *job, size_t g, int32_t slot)
{
    const struct roost_server_group *group = &job->groups[g];
    int32_t size = part_size(job, group->gpus_per_engine), machine = machine_of(job, slot, 0);
    const struct roost_machine *it = &job->machines[machine];
    int32_t engine = group->first_engine + (slot - group->first_slot) / group->gpus_per_engine;
    int32_t last = machine_of(job, slot + size - 1, machine);
    diag_error(
        job->diag, job->layout->has_machines ? ROOST_ERR_FIT : ROOST_ERR_RANK, job->group_at[g],
        "engine %d of '%s' would take slots %d-%d, but node %d ends with slot %d and the rest "
        "is on node %d",
        (int)engine, group->model, (int)slot, (int)(slot + size - 1), (int)machine,
        (int)(it->first_slot + it->slot_count - 1), (int)last);
    hint_straddling(job, group, machine);
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
    int32_t size = part_size(job, group->gpus_per_engine);
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
            machine = machine_of(job, slot, machine);
            out->rank[part] = rank++;
            out->slot[part] = slot;
            out->node_rank[part] = node_rank;
            out->machine[part] = machine;
            out->local_gpu[part] = slot - job->machines[machine].first_slot;
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
    size_t errors = job->diag->errors;
    if (!alloc(job, &columns))
        return false;
    if (job->settled.is_external)
        return fill_external(job, &columns);
    for (size_t g = 0; g < layout->group_count; g++) {
        const struct roost_server_group *group = &job->groups[g];
        if (group->engine_count == 0)
            continue;
        int32_t slot = find_straddling(job, group->first_slot, group->num_gpus,
                                       part_size(job, group->gpus_per_engine));
        if (slot >= 0)
            say_straddling(job, g, slot);
    }
    if (job->diag->errors != errors)
        return false;
    int32_t next_part = 0;
    for (size_t g = 0; g < layout->group_count; g++)
        fill_group(job, g, &columns, &next_part);
    columns.first_part[layout->engines.engine_count] = next_part;
    layout->rollout.world_size = next_part;
    return true;
}
