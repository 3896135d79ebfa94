/* line_filter.h - text that a worker wrote, made safe to show.
 *
 * Colour sequences (SGR: ESC [ numbers m) pass where colour is on, and a line that leaves one in force
 * ends with a reset. Where colour is off they are removed. Everything else is shown as base/escape.h
 * says: controls become \xHH. So no line can move the cursor, change the terminal, or colour what
 * stands outside of it.
 *
 * A sequence passes only if a reset undoes it on every terminal: numbers up to 255, separated by ; or :,
 * at most FILTER_SGR_MAX bytes, and no font (10-20), which the Linux console keeps over a reset. */
#ifndef LOGS_LINE_FILTER_H
#define LOGS_LINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/escape.h"
#include "base/strview.h"

#define FILTER_RESET "\x1b[0m"

enum {
    FILTER_SGR_MAX = 64,
    FILTER_SLACK = ESCAPE_SLACK + sizeof FILTER_RESET, /* what a line may need beyond its growth */
};

/* Copies the text at `at` to *out, filtered, up to the first newline or carriage return, at most up to
 * `end`. Returns where it stopped and moves *out behind what was written. *out needs room for
 * ESCAPE_GROWTH * (end - at) + FILTER_SLACK bytes. */
const char *filter_line(const char *at, const char *end, bool has_color, char **out);

/* `end`, or less when the text ends within a character or a colour sequence: where that one starts. */
const char *filter_whole(const char *at, const char *end);

/* Copies as much of a filtered line as fits into so many columns and `room` bytes, and returns its length.
 * Colour sequences need no column, and a tab becomes one blank. A text with a colour ends with a reset.
 * `room` is more than FILTER_SGR_MAX + FILTER_SLACK. */
size_t filter_fit(char *out, size_t room, struct strview text, int columns);

/* The length of the colour sequence at `at`, 0 when there is none that may pass. */
size_t filter_sgr_length(const char *at, const char *end);

#endif
