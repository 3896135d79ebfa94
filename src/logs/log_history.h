/* log_history.h - what is in the logs of a tail now, in the order in which it was written.
 *
 * Promised: lines of one log keep their order. Lines of different logs are ordered by their recorded times
 * (log_recorder.h says how exact these are), and lines of the same time by component, rank and stream. Bytes
 * after the last mark of a log come last, by the time at which the log was last written: the recorder was
 * killed, or its disk was full. A history ends where the logs ended when it was made.
 *
 * A run without files of times (made by an older roost) has no such order: its logs come one after the other,
 * by component, rank and stream. log_history_has_times tells. */
#ifndef LOGS_LOG_HISTORY_H
#define LOGS_LOG_HISTORY_H

#include "logs/log_tail.h"

struct log_history;

struct log_history_options {
    int run_dir;                  /* borrowed, the tail's */
    int64_t since;                /* ms since 1970: what was written before is left out */
    bool leaves_out[LOG_STREAMS]; /* streams that are not read */
    bool
        is_followed; /* the tail goes on where the history ends: a last line without a newline waits */
};

/* The history of all ranks that the tail follows, which it borrows; nothing else may read from the tail
 * meanwhile. NULL without memory. */
struct log_history *log_history_new(struct log_tail *tail,
                                    const struct log_history_options *options);
void log_history_free(struct log_history *history);

/* Whether the lines have times: every component with bytes in its logs has a file of them. */
bool log_history_has_times(const struct log_history *history);

/* How many of the logs have bytes. */
int32_t log_history_logs(const struct log_history *history);

/* The index of a component whose file of times is damaged, -1 = none. Known after the first walk. */
int32_t log_history_damaged(const struct log_history *history);

/* How many marks there are. A mark is some bytes of one log that have the same time. */
int64_t log_history_marks(struct log_history *history);

/* Starts a walk at a mark: a line that begins before it and ends in it is whole. */
void log_history_start(struct log_history *history, int64_t mark);

/* Passes on the bytes of one mark after the other, as log_tail_read does, with their time. True when all is
 * done. False when the sink wants no more for now: call it again. */
bool log_history_read(struct log_history *history, log_sink sink, void *ctx);

#endif
