/* record.h - exit records: a line of records.jsonl for each life of a process, and one for the run. */
#ifndef SUPERVISE_RECORD_H
#define SUPERVISE_RECORD_H

#include <roost/launch.h>

#include "base/text.h"

enum { RECORD_COMPONENT_MAX = 64 };

/* What distinguishes one life from all others. */
struct record_name {
    char component[RECORD_COMPONENT_MAX];
    int32_t rank, life, pid;
};

/* The name of the life that `event` is about. */
struct record_name record_name(const char *component, const struct roost_event *event);

/* Below, 0 or above, as strcmp. */
int record_compare(const struct record_name *left, const struct record_name *right);

/* How a life of a process of `component` ended. */
void record_put_life(struct text *out, const char *component, const struct roost_event *event);

/* The last line of a run that came to its end. */
void record_put_end(struct text *out, bool has_failed, int32_t ended_by, int64_t ended_at);

/* The last line of a run that did not come to its end, written by the process that found it. */
void record_put_crash(struct text *out);

/* Whether a line is the last one of a run. */
bool record_is_end(struct strview line);

/* Finds the record of the life that `event` names among `records` and fills in how it ended; false
 * when there is none. */
bool record_find(struct strview records, const char *component, struct roost_event *event);

/* The life that a line is about; false when the line is not a record of a life. */
bool record_read_name(struct strview line, struct record_name *out);

#endif
