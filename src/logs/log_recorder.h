/* log_recorder.h - notes when the lines of a run's workers were written (log_times.h).
 *
 * Nothing stands between a worker and its log: a recorder looks at the sizes of the logs, by stat, and
 * costs workers nothing. The supervisor of a run has it, so it records whether or not a driver shows the
 * lines, and on several nodes as well: logs of other nodes grow in the same tree.
 *
 * What is promised:
 * - A log that has grown is noted with the time of its last write, by the clock of its file system
 *   (a few ms exact). Lines that were written between two looks have the time of the last of them.
 * - Each log is looked at every RECORDER_MS. With more than RECORDER_LOOKS logs (250 processes), that many
 *   are looked at per turn, so that a look comes RECORDER_MS later for every 250 processes more; 20,000
 *   processes are looked at every 4 s. The end of a worker is a look at its logs, too.
 * - Lines of another node have the time at which they came to this machine: an agent sends every 50 ms.
 * - The file of a component has at most RECORDER_ROOM bytes and one eighth of what its logs have. Growth for
 *   which there is no room, or on a full disk, belongs to the next mark of that log.
 * - No descriptor is kept. A recorder that cannot write leaves the run alone. */
#ifndef LOGS_LOG_RECORDER_H
#define LOGS_LOG_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

struct log_recorder;

enum { RECORDER_MS = 50, RECORDER_LOOKS = 500, RECORDER_ROOM = 64 * 1024, RECORDER_SHARE = 8 };

/* Borrows the descriptor of the run directory as long as it lives. NULL without memory: every function
 * below then does nothing. */
struct log_recorder *log_recorder_new(int run_dir);

/* Writes what was noted, then frees it. */
void log_recorder_free(struct log_recorder *recorder);

/* A process begins to write its logs, which exist already: looks at them from now on. Makes the file of times
 * with the first rank of a component. `id` is its number among the processes of the run, 0 and up. The name
 * is borrowed as long as the recorder lives. */
void log_recorder_begin(struct log_recorder *recorder, int32_t id, const char *component,
                        int32_t rank);

/* The process has ended: looks at its logs once more. */
void log_recorder_end(struct log_recorder *recorder, int32_t id);

/* Looks at what is due and writes what is complete. Returns after how many ms to call it again; -1 = not
 * before the next log_recorder_begin or log_recorder_end. */
int64_t log_recorder_tick(struct log_recorder *recorder);

#endif
