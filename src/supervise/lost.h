/* lost.h - the lives whose end nobody saw, because their supervisor was killed.
 *
 * Every life has exactly one exit record. The supervisor writes it; after one that was killed, whoever
 * is left does: the guardian, else the driver, else the next who looks at the run. They know what had
 * begun by a file beside the records that the supervisor keeps: for each process its latest life. */
#ifndef SUPERVISE_LOST_H
#define SUPERVISE_LOST_H

#include <roost/launch.h>

/* Makes the file in the directory of a run, with room for every process; -1 with errno. */
int lost_open(int run_dir, int32_t process_count);

/* A life is about to begin (pid 0) or has begun: `event` tells whose, `index` is its process's among all
 * of the run. Life 0 = it did not begin. */
void lost_note(int fd, int32_t index, const char *component, const struct roost_event *event);

/* Every life has its record: nobody needs the file any more. */
void lost_forget(int run_dir);

/* What is recorded as the end of the run, unless it has one: nothing, because somebody else does that; that it
 * failed; or that it was found crashed, with everything that belonged to it. */
enum lost_end { LOST_END_OPEN, LOST_END_FAILED, LOST_END_CRASHED };

/* Writes the record of every life that has none, then the end. For when nothing of the run lives; may be
 * called again, and by several at once. */
void lost_record(int run_dir, enum lost_end kind);

#endif
