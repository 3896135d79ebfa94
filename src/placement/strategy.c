/* strategy.c - plans of one strategy, for programs that place processes without a config. */
#include <stdlib.h>
#include <string.h>

#include "placement/plan.h"

/* What all three have in common while they are built. */
struct build {
    struct roost_plan *plan;
    struct arena scratch;
    struct selection selection;
    struct diag diag;
    struct row_context context;
};

void hint_hardware(const struct selection *selection, struct diag *diag)
{
    if (selection->no_accelerator_hint)
        diag_hint(diag, "%s", selection->no_accelerator_hint);
    else
        diag_hint(diag, "choose a node group with hardware, or place by node");
}

static bool start(struct build *build, const struct roost_cluster *cluster,
                  const struct roost_scope *scope, struct roost_error *err)
{
    *build = (struct build){.diag = diag_start(NULL, err)};
    build->plan = calloc(1, sizeof *build->plan);
    size_t count = scope ? scope->label_count : 0;
    struct word *labels = arena_zeroed(&build->scratch, struct word, count);
    if (build->plan)
        build->plan->components = arena_zeroed(&build->plan->arena, struct roost_component, 1);
    if (!build->plan || !build->plan->components || !labels) {
        diag_nomem(&build->diag);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        labels[i].text = sv_from(scope->labels[i]);
    struct roost_component *component = build->plan->components;
    build->plan->component_count = 1;
    component->name = "";
    component->isolate_accelerator = !(scope && scope->shares_accelerators);
    build->context = (struct row_context){
        .cluster = cluster,
        .selection = &build->selection,
        .arena = &build->plan->arena,
        .diag = &build->diag,
        .name = "",
    };
    return selection_init(&build->selection, &build->scratch, cluster, labels, (int32_t)count,
                          &build->diag) &&
           component_set_labels(component, &build->plan->arena, &build->selection, &build->diag);
}

static struct roost_plan *finish(struct build *build, bool is_good)
{
    arena_release(&build->scratch);
    if (is_good)
        return build->plan;
    roost_plan_free(build->plan);
    return NULL;
}

struct roost_plan *roost_plan_new_packed(const struct roost_cluster *cluster,
                                         const struct roost_scope *scope,
                                         const struct roost_packed *packed, struct roost_error *err)
{
    struct build build;
    struct holdings holdings;
    if (!start(&build, cluster, scope, err))
        return finish(&build, false);
    struct roost_component *component = build.plan->components;
    component->strategy = ROOST_STRATEGY_PACKED;
    component->packed = *packed;
    struct rank_range range = {packed->start, packed->end};
    return finish(&build,
                  packed_hold(packed, &build.selection, build.context.arena, NOWHERE, &build.diag,
                              &holdings) &&
                      component_set_range(component, build.context.arena, range, &build.diag) &&
                      rows_fill(&build.context, &holdings, component));
}

static bool check_count(int32_t process_count, const char *list, struct diag *diag)
{
    if (process_count > 0 && process_count <= (1 << 24))
        return true;
    if (process_count > 0) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "more than %d processes", 1 << 24);
        diag_hint(diag, "place %d fewer", (int)process_count - (1 << 24));
    } else {
        diag_error(diag, ROOST_ERR_RANK, NOWHERE, "%s must not be empty", list);
        diag_hint(diag, "give it an entry for each process");
    }
    return false;
}

/* What is wrong with a process's list whatever the cluster is. */
static bool check_list(const int32_t *ranks, int32_t count, int32_t process, struct diag *diag)
{
    if (count < 1) {
        diag_error(diag, ROOST_ERR_RANK, NOWHERE, "hardware_ranks_list[%d] must not be empty",
                   (int)process);
        diag_hint(diag, "name at least one rank for it");
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        if (ranks[i] < 0) {
            diag_error(diag, ROOST_ERR_FIT, NOWHERE,
                       "rank %d in hardware_ranks_list[%d] is out of range: ranks start at 0",
                       (int)ranks[i], (int)process);
            diag_hint(diag, "name ranks from 0 on");
            return false;
        }
    }
    return true;
}

enum roost_code roost_flexible_check(const int32_t *first, const int32_t *ranks,
                                     int32_t process_count, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    bool is_good = check_count(process_count, "hardware_ranks_list", &diag);
    for (int32_t p = 0; is_good && p < process_count; p++)
        is_good = check_list(ranks + first[p], first[p + 1] - first[p], p, &diag);
    return diag.first;
}

enum roost_code roost_node_check(const int32_t *node_ranks, int32_t process_count,
                                 struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    bool is_good = check_count(process_count, "node_ranks", &diag);
    for (int32_t p = 0; is_good && p < process_count; p++) {
        is_good = node_ranks[p] >= 0;
        if (is_good)
            continue;
        diag_error(&diag, ROOST_ERR_FIT, NOWHERE,
                   "node rank %d in node_ranks[%d] is out of range: ranks start at 0",
                   (int)node_ranks[p], (int)p);
        diag_hint(&diag, "name nodes from 0 on");
    }
    return diag.first;
}

static int by_rank(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* A process of the caller's list; sorted by its lowest rank, equal ones as they came. */
struct claim {
    int32_t lowest, index;
};

static int by_lowest(const void *a, const void *b)
{
    const struct claim *left = a, *right = b;
    if (left->lowest != right->lowest)
        return left->lowest < right->lowest ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static bool check_ranks(struct build *build, const int32_t *ranks, int32_t count, int32_t process)
{
    int32_t total = selection_size(&build->selection);
    for (int32_t i = 0; i < count; i++) {
        if (ranks[i] >= total) {
            diag_error(&build->diag, ROOST_ERR_FIT, NOWHERE,
                       "rank %d of process %d is out of range: there are %d %s", (int)ranks[i],
                       (int)process, (int)total, build->selection.unit);
            if (total > 0)
                diag_hint(&build->diag, "name ranks from 0 to %d", (int)total - 1);
            else
                diag_hint(&build->diag, "choose a node group with hardware");
            return false;
        }
        if (i > 0 && ranks[i] == ranks[i - 1]) {
            diag_error(&build->diag, ROOST_ERR_RANK, NOWHERE,
                       "process %d names rank %d twice: ranks of a process must be unique",
                       (int)process, (int)ranks[i]);
            diag_hint(&build->diag, "name it once");
            return false;
        }
    }
    return true;
}

/* Copies the caller's lists in sorted order. */
static bool hold_lists(struct build *build, const int32_t *first, const int32_t *ranks,
                       int32_t process_count, struct holdings *out)
{
    struct claim *claims = arena_array(&build->scratch, struct claim, process_count);
    int32_t *sorted = arena_array(&build->scratch, int32_t, first[process_count]);
    if (!claims || !sorted ||
        !holdings_init(out, build->context.arena, process_count, first[process_count],
                       &build->diag)) {
        if (!claims || !sorted)
            diag_nomem(&build->diag);
        return false;
    }
    for (int32_t p = 0; p < process_count; p++) {
        int32_t count = first[p + 1] - first[p];
        if (!check_list(ranks + first[p], count, p, &build->diag))
            return false;
        memcpy(sorted + first[p], ranks + first[p], (size_t)count * sizeof *sorted);
        qsort(sorted + first[p], (size_t)count, sizeof *sorted, by_rank);
        if (!check_ranks(build, sorted + first[p], count, p))
            return false;
        claims[p] = (struct claim){sorted[first[p]], p};
    }
    qsort(claims, (size_t)process_count, sizeof *claims, by_lowest);
    int32_t filled = 0;
    for (int32_t p = 0; p < process_count; p++) {
        int32_t index = claims[p].index, count = first[index + 1] - first[index];
        out->first[p] = filled;
        memcpy(out->ranks + filled, sorted + first[index], (size_t)count * sizeof *sorted);
        filled += count;
    }
    out->first[process_count] = filled;
    return true;
}

/* The ranks that were asked for, as ranges: in the order of processes, runs joined. */
static bool set_ranges(struct build *build, const struct holdings *holdings)
{
    int32_t count = holdings->first[holdings->process_count];
    struct roost_component *component = build->plan->components;
    struct roost_range *ranges = arena_array(build->context.arena, struct roost_range, count);
    if (!ranges) {
        diag_nomem(&build->diag);
        return false;
    }
    int32_t filled = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t rank = holdings->ranks[i];
        if (filled && ranges[filled - 1].last == rank)
            continue; /* processes that share a rank ask for it once */
        if (filled && ranges[filled - 1].last + 1 == rank)
            ranges[filled - 1].last = rank;
        else
            ranges[filled++] = (struct roost_range){rank, rank};
    }
    component->hardware_ranges = ranges;
    component->hardware_range_count = filled;
    return true;
}

struct roost_plan *roost_plan_new_flexible(const struct roost_cluster *cluster,
                                           const struct roost_scope *scope, const int32_t *first,
                                           const int32_t *ranks, int32_t process_count,
                                           struct roost_error *err)
{
    struct build build;
    struct holdings holdings;
    if (!start(&build, cluster, scope, err))
        return finish(&build, false);
    build.plan->components->strategy = ROOST_STRATEGY_FLEXIBLE;
    if (build.selection.is_node) {
        diag_error(&build.diag, ROOST_ERR_HARDWARE, NOWHERE,
                   "flexible placement needs hardware: node group '%s' has none to count",
                   build.selection.groups[0]->label);
        hint_hardware(&build.selection, &build.diag);
        return finish(&build, false);
    }
    return finish(&build, check_count(process_count, "hardware_ranks_list", &build.diag) &&
                              hold_lists(&build, first, ranks, process_count, &holdings) &&
                              set_ranges(&build, &holdings) &&
                              rows_fill(&build.context, &holdings, build.plan->components));
}

struct roost_plan *roost_plan_new_node(const struct roost_cluster *cluster,
                                       const struct roost_scope *scope, const int32_t *node_ranks,
                                       int32_t process_count, struct roost_error *err)
{
    struct build build;
    struct holdings holdings;
    if (!start(&build, cluster, scope, err) ||
        !check_count(process_count, "node_ranks", &build.diag) ||
        !selection_by_node(&build.selection, &build.scratch, &build.diag))
        return finish(&build, false);
    build.plan->components->strategy = ROOST_STRATEGY_NODE;
    if (!holdings_init(&holdings, build.context.arena, process_count, process_count, &build.diag))
        return finish(&build, false);
    memcpy(holdings.ranks, node_ranks, (size_t)process_count * sizeof *node_ranks);
    qsort(holdings.ranks, (size_t)process_count, sizeof *node_ranks, by_rank);
    for (int32_t p = 0; p <= process_count; p++)
        holdings.first[p] = p;
    bool is_good = true;
    for (int32_t p = 0; p < process_count && is_good; p++) {
        is_good = holdings.ranks[p] >= 0 && holdings.ranks[p] < build.selection.member_count;
        if (is_good)
            continue;
        diag_error(&build.diag, ROOST_ERR_FIT, NOWHERE,
                   "node rank %d is out of range: there are %d nodes", (int)holdings.ranks[p],
                   (int)build.selection.member_count);
        diag_hint(&build.diag, "name nodes from 0 to %d", (int)build.selection.member_count - 1);
    }
    return finish(&build, is_good && set_ranges(&build, &holdings) &&
                              rows_fill(&build.context, &holdings, build.plan->components));
}
