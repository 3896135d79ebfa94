/* log_tail.h - follows the logs of a run: passes on what workers write, as they write it.
 *
 * One tail follows many ranks of one run directory. It stores nothing that it reads: what a sink does not
 * take is read again later, so a slow reader costs time but no memory. A few descriptors serve any number
 * of files. One loud rank does not starve the others.
 *
 * The loop of a caller:
 *
 *     poll({log_tail_fd(tail), POLLIN}, ..., log_tail_timeout(tail));
 *     log_tail_read(tail, sink, ctx);
 *
 * When the run has ended, it calls log_tail_finish until that returns true. */
#ifndef LOGS_LOG_TAIL_H
#define LOGS_LOG_TAIL_H

#include <roost/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "logs/log_file.h"

struct log_tail;

enum { LOG_CHUNK_MAX = 256 * 1024 };

/* Some bytes of one stream, in their order. */
struct log_chunk {
    int32_t component_index; /* as it was added */
    int32_t rank;
    enum log_stream stream;
    const char *bytes; /* borrowed for the call */
    size_t len;        /* at most LOG_CHUNK_MAX; 0 only with is_end */
    bool is_end;       /* nothing follows for now: the worker is gone. Take all of it. */
    uint32_t
        *memo; /* 32 bits per stream that the tail keeps for the sink; 0 at the start of a file */
};

/* Takes a chunk. *taken is chunk->len. A sink that wants to see the end of the chunk again, together with
 * what follows, sets it lower: those bytes come back when the file has grown, or at its end. The sink must
 * take something of a chunk of LOG_CHUNK_MAX bytes.
 * Returns false when it wants no more for now: the tail then stops, and what was not taken comes again
 * with the next read. */
typedef bool (*log_sink)(void *ctx, const struct log_chunk *chunk, size_t *taken);

/* A tail that follows nothing yet. Borrows the descriptor of the run directory as long as it lives.
 * NULL after filling `err`. */
struct log_tail *log_tail_new(int run_dir, struct roost_error *err);

/* The same without watches, for a tail that only reads what is there. */
struct log_tail *log_tail_new_still(int run_dir, struct roost_error *err);
void log_tail_free(struct log_tail *tail);

/* Follows both streams of a rank. Neither its files nor its directory need to exist yet. Without
 * `from_start`, skips what is in them now. False without memory, or when `component` is not a valid
 * name. */
bool log_tail_add(struct log_tail *tail, const char *component, int32_t component_index,
                  int32_t rank, bool from_start);

/* A descriptor that is readable when a file may have grown; -1 when the system gives no watches. */
int log_tail_fd(const struct log_tail *tail);

/* After how many milliseconds to call log_tail_read even if nothing became readable: 0 when there is more to
 * read now, up to 100 while some ranks have no watch (their directories do not exist yet, or the system's
 * limit is reached), -1 for never. */
int log_tail_timeout(const struct log_tail *tail);

/* How many ranks are polled in turns, 1,000 files every 100 ms, because the system's limit of watches is
 * reached. Worth one line to the user. */
size_t log_tail_unwatched(const struct log_tail *tail);

/* Passes on what there is: at most one chunk per stream and some MiB in all, the longest waiting first. True
 * when there is more to read now. */
bool log_tail_read(struct log_tail *tail, log_sink sink, void *ctx);

/* A life of this worker is over: passes on the rest of its files with is_end, so that a last line without a
 * newline is not joined with the first line of the next life. */
void log_tail_end(struct log_tail *tail, int32_t component_index, int32_t rank);

/* Passes on everything to the end, with is_end, as much per call as log_tail_read. True when all is done;
 * otherwise call it again. */
bool log_tail_finish(struct log_tail *tail, log_sink sink, void *ctx);

/* During a call of the sink: when the bytes were written, in ms since 1970, by log_history.h. 0 = just now. */
int64_t log_tail_time(const struct log_tail *tail);

/* A log with bytes that were not passed on. */
struct log_rest {
    int32_t component_index, rank;
    enum log_stream stream;
    int64_t bytes;
};

/* How many logs have such bytes, before log_tail_finish is done. Fills *out with the longest rest, if there
 * is one. */
int32_t log_tail_rest(struct log_tail *tail, struct log_rest *out);

/* A log that cannot be read: a link, a file without permission, a directory. */
struct log_trouble {
    int32_t component_index, rank;
    enum log_stream stream;
    int error; /* errno */
};

/* The first such log. False when there is none. Such files are not tried again. */
bool log_tail_trouble(const struct log_tail *tail, struct log_trouble *out);

#endif
