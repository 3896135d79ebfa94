/* parts.c - checks that every part of an engine can be where its slots are. An engine starts its processes on
 * consecutive GPUs of its machine and does not look at slots. So a part must be on one node and have
 * consecutive GPUs there. */
#include "base/text.h"
#include "bundle/bundles.h"
#include "topology/cluster.h"

int32_t job_machine_of(const struct job *job, int32_t slot, int32_t machine)
{
    while (slot >= job->machines[machine].first_slot + job->machines[machine].slot_count)
        machine++;
    return machine;
}

int32_t job_part_size(const struct job *job, int32_t per_engine)
{
    int32_t per_node = job->layout->num_gpus_per_node;
    return per_engine < per_node ? per_engine : per_node;
}

int32_t job_gpu_of(const struct job *job, int32_t slot, int32_t machine)
{
    int32_t gpu = job->options->gpu_of_slot ? job->options->gpu_of_slot[slot] : -1;
    return gpu >= 0 ? gpu : slot - job->machines[machine].first_slot;
}

/* The first part of `size` GPUs from `first` on that two machines share; -1 = none. */
static int32_t find_straddling(const struct job *job, int32_t first, int32_t count, int32_t size)
{
    int32_t machine = 0;
    for (int32_t slot = first; slot < first + count; slot += size) {
        machine = job_machine_of(job, slot, machine);
        if (slot + size > job->machines[machine].first_slot + job->machines[machine].slot_count)
            return slot;
    }
    return -1;
}

/* The first part of `size` GPUs from `first` on whose GPUs have numbers with a gap; -1 = none. Ids that are
 * no numbers tell nothing of what is beside them. */
static int32_t find_scattered(const struct job *job, int32_t first, int32_t count, int32_t size)
{
    const int32_t *gpus = job->options->gpu_of_slot;
    for (int32_t slot = first; gpus && slot < first + count; slot += size)
        for (int32_t i = 1; i < size; i++)
            if (gpus[slot + i - 1] >= 0 && gpus[slot + i] >= 0 &&
                gpus[slot + i] != gpus[slot + i - 1] + 1)
                return slot;
    return -1;
}

/* Sizes of engines that would do: the largest divisor of this one. */
static int32_t largest_that_fits(const struct job *job, const struct roost_server_group *group)
{
    for (int32_t size = job_part_size(job, group->gpus_per_engine) - 1; size > 0; size--)
        if (group->num_gpus % size == 0 &&
            find_straddling(job, group->first_slot, group->num_gpus, size) < 0 &&
            find_scattered(job, group->first_slot, group->num_gpus, size) < 0)
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
    int32_t size = job_part_size(job, group->gpus_per_engine),
            smaller = largest_that_fits(job, group);
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
    int32_t size = job_part_size(job, group->gpus_per_engine),
            machine = job_machine_of(job, slot, 0);
    const struct roost_machine *it = &job->machines[machine];
    int32_t engine = group->first_engine + (slot - group->first_slot) / group->gpus_per_engine;
    int32_t last = job_machine_of(job, slot + size - 1, machine);
    diag_error(
        job->diag, job->layout->has_machines ? ROOST_ERR_FIT : ROOST_ERR_RANK, job->group_at[g],
        "engine %d of '%s' would take slots %d-%d, but node %d ends with slot %d and the rest "
        "is on node %d",
        (int)engine, group->model, (int)slot, (int)(slot + size - 1), (int)machine,
        (int)(it->first_slot + it->slot_count - 1), (int)last);
    hint_straddling(job, group, machine);
}

static void say_scattered(struct job *job, size_t g, int32_t slot)
{
    const struct roost_server_group *group = &job->groups[g];
    int32_t size = job_part_size(job, group->gpus_per_engine);
    int32_t engine = group->first_engine + (slot - group->first_slot) / group->gpus_per_engine;
    const int32_t *gpus = job->options->gpu_of_slot;
    int32_t smaller = largest_that_fits(job, group);
    struct text list = TEXT_INIT;
    for (int32_t i = 0; i < size; i++)
        text_printf(&list, "%s%d", i ? ", " : "", (int)gpus[slot + i]);
    diag_error(
        job->diag, ROOST_ERR_FIT, job->group_at[g],
        "engine %d of '%s' would start on GPUs %d-%d of node %d, but its slots %d-%d are GPUs %s",
        (int)engine, group->model, (int)gpus[slot], (int)(gpus[slot] + size - 1),
        (int)job_machine_of(job, slot, 0), (int)slot, (int)(slot + size - 1),
        text_string(&list) ? text_string(&list) : "apart");
    diag_hint(job->diag, "use %d GPU%s per engine, or reserve GPUs that follow one another",
              (int)smaller, smaller == 1 ? "" : "s");
    text_release(&list);
}

bool job_check_parts(struct job *job)
{
    size_t errors = job->diag->errors;
    for (size_t g = 0; g < job->layout->group_count; g++) {
        const struct roost_server_group *group = &job->groups[g];
        int32_t size = job_part_size(job, group->gpus_per_engine);
        if (group->engine_count == 0)
            continue;
        int32_t slot = find_straddling(job, group->first_slot, group->num_gpus, size);
        if (slot >= 0) {
            say_straddling(job, g, slot);
            continue;
        }
        slot = find_scattered(job, group->first_slot, group->num_gpus, size);
        if (slot >= 0)
            say_scattered(job, g, slot);
    }
    return job->diag->errors == errors;
}
