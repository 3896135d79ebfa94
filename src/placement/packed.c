/* packed.c - fill resources in rank order, a fixed number per process, optionally in strides.
 *
 * The reference takes the lowest unused rank, then every stride-th, and repeats. Because the number of ranks is
 * a multiple of n * stride, this has a closed form: process p is in block p / stride, at offset
 * p % stride, and holds start + block * n * stride + offset + k * stride for k = 0 .. n - 1. */
#include "placement/plan.h"

/* What is wrong whatever the cluster is. */
static bool check_numbers(const struct roost_packed *packed, struct place at, struct diag *diag)
{
    if (packed->start < 0 || packed->end < packed->start) {
        diag_error(
            diag, ROOST_ERR_RANK, at,
            "start_hardware_rank %d and end_hardware_rank %d are not a range: the start must "
            "be >= 0 and <= the end",
            (int)packed->start, (int)packed->end);
        diag_hint(diag, "write the lower rank first, 0 or more");
        return false;
    }
    if (packed->per_process < 1 || packed->stride < 1) {
        diag_error(diag, ROOST_ERR_RANK, at,
                   "num_hardware_per_process %d and stride %d: both must be at least 1",
                   (int)packed->per_process, (int)packed->stride);
        diag_hint(diag, "write 1 and 1 for one resource each, side by side");
        return false;
    }
    int64_t count = (int64_t)packed->end - packed->start + 1;
    int64_t block = (int64_t)packed->per_process * packed->stride;
    if (count % block != 0) {
        diag_error(
            diag, ROOST_ERR_RANK, at,
            "%lld resources are not a multiple of num_hardware_per_process %d times stride %d",
            (long long)count, (int)packed->per_process, (int)packed->stride);
        if (count > block)
            diag_hint(diag, "end at rank %lld",
                      (long long)(packed->start + count / block * block - 1));
        else
            diag_hint(diag, "take %lld resources, or fewer a process", (long long)block);
        return false;
    }
    return true;
}

enum roost_code roost_packed_check(const struct roost_packed *packed, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    check_numbers(packed, NOWHERE, &diag);
    return diag.first;
}

static bool check(const struct roost_packed *packed, const struct selection *selection,
                  struct place at, struct diag *diag)
{
    if (!check_numbers(packed, at, diag))
        return false;
    if (selection->is_node) {
        diag_error(diag, ROOST_ERR_HARDWARE, at,
                   "packed placement needs hardware: node group '%s' has "
                   "none to count",
                   selection->groups[0]->label);
        hint_hardware(selection, diag);
        return false;
    }
    if (packed->end >= selection_size(selection)) {
        diag_error(diag, ROOST_ERR_FIT, at, "rank %d is out of range: node group '%s' has %d %s",
                   (int)packed->end, selection->groups[0]->label, (int)selection_size(selection),
                   selection->unit);
        if (selection_size(selection) > 0)
            diag_hint(diag, "end at rank %d or before", (int)selection_size(selection) - 1);
        else
            diag_hint(diag, "choose a node group with hardware");
        return false;
    }
    if ((packed->end - packed->start) / packed->per_process >= (1 << 24)) {
        diag_error(diag, ROOST_ERR_LIMIT, at, "more than %d processes", 1 << 24);
        diag_hint(diag, "give each process more resources, or take fewer ranks");
        return false;
    }
    return true;
}

bool packed_hold(const struct roost_packed *packed, const struct selection *selection,
                 struct arena *arena, struct place at, struct diag *diag, struct holdings *out)
{
    if (!check(packed, selection, at, diag))
        return false;
    int32_t n = packed->per_process, stride = packed->stride;
    int32_t total = packed->end - packed->start + 1;
    if (!holdings_init(out, arena, total / n, total, diag))
        return false;
    int32_t filled = 0;
    for (int32_t block = packed->start; block <= packed->end; block += n * stride) {
        for (int32_t offset = 0; offset < stride; offset++) {
            out->first[filled / n] = filled;
            for (int32_t k = 0; k < n; k++)
                out->ranks[filled++] = block + offset + k * stride;
        }
    }
    out->first[out->process_count] = filled;
    return true;
}
