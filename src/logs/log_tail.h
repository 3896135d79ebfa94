/* log_tail.h - follows the logs of a run: hands on what workers have written, as they write it.
 *
 * One tail follows many ranks of one run directory. It keeps nothing of what it reads: what a sink does
 * not take is read again, so a slow reader costs time and no memory. A few descriptors serve any
 * number of files. One loud rank does not starve the others.
 *
 * The loop of who uses it:
 *
 *     poll({log_tail_fd(tail), POLLIN}, ..., log_tail_timeout(tail));
 *     log_tail_read(tail, sink, ctx);
 *
 * and when the run has ended, log_tail_finish until it says that it is done. */
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
    uint32_t *memo; /* one word a stream that the tail keeps for the sink; 0 where a file starts */
};

/* Takes a chunk. *taken is chunk->len; a sink that wants to see some of it again, with what follows,
 * sets it lower: those bytes come back when the file has grown, or at its end. Of a chunk of
 * LOG_CHUNK_MAX bytes something has to be taken.
 * Returns false when it wants no more for now: the tail then stops, and what was not taken comes
 * again with the next read. */
typedef bool (*log_sink)(void *ctx, const struct log_chunk *chunk, size_t *taken);

/* A tail that follows nothing yet. Borrows the descriptor of the run directory as long as it lives.
 * NULL after filling `err`. */
struct log_tail *log_tail_new(int run_dir, struct roost_error *err);
void log_tail_free(struct log_tail *tail);

/* Follows both streams of a rank. Neither its files nor its directory need to be there yet. Without
 * `from_start`, what is in them now is left out. False when there is no memory, or when the component
 * is not a name. */
bool log_tail_add(struct log_tail *tail, const char *component, int32_t component_index,
                  int32_t rank, bool from_start);

/* Readable when something may have grown; -1 when there are no watches to be had. */
int log_tail_fd(const struct log_tail *tail);

/* Milliseconds until log_tail_read is to be called though nothing became readable: 0 when there is
 * more to read now, up to 100 while some ranks have no watch (their directories are not there, or
 * the system's limit is reached), -1 for never. */
int log_tail_timeout(const struct log_tail *tail);

/* How many ranks are looked at in turns because the system's limit of watches is reached; 1,000
 * files every 100 ms. Worth one line to the user. */
size_t log_tail_unwatched(const struct log_tail *tail);

/* Hands on what there is: at most a chunk a stream and some MiB in all, oldest news first. True when
 * there is more to read now. */
bool log_tail_read(struct log_tail *tail, log_sink sink, void *ctx);

/* Says that a life of this worker is over: what stands in its files is handed on with is_end, so that
 * a last line without a newline is not joined with the first one of its next life. */
void log_tail_end(struct log_tail *tail, int32_t component_index, int32_t rank);

/* Hands on everything to its end, with is_end. As much as log_tail_read in one call: true when all is
 * done, false when it is to be called again. */
bool log_tail_finish(struct log_tail *tail, log_sink sink, void *ctx);

/* A log with bytes that were not handed on. */
struct log_rest {
    int32_t component_index, rank;
    enum log_stream stream;
    int64_t bytes;
};

/* How many logs have such bytes, before log_tail_finish is done. Fills *out with the longest rest; it is
 * left alone when there is none. */
int32_t log_tail_rest(struct log_tail *tail, struct log_rest *out);

/* A log that cannot be read: a link, a file without permission, a directory. */
struct log_trouble {
    int32_t component_index, rank;
    enum log_stream stream;
    int error; /* errno */
};

/* The first one that was met. False when there is none. Such files are not tried again. */
bool log_tail_trouble(const struct log_tail *tail, struct log_trouble *out);

#endif
