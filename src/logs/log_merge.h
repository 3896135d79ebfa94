/* log_merge.h - the marks of several components of a run (log_times.h), merged by time.
 *
 * Marks of one component come as they stand in its file. Of components whose next marks have the same time,
 * the one that was added first comes first. Reads what was in the files when they were added, so that each
 * walk sees the same marks. Keeps no descriptor. */
#ifndef LOGS_LOG_MERGE_H
#define LOGS_LOG_MERGE_H

#include <stdbool.h>

#include "logs/log_times.h"

struct log_merge;

/* Borrows the descriptor of the run directory as long as it lives. NULL without memory. */
struct log_merge *log_merge_new(int run_dir);
void log_merge_free(struct log_merge *merge);

/* Adds the file of times of a component. *out_has_file: whether there is one. False without memory. */
bool log_merge_add(struct log_merge *merge, const char *component, int32_t component_index,
                   bool *out_has_file);

/* Begins again with the first mark. */
void log_merge_rewind(struct log_merge *merge);

/* The next mark, of the component with this index. False after the last one. */
bool log_merge_next(struct log_merge *merge, int32_t *component_index, struct times_mark *out);

/* The index of a component whose file is damaged: its marks end before its bytes do. -1 = none was found so
 * far. */
int32_t log_merge_damaged(const struct log_merge *merge);

#endif
