/* last_lines.h - the end of a log, for telling why a worker failed. */
#ifndef LOGS_LAST_LINES_H
#define LOGS_LAST_LINES_H

#include "base/text.h"
#include "logs/log_file.h"

struct last_lines_style {
    const char *prefix; /* before each line */
    bool has_color;     /* colour sequences pass */
};

/* Appends the last `count` lines of a log to `out`: each filtered (logs/line_filter.h), with the prefix and
 * a newline. A progress bar is one line, its newest state (logs/line_reader.h), without empty lines after
 * it; empty lines at the end are left out. Reads no more than the last 64 KiB of the file; of a line longer
 * than 1,000 bytes the end is left out, with "...". Returns how many lines: 0 when there is no such file, or
 * nothing in it. */
int last_lines(int run_dir, const char *component, int32_t rank, enum log_stream stream, int count,
               const struct last_lines_style *style, struct text *out);

#endif
