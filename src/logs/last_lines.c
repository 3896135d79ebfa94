/* last_lines.c - reads the end of a log backwards by lines. The log may still grow, or be gone. */
#include "logs/last_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/file.h"

enum { TAIL_BYTES = 64 * 1024, LINE_SHOWN = 1000 };

static bool is_end_of_line(char c)
{
    return c == '\n' || c == '\r';
}

/* The last bytes of the file; how many, or -1. *out_is_cut when there are more before them. */
static ssize_t read_tail(int fd, int64_t size, char *bytes, bool *out_is_cut)
{
    int64_t from = size > TAIL_BYTES ? size - TAIL_BYTES : 0;
    *out_is_cut = from > 0;
    return file_read_at(fd, bytes, TAIL_BYTES, from);
}

static void put_line(const char *at, const char *end, const char *prefix, struct text *out)
{
    bool is_long = end - at > LINE_SHOWN;
    if (is_long)
        end = escape_whole_characters(at, at + LINE_SHOWN);
    text_puts(out, prefix);
    if (text_reserve(out, ESCAPE_GROWTH * (size_t)(end - at) + ESCAPE_SLACK)) {
        char *to = out->bytes + out->len;
        escape_line(at, end, &to);
        out->len = (size_t)(to - out->bytes);
    }
    text_puts(out, is_long ? "...\n" : "\n");
}

/* Where the last `count` lines that are not empty at the end start. */
static const char *find_start(const char *at, const char *end, int count, bool is_cut)
{
    const char *start = end;
    for (int lines = 0; start > at && lines < count; lines++) {
        if (start < end)
            start--; /* the end of the line before */
        while (start > at && !is_end_of_line(start[-1]))
            start--;
    }
    /* What is cut off at its front is no line, unless there is no other. */
    if (start == at && is_cut) {
        const char *next = start;
        while (next < end && !is_end_of_line(*next))
            next++;
        if (next < end)
            start = next + 1;
    }
    return start;
}

static int put_lines(const char *at, const char *end, int count, bool is_cut, const char *prefix,
                     struct text *out)
{
    int shown = 0;
    while (end > at && is_end_of_line(end[-1]))
        end--;
    if (end == at || count <= 0)
        return 0;
    for (const char *line = find_start(at, end, count, is_cut); line <= end; shown++) {
        const char *stop = line;
        while (stop < end && !is_end_of_line(*stop))
            stop++;
        put_line(line, stop, prefix, out);
        line = stop + 1;
    }
    return shown;
}

int last_lines(int run_dir, const char *component, int32_t rank, enum log_stream stream, int count,
               const char *prefix, struct text *out)
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
        shown = put_lines(bytes, bytes + got, count, is_cut, prefix, out);
    free(bytes);
    close(fd);
    return shown;
}
