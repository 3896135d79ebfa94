/* lost.h - exit records of lives whose supervisor was killed before it could write them.
 *
 * Every life has exactly one exit record. The supervisor writes it. When it was killed, another process
 * does: the guardian, else the driver, else the next program that looks at the run. They know which
 * lives had begun from a file that the supervisor keeps beside the records: for each process its latest
 * life. */
#ifndef SUPERVISE_LOST_H
#define SUPERVISE_LOST_H

#include <roost/launch.h>

/* Its name in the folder of a run. No component has a name that begins with a dot. */
#define LOST_FILE ".lives"

/* Makes the file in the directory of a run, with room for every process; -1 with errno. */
int lost_open(int run_dir, int32_t process_count);

/* A life is about to begin (pid 0) or has begun, as `event` describes it; `index` is the place of its
 * process among all of the run. Life 0 = it did not begin. */
void lost_note(int fd, int32_t index, const char *component, const struct roost_event *event);

/* Every life has its record: removes the file. */
void lost_forget(int run_dir);

/* What is recorded as the end of the run, unless it has an end already: nothing, because another
 * process does that; that it failed; or that it was found crashed, with everything that belonged to it. */
enum lost_end { LOST_END_OPEN, LOST_END_FAILED, LOST_END_CRASHED };

/* Writes the record of every life that has none, then the end. Call it when nothing of the run lives.
 * Several processes may call it, also at once. */
void lost_record(int run_dir, enum lost_end kind);

#endif
