/* last_lines.c - reads the end of a log backwards by lines. The log may still grow, or be gone. */
#include "logs/last_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "logs/line_reader.h"

enum { TAIL_BYTES = 64 * 1024, LINE_SHOWN = 1000 };

/* The last bytes of the file; how many, or -1. *out_is_cut when there are more before them. */
static ssize_t read_tail(int fd, int64_t size, char *bytes, bool *out_is_cut)
{
    int64_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    *out_is_cut = from > 0;
    return file_read_at(fd, bytes, TAIL_BYTES, from);
}

static void put_line(struct strview line, const struct last_lines_style *style, struct text *out)
{
    const char *end = line.at + line.len;
    bool is_long = line.len > LINE_SHOWN;
    if (is_long)
        end = filter_whole(line.at, line.at + LINE_SHOWN);
    text_puts(out, style->prefix);
    if (text_reserve(out, ESCAPE_GROWTH * (size_t)(end - line.at) + FILTER_SLACK)) {
        char *to = out->bytes + out->len;
        filter_line(line.at, end, style->has_color, &to);
        out->len = (size_t)(to - out->bytes);
    }
    text_puts(out, is_long ? "...\n" : "\n");
}

/* Where the line that ends at `end` starts. */
static const char *find_line(const char *at, const char *end)
{
    const char *newline = end > at ? memrchr(at, '\n', (size_t)(end - at)) : NULL;
    return newline ? newline + 1 : at;
}

/* Whether the line has several states, as a progress bar has. A carriage return at its end is one of
 * "\r\n". */
static bool is_bar(const char *line, const char *end)
{
    if (end > line && end[-1] == '\r')
        end--;
    return end > line && memchr(line, '\r', (size_t)(end - line));
}

/* Whether the line [line, end) shows nothing because of a progress bar: one that wiped itself, or the
 * empty line that follows one. `at` is where the text starts. */
static bool is_gap(const char *at, const char *line, const char *end)
{
    struct strview state = line_newest_state(line, end);
    if (sv_trim(state).len > 0)
        return false;
    return is_bar(line, end) || (line > at && is_bar(find_line(at, line - 1), line - 1));
}

/* Where the last `count` lines start, gaps not counted. */
static const char *find_start(const char *at, const char *end, int count, bool is_cut)
{
    const char *start = find_line(at, end);
    for (int lines = !is_gap(at, start, end); start > at && lines < count;) {
        const char *stop = start - 1;
        start = find_line(at, stop);
        lines += !is_gap(at, start, stop);
    }
    /* What is cut off at its front is no line, unless there is no other. */
    const char *next = start == at && is_cut ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    return next ? next + 1 : start;
}

static int put_lines(const char *at, const char *end, int count, bool is_cut,
                     const struct last_lines_style *style, struct text *out)
{
    int shown = 0;
    while (end > at && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    if (end == at || count <= 0)
        return 0;
    for (const char *line = find_start(at, end, count, is_cut); line <= end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        if (!is_gap(at, line, stop)) {
            put_line(line_newest_state(line, stop), style, out);
            shown++;
        }
        line = stop + 1;
    }
    return shown;
}

int last_lines(int run_dir, const char *component, int32_t rank, enum log_stream stream, int count,
               const struct last_lines_style *style, struct text *out)
{
    struct stat info;
    int error = 0, shown = 0;
    bool is_cut = false;
    int fd = log_file_open(run_dir, component, rank, stream, &info, &error);
    if (fd < 0)
        return 0;
    char *bytes = malloc(TAIL_BYTES);
    ssize_t got = bytes ? read_tail(fd, info.st_size, bytes, &is_cut) : -1;
    if (!bytes)
        out->has_failed = true;
    if (got > 0)
        shown = put_lines(bytes, bytes + got, count, is_cut, style, out);
    free(bytes);
    close(fd);
    return shown;
}
