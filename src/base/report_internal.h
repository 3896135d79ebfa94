/* report_internal.h - a report from the inside: diag.c writes it, report.c reads it. */
#ifndef BASE_REPORT_INTERNAL_H
#define BASE_REPORT_INTERNAL_H

#include <roost/error.h>

#include "base/arena.h"

enum { REPORT_KEPT = 256 };

struct roost_report {
    struct arena arena; /* the text of all entries */
    struct roost_diagnostic *entries;
    size_t count, room;
    size_t errors, warnings; /* kept or not */
    unsigned exits;          /* one bit for each exit status among the errors */
    size_t newest;           /* index of the entry that can still take a hint */
};

/* Copies the entry into the report. NULL when it is only counted: the report is full, or without memory. The
 * pointer is valid until the next call. */
struct roost_diagnostic *report_add(struct roost_report *report,
                                    const struct roost_diagnostic *entry);

void report_set_hint(struct roost_report *report, struct roost_diagnostic *entry, const char *hint);

#endif
