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

/* The exit status of a run that ended as `end`, its last event, says. */
int record_status(const struct roost_event *end);

/* The last line of a run that came to its end, as its last event says. */
void record_put_end(struct text *out, bool has_failed, const struct roost_event *end);

/* The last line of a run that did not come to its end, written by the process that found it. */
void record_put_crash(struct text *out);

/* How a life ended, in a word of `roost ps`. */
enum record_outcome { RECORD_DONE, RECORD_FAILED, RECORD_KILLED, RECORD_LOST };

/* Reads the component, rank and life of a line, and how that life ended; false when the line is not a whole
 * record of a life. */
bool record_read_outcome(struct strview line, struct record_name *out, enum record_outcome *how);

/* Whether a line is the last one of a run. */
bool record_is_end(struct strview line);

/* Finds the record of the life that `event` names among `records` and fills in how it ended; false
 * when there is none. */
bool record_find(struct strview records, const char *component, struct roost_event *event);

/* The life that a line is about; false when the line is not a record of a life. */
bool record_read_name(struct strview line, struct record_name *out);

#endif
