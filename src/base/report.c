/* report.c - the list behind struct roost_report, and the words of codes.
 * Keeps at most REPORT_KEPT entries: a hostile file with a hundred thousand mistakes must not cost memory,
 * and nobody reads past the first hundred. Without memory it only counts. */
#include "base/report_internal.h"

#include <stdlib.h>
#include <string.h>

const char *roost_code_word(enum roost_code code)
{
    switch (code) {
#define X(name, word, status)                                                                      \
    case ROOST_ERR_##name: return word;
        ROOST_ERROR_MAP(X)
#undef X
    case ROOST_OK: break;
    }
    return "ok";
}

int roost_code_exit(enum roost_code code)
{
    switch (code) {
#define X(name, word, status)                                                                      \
    case ROOST_ERR_##name: return status;
        ROOST_ERROR_MAP(X)
#undef X
    case ROOST_OK: break;
    }
    return 0;
}

const char *roost_warning_word(enum roost_warning warning)
{
    switch (warning) {
#define X(name, word)                                                                              \
    case ROOST_WARN_##name: return word;
        ROOST_WARNING_MAP(X)
#undef X
    case ROOST_WARN_NONE: break;
    }
    return "none";
}

struct roost_report *roost_report_new(void)
{
    return calloc(1, sizeof(struct roost_report));
}

void roost_report_free(struct roost_report *report)
{
    if (!report)
        return;
    arena_release(&report->arena);
    free(report->entries);
    free(report);
}

size_t roost_report_errors(const struct roost_report *report)
{
    return report->errors;
}

size_t roost_report_warnings(const struct roost_report *report)
{
    return report->warnings;
}

size_t roost_report_count(const struct roost_report *report)
{
    return report->count;
}

const struct roost_diagnostic *roost_report_at(const struct roost_report *report, size_t index)
{
    return index < report->count ? &report->entries[index] : NULL;
}

int roost_report_exit(const struct roost_report *report)
{
    static const int by_weight[] = {5, 2, 3, 4, 1};
    for (size_t i = 0; i < sizeof by_weight / sizeof *by_weight; i++)
        if (report->exits & 1u << by_weight[i])
            return by_weight[i];
    return 0;
}

static int order(const struct roost_diagnostic *a, const struct roost_diagnostic *b)
{
    /* Faults without a place come last: they are about the whole. */
    if ((a->line == 0) != (b->line == 0))
        return a->line == 0 ? 1 : -1;
    int by_file = strcmp(a->file, b->file);
    if (by_file)
        return by_file;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    return 0;
}

struct roost_diagnostic *report_add(struct roost_report *report,
                                    const struct roost_diagnostic *entry)
{
    if (entry->warning == ROOST_WARN_NONE) {
        report->errors++;
        report->exits |= 1u << roost_code_exit(entry->code);
    } else {
        report->warnings++;
    }
    if (report->count == REPORT_KEPT)
        return NULL;
    if (report->count == report->room) {
        size_t room = report->room ? report->room * 2 : 16;
        struct roost_diagnostic *entries = realloc(report->entries, room * sizeof *report->entries);
        if (!entries)
            return NULL;
        report->entries = entries;
        report->room = room;
    }
    struct roost_diagnostic copy = *entry;
    copy.file = arena_copy(&report->arena, sv_from(entry->file));
    copy.message = arena_copy(&report->arena, sv_from(entry->message));
    if (entry->source_line)
        copy.source_line = arena_copy(&report->arena, sv_from(entry->source_line));
    if (!copy.file || !copy.message || (entry->source_line && !copy.source_line))
        return NULL;

    /* An insertion sort: entries come nearly in order, and ties keep the order they were reported in. */
    size_t at = report->count++;
    while (at > 0 && order(&copy, &report->entries[at - 1]) < 0) {
        report->entries[at] = report->entries[at - 1];
        at--;
    }
    report->entries[at] = copy;
    return &report->entries[at];
}

void report_set_hint(struct roost_report *report, struct roost_diagnostic *entry, const char *hint)
{
    const char *copy = arena_copy(&report->arena, sv_from(hint));
    if (copy)
        entry->hint = copy;
}
