/* record.h - exit records: a line of records.jsonl for each life of a process, and one for the run. */
#ifndef LAUNCH_LOCAL_RECORD_H
#define LAUNCH_LOCAL_RECORD_H

#include <roost/launch.h>

#include "base/text.h"

/* How a life of a process of `component` ended. */
void record_put_life(struct text *out, const char *component, const struct roost_event *event);

/* The last line of a run that came to its end. */
void record_put_end(struct text *out, bool has_failed, int32_t ended_by, int64_t ended_at);

/* Finds the record of the life that `event` names among `records` and fills in how it ended; false
 * when there is none. */
bool record_find(struct strview records, const char *component, struct roost_event *event);

#endif
