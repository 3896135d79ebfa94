/* rows.c - from "process p holds resources r, s, t" to every field of its placement.
 *
 * Two passes over the processes: the first finds nodes and counts the processes on each, the second writes
 * the counts back. Keeps: a process never leaves its node; per-node counts are right for any order of the
 * nodes. */
#include <string.h>

#include "base/search.h"
#include "placement/plan.h"

bool holdings_init(struct holdings *holdings, struct arena *arena, int32_t process_count,
                   int64_t total, struct diag *diag)
{
    holdings->process_count = process_count;
    holdings->first = arena_array(arena, int32_t, (size_t)process_count + 1);
    holdings->ranks = total <= INT32_MAX ? arena_array(arena, int32_t, total) : NULL;
    if (holdings->first && holdings->ranks)
        return true;
    diag_nomem(diag);
    return false;
}

bool component_set_labels(struct roost_component *component, struct arena *arena,
                          const struct selection *selection, struct diag *diag)
{
    const char **labels = arena_array(arena, const char *, selection->group_count);
    for (int32_t i = 0; labels && i < selection->group_count; i++) {
        labels[i] = arena_copy(arena, sv_from(selection->groups[i]->label));
        if (!labels[i])
            labels = NULL;
    }
    if (!labels) {
        diag_nomem(diag);
        return false;
    }
    component->node_groups = labels;
    component->node_group_count = selection->group_count;
    return true;
}

bool component_set_range(struct roost_component *component, struct arena *arena,
                         struct rank_range range, struct diag *diag)
{
    struct roost_range *ranges = arena_array(arena, struct roost_range, 1);
    if (!ranges) {
        diag_nomem(diag);
        return false;
    }
    *ranges = (struct roost_range){range.first, range.last};
    component->hardware_ranges = ranges;
    component->hardware_range_count = 1;
    return true;
}

/* The columns while they are being written. */
struct columns {
    int32_t *node, *ordinal, *accelerator, *local, *size, *group, *visible;
    uint8_t *type;
};

static bool make_columns(struct row_context *context, int32_t count, bool sees_all,
                         struct columns *out)
{
    struct arena *arena = context->arena;
    out->node = arena_array(arena, int32_t, count);
    out->ordinal = arena_array(arena, int32_t, count);
    out->accelerator = arena_array(arena, int32_t, count);
    out->local = arena_array(arena, int32_t, count);
    out->size = arena_array(arena, int32_t, count);
    out->group = arena_array(arena, int32_t, count);
    out->type = arena_array(arena, uint8_t, count);
    out->visible = sees_all ? arena_array(arena, int32_t, count) : NULL;
    if (out->node && out->ordinal && out->accelerator && out->local && out->size && out->group &&
        out->type && (out->visible || !sees_all))
        return true;
    diag_nomem(context->diag);
    return false;
}

static const char *group_label(const struct selection *selection, int32_t member)
{
    int32_t group = selection->group_of_member ? selection->group_of_member[member] : 0;
    return selection->groups[group]->label;
}

static const char *hardware_of(const struct selection *selection, int32_t member)
{
    int32_t group = selection->group_of_member ? selection->group_of_member[member] : 0;
    return selection->groups[group]->hardware_type;
}

/* The entry that a process comes from. */
static const struct rank_entry *find_entry(const struct rank_text *text, int32_t process)
{
    const struct rank_entry *entries = text->entries;
    return &entries[SEARCH(text->count - 1, at, entries[at].processes.last < process)];
}

static struct place process_place(const struct row_context *context, int32_t process)
{
    return context->text ? find_entry(context->text, process)->at : context->at;
}

static bool refuse_spread(struct row_context *context, int32_t process, int32_t here, int32_t there)
{
    const struct selection *selection = context->selection;
    int32_t node = selection->node_of_member[here], other = selection->node_of_member[there];
    const char *of = context->name[0] ? " of " : "";
    struct place at = process_place(context, process);
    process += context->first_process;
    if (node != other) {
        diag_error(context->diag, ROOST_ERR_FIT, at,
                   "process %d%s%s would hold %s on nodes %d and %d; all must be on the same node",
                   (int)process, of, context->name, selection->unit, (int)node, (int)other);
        diag_hint(context->diag, "choose ranks so that no process crosses a node's end");
    } else {
        diag_error(context->diag, ROOST_ERR_HARDWARE, at,
                   "process %d%s%s would hold %s and %s; all must be of the same hardware type",
                   (int)process, of, context->name, hardware_of(selection, here),
                   hardware_of(selection, there));
        diag_hint(context->diag, "choose ranks so that no process crosses from group '%s' to '%s'",
                  group_label(selection, here), group_label(selection, there));
    }
    return false;
}

/* Turns the resource ranks of one process into local ones; returns its member, or -1. */
static int32_t localize(struct row_context *context, struct holdings *holdings, int32_t process,
                        int32_t near)
{
    const struct selection *selection = context->selection;
    int32_t from = holdings->first[process], to = holdings->first[process + 1];
    int32_t member = selection_member(selection, holdings->ranks[from], near);
    int32_t low = selection->first_hw_of_member[member];
    int32_t high = selection->first_hw_of_member[member + 1];
    bool is_joined = false;
    for (int32_t i = from; i < to; i++) {
        int32_t rank = holdings->ranks[i];
        if (rank >= low && rank < high) {
            holdings->ranks[i] = rank - low;
            continue;
        }
        int32_t other = selection_member(selection, rank, member);
        if (selection->node_of_member[other] != selection->node_of_member[member] ||
            strcmp(hardware_of(selection, other), hardware_of(selection, member)) != 0) {
            refuse_spread(context, process, member, other);
            return -1;
        }
        /* The same node through another group: its units are the same ones. */
        holdings->ranks[i] = rank - selection->first_hw_of_member[other];
        is_joined = true;
    }
    for (int32_t i = from; is_joined && i < to; i++) {
        for (int32_t k = from; k < i; k++) {
            if (holdings->ranks[i] != holdings->ranks[k])
                continue;
            diag_error(
                context->diag, ROOST_ERR_RANK, process_place(context, process),
                "process %d would hold unit %d of node %d twice, through two node groups; they "
                "must be unique",
                (int)(process + context->first_process), (int)holdings->ranks[i],
                (int)selection->node_of_member[member]);
            diag_hint(context->diag, "name each rank through one of the groups only, or give them "
                                     "to two processes");
            return -1;
        }
    }
    return member;
}

bool rows_check(struct row_context *context, struct holdings *holdings)
{
    int32_t member = 0;
    for (int32_t p = 0; member >= 0 && p < holdings->process_count; p++)
        member = localize(context, holdings, p, member);
    return member >= 0;
}

/* Nodes met so far: their place in the placement and the processes on them. */
struct node_counts {
    int32_t *ordinal; /* [node_count], -1 = not met */
    int32_t *processes;
    int32_t met;
};

static bool place_processes(struct row_context *context, struct holdings *holdings,
                            struct columns *columns, struct node_counts *counts, bool is_isolated)
{
    const struct selection *selection = context->selection;
    int32_t member = 0;
    bool is_good = true;
    for (int32_t p = 0; p < holdings->process_count; p++) {
        if (selection->is_node)
            member = holdings->ranks[p];
        else
            member = localize(context, holdings, p, member);
        if (member < 0) {
            /* The next entry can be wrong by itself; the rest of this one has the same fault. */
            if (!context->text)
                return false;
            p = find_entry(context->text, p)->processes.last;
            member = 0;
            is_good = false;
            continue;
        }
        int32_t node_rank = selection->node_of_member[member];
        const struct cluster_node *node = &context->cluster->nodes[node_rank];
        if (counts->ordinal[node_rank] < 0)
            counts->ordinal[node_rank] = counts->met++;
        columns->node[p] = node_rank;
        columns->ordinal[p] = counts->ordinal[node_rank];
        columns->local[p] = counts->processes[node_rank]++;
        int32_t group = selection->group_of_member ? selection->group_of_member[member] : 0;
        bool is_own = !selection->is_node && selection->groups[group]->is_accelerator;
        columns->group[p] = group;
        columns->type[p] = (uint8_t)node->accelerator;
        columns->accelerator[p] = is_own                    ? holdings->ranks[holdings->first[p]]
                                  : node->accelerator_count ? 0
                                                            : -1;
        if (columns->visible)
            columns->visible[p] = is_own && is_isolated ? -1 : node->accelerator_count;
    }
    for (int32_t p = 0; is_good && p < holdings->process_count; p++)
        columns->size[p] = counts->processes[columns->node[p]];
    return is_good;
}

bool rows_fill(struct row_context *context, struct holdings *holdings,
               struct roost_component *component)
{
    const struct selection *selection = context->selection;
    bool sees_all = selection->is_node || !component->isolate_accelerator;
    for (int32_t i = 0; i < selection->group_count; i++)
        sees_all |= !selection->groups[i]->is_accelerator;
    struct columns columns;
    struct arena scratch = ARENA_INIT;
    size_t nodes = (size_t)context->cluster->node_count;
    struct node_counts counts = {arena_array(&scratch, int32_t, nodes),
                                 arena_zeroed(&scratch, int32_t, nodes), 0};
    bool is_good = counts.ordinal && counts.processes;
    if (!is_good)
        diag_nomem(context->diag);
    else
        memset(counts.ordinal, -1, nodes * sizeof *counts.ordinal);
    is_good = is_good && make_columns(context, holdings->process_count, sees_all, &columns) &&
              place_processes(context, holdings, &columns, &counts, component->isolate_accelerator);
    arena_release(&scratch);
    if (!is_good)
        return false;
    if (selection->is_node)
        memset(holdings->first, 0, ((size_t)holdings->process_count + 1) * sizeof *holdings->first);
    component->world_size = holdings->process_count;
    component->cluster_node_rank = columns.node;
    component->placement_node_rank = columns.ordinal;
    component->local_accelerator_rank = columns.accelerator;
    component->local_rank = columns.local;
    component->local_world_size = columns.size;
    component->node_group = columns.group;
    component->accelerator = columns.type;
    component->first_hardware = holdings->first;
    component->hardware = holdings->ranks;
    component->visible_count = columns.visible;
    return true;
}
