/* lines.h - what workers write, as the lines that roost shows: for programs with a screen of their own.
 *
 * A line is "[component/rank] text". Colour sequences pass or are removed, a progress bar is one line with
 * its newest state, and everything else that a terminal would interpret is escaped. */
#ifndef ROOST_LINES_H
#define ROOST_LINES_H

#include <roost/render.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Give the reader so many bytes of a log when there are so many: it then consumes some of them. */
enum { ROOST_LINES_BYTES = 256 * 1024 };

/* Bytes of a progress bar that are shown at most. */
enum { ROOST_BAR_MAX = 1024 };

/* One stream of one worker. */
struct roost_lines {
    const char *component; /* borrowed; NULL = lines without a label */
    int32_t rank;
    bool has_color;
    bool is_end;   /* nothing follows the bytes: the last line needs no newline */
    uint32_t memo; /* 0 where a log starts; kept from call to call */
    int32_t width; /* of the terminal: columns that a progress bar is cut at; 0 = no bars */
    size_t bar_len;
    char bar[ROOST_BAR_MAX]; /* the newest state of a line that goes on; bar_len is 0 without one */
};

/* Writes the whole lines of the bytes, each with its label and a newline. *out_taken is how many bytes are
 * done with; give the others again, with what follows them. A line whose states are divided by carriage
 * returns is a progress bar: until it ends, `bar` has its newest state, with the label and without a
 * newline, narrower than `width`. The bar stays from call to call until it is replaced or its line is
 * written. ROOST_ERR_IO when `write` refused,
 * ROOST_ERR_MEMORY without memory. */
ROOST_API enum roost_code roost_lines_show(struct roost_lines *lines, const char *bytes, size_t len,
                                           roost_write_fn write, void *ctx,
                                           size_t *out_taken) ROOST_MUST_USE;

/* Whether colours are on where nobody asked for or against them: on a terminal that has some (`term` is
 * TERM), unless NO_COLOR is set and not empty. Both may be NULL. */
ROOST_API bool roost_color_is_on(bool is_terminal, const char *no_color, const char *term);

#ifdef __cplusplus
}
#endif

#endif
