/* component.c - from a bound text to holdings, entry by entry. */
#include "placement/component.h"

#include <stdio.h>

static bool bind(struct bound_rule *out, const struct roost_cluster *cluster, struct diag *diag)
{
    const struct placement_rule *rule = out->rule;
    /* Both are always looked at, so that a bad label does not hide a bad text. */
    bool is_read = rule->has_text && rank_text_read(&out->arena, rule->text, diag, &out->text);
    bool has_groups = (rule->has_labels || rule->label_count > 0) &&
                      selection_init(&out->selection, &out->arena, cluster, rule->labels,
                                     rule->label_count, diag);
    if (!has_groups || !rule->has_labels || !rule->has_text) {
        struct rank_bounds none = {.label = "", .unit = "", .total = -1};
        rank_text_bind(&out->text, &none, diag);
        return false;
    }
    bool counts_all_nodes =
        out->selection.is_node && sv_is(sv_from(out->selection.groups[0]->label), "cluster");
    struct rank_bounds bounds = {
        .label = out->selection.groups[0]->label,
        .unit = out->selection.unit,
        .total = selection_size(&out->selection),
        .is_node = out->selection.is_node,
        .is_known = true,
        .no_accelerator_hint = counts_all_nodes ? cluster->no_accelerator_hint : NULL,
    };
    char labels[128];
    if (out->selection.group_count > 1) {
        snprintf(labels, sizeof labels, "%s,%s%s", out->selection.groups[0]->label,
                 out->selection.groups[1]->label, out->selection.group_count > 2 ? ",..." : "");
        bounds.label = labels;
    }
    out->is_bound = true;
    return rank_text_bind(&out->text, &bounds, diag) && is_read && !rule->is_broken;
}

bool rule_bind(struct bound_rule *out, const struct placement_rule *rule,
               const struct roost_cluster *cluster, struct diag *diag)
{
    *out = (struct bound_rule){.rule = rule};
    out->is_good = bind(out, cluster, diag);
    if (!out->is_bound)
        rule_release(out);
    return out->is_good;
}

void rule_release(struct bound_rule *rule)
{
    arena_release(&rule->arena);
}

static bool set_ranges(struct row_context *context, const struct rank_text *text,
                       struct roost_component *out)
{
    struct roost_range *ranges = arena_array(context->arena, struct roost_range, text->count);
    if (!ranges) {
        diag_nomem(context->diag);
        return false;
    }
    for (int32_t i = 0; i < text->count; i++)
        ranges[i] =
            (struct roost_range){text->entries[i].resources.first, text->entries[i].resources.last};
    out->hardware_ranges = ranges;
    out->hardware_range_count = text->count;
    return true;
}

/* More resources than processes: a block each. */
static void hold_blocks(const struct rank_entry *entry, struct holdings *holdings, int32_t *filled)
{
    int32_t each = (int32_t)(range_size(entry->resources) / range_size(entry->processes));
    int32_t rank = entry->resources.first;
    for (int32_t p = entry->processes.first; p <= entry->processes.last; p++) {
        holdings->first[p] = *filled;
        for (int32_t k = 0; k < each; k++)
            holdings->ranks[(*filled)++] = rank++;
    }
}

/* At least as many processes as resources: they share, the first ones taking what does not divide. */
static void hold_shared(const struct rank_entry *entry, struct holdings *holdings, int32_t *filled)
{
    int32_t resources = (int32_t)range_size(entry->resources);
    int32_t each = (int32_t)(range_size(entry->processes) / resources);
    int32_t extra = (int32_t)(range_size(entry->processes) % resources);
    int32_t p = entry->processes.first;
    for (int32_t r = 0; r < resources; r++) {
        for (int32_t k = 0; k < each + (r < extra); k++) {
            holdings->first[p++] = *filled;
            holdings->ranks[(*filled)++] = entry->resources.first + r;
        }
    }
}

static bool hold(struct row_context *context, const struct rank_text *text, struct holdings *out)
{
    int64_t total = 0;
    for (int32_t i = 0; i < text->count; i++) {
        int64_t resources = range_size(text->entries[i].resources);
        int64_t processes = range_size(text->entries[i].processes);
        total += resources > processes ? resources : processes;
    }
    int32_t processes = (int32_t)rank_text_processes(text);
    if (!holdings_init(out, context->arena, processes, total, context->diag))
        return false;
    int32_t filled = 0;
    for (int32_t i = 0; i < text->count; i++) {
        const struct rank_entry *entry = &text->entries[i];
        if (range_size(entry->resources) > range_size(entry->processes))
            hold_blocks(entry, out, &filled);
        else
            hold_shared(entry, out, &filled);
    }
    out->first[processes] = filled;
    return true;
}

/* One entry as if it were the whole text. */
static bool check_entry(struct row_context *context, const struct rank_entry *entry)
{
    struct rank_entry alone = *entry;
    struct rank_text text = {.entries = &alone, .count = 1};
    struct holdings holdings;
    alone.processes = (struct rank_range){0, (int32_t)range_size(entry->processes) - 1};
    context->at = entry->at;
    context->first_process = entry->processes.first;
    return hold(context, &text, &holdings) && rows_check(context, &holdings);
}

void component_check(const struct row_context *context, const struct bound_rule *rule)
{
    for (int32_t i = 0; !rule->selection.is_node && i < rule->text.count; i++) {
        const struct rank_entry *entry = &rule->text.entries[i];
        struct arena scratch = ARENA_INIT;
        struct row_context inside = *context;
        inside.selection = &rule->selection;
        inside.arena = &scratch;
        /* A process with one resource is always in one place. */
        if (!entry->is_bad && entry->has_processes &&
            range_size(entry->processes) < range_size(entry->resources))
            check_entry(&inside, entry);
        arena_release(&scratch);
    }
}

/* Spreading unevenly is ours alone: RLinf refuses such a text. */
static void warn_uneven(struct row_context *context, const struct rank_text *text)
{
    for (int32_t i = 0; context->selection->is_node && i < text->count; i++) {
        const struct rank_entry *entry = &text->entries[i];
        int64_t nodes = range_size(entry->resources), processes = range_size(entry->processes);
        if (processes % nodes == 0)
            continue;
        diag_warn(context->diag, ROOST_WARN_REFERENCE_REFUSES, entry->at,
                  "'%s' spreads %lld processes over %lld nodes unevenly; RLinf itself refuses this",
                  quote(entry->text).text, (long long)processes, (long long)nodes);
    }
}

bool component_place(struct row_context *context, const struct bound_rule *rule,
                     struct roost_component *out)
{
    struct holdings holdings;
    out->strategy = rule->selection.is_node ? ROOST_STRATEGY_NODE : ROOST_STRATEGY_FLEXIBLE;
    context->selection = &rule->selection;
    context->at = rule->rule->text.at;
    context->text = &rule->text;
    warn_uneven(context, &rule->text);
    return component_set_labels(out, context->arena, &rule->selection, context->diag) &&
           set_ranges(context, &rule->text, out) && hold(context, &rule->text, &holdings) &&
           rows_fill(context, &holdings, out);
}
