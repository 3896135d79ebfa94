/* line_reader.h - bytes of a log as the lines that people see.
 *
 * A line ends with a newline. Carriage returns divide it into states, as a progress bar writes them; the
 * line shows its newest state that is not blank. The reader filters the text (logs/line_filter.h) and
 * cuts a state of more than LOG_LINE_MAX bytes, with a mark: such a state is a line of its own.
 *
 * The reader keeps no text. What it does not consume has to come again, with what follows it. The result
 * does not depend on where the bytes were divided. */
#ifndef LOGS_LINE_READER_H
#define LOGS_LINE_READER_H

#include <stdint.h>

#include "base/strview.h"
#include "logs/line_filter.h"

enum {
    LOG_LINE_MAX = 64 * 1024,
    LOG_LINE_ROOM = ESCAPE_GROWTH * LOG_LINE_MAX + FILTER_SLACK +
        32, /* bytes that a line may become */
    /* Of so many bytes line_read consumes some: a state, and the blanks that may follow it. */
    LOG_LINE_BYTES = 2 * LOG_LINE_MAX + 16,
};

enum { LINE_LABEL_MAX = 128 };

/* "[actor/0] ", what stands before each line of a worker, in the colour of its component; returns its
 * length. A name of more than 63 bytes is cut. */
size_t line_label(char out[LINE_LABEL_MAX], const char *component, int32_t rank, bool has_color);

struct line_reader {
    const char *at, *end; /* what is left of the bytes; borrowed */
    uint32_t memo;        /* what to know of the bytes before; 0 where a log starts */
    bool is_end;          /* nothing follows these bytes: the last line needs no newline */
    bool has_color;
};

enum line_kind {
    LINE_NONE,  /* no whole line is left */
    LINE_WHOLE, /* a line, without its newline */
    LINE_OPEN, /* the newest state of a progress bar whose line goes on; it is the last of these bytes */
};

/* Writes the next line at *out, which has LOG_LINE_ROOM bytes, and moves *out behind it. Moves it->at behind
 * what is done with; with LINE_NONE and LINE_OPEN the bytes from there have to come again. */
enum line_kind line_read(struct line_reader *it, char **out);

/* The state that the line [at, end) shows, as it was written. The line is without its newline. */
struct strview line_newest_state(const char *at, const char *end);

/* Whether the bytes before were states of a progress bar, whose line goes on. */
static inline bool line_is_open(uint32_t memo)
{
    return (memo & 4) != 0;
}

#endif
