/* log_times.h - the file of times: when the lines of a component were written.
 *
 * <run directory>/<component>/.times, beside the logs, which stay the bytes that workers wrote. It starts
 * with TIMES_MAGIC; marks follow, in the order of their times. A mark says: at this time, this log had so
 * many bytes more than at its mark before. A line belongs to the mark that has its last byte, so that is
 * the time of the line.
 *
 * A mark is three numbers, each a zigzag varint (7 bits per byte, lowest first, at most 10 bytes): the
 * milliseconds since the mark before (since 1970 for the first), rank * 2 + stream, and the bytes that the
 * log has grown; less than 0 when the log was cut. That is 3 to 6 bytes for most marks.
 *
 * This file knows bytes alone. log_recorder.h writes the file, log_merge.h reads it. */
#ifndef LOGS_LOG_TIMES_H
#define LOGS_LOG_TIMES_H

#include <stddef.h>
#include <stdint.h>

#include "logs/log_file.h"

#define TIMES_FILE ".times"
#define TIMES_MAGIC "roosttm1"

enum { TIMES_MAGIC_LEN = sizeof TIMES_MAGIC - 1, TIMES_MARK_MAX = 30 };

/* The last millisecond of the year 9999: any time up to here can be printed. */
#define TIMES_TIME_MAX INT64_C(253402300799999)

struct times_mark {
    int64_t time; /* milliseconds since 1970, 0 to TIMES_TIME_MAX */
    int32_t rank; /* 0 or more */
    enum log_stream stream;
    int64_t growth; /* bytes */
};

/* Writes a mark that follows one of time `before` (0 = it is the first); returns how many bytes. */
size_t times_put(uint8_t out[TIMES_MARK_MAX], int64_t before, const struct times_mark *mark);

enum times_result {
    TIMES_OK,
    TIMES_PART, /* the bytes end within a mark */
    TIMES_BAD,  /* no mark: the file is damaged here */
};

/* Reads the mark at `at`, which follows one of time `before`. *used is its length. Believes nothing: a mark
 * that is OK has a time, a rank and a stream within their limits. */
enum times_result times_get(const uint8_t *at, size_t len, int64_t before, struct times_mark *out,
                            size_t *used);

#endif
