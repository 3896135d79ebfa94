/* escape.h - text of others made safe for a terminal.
 *
 * Shown as they are: printable ASCII, tab, and valid UTF-8 of characters that are not controls.
 * Everything else is shown byte by byte as \xHH: C0 and C1 controls (in one byte and in UTF-8's two),
 * DEL, bytes that are not UTF-8, and the characters that end lines or turn the direction of text
 * around (U+2028, U+2029, U+202A-U+202E, U+2066-U+2069). A backslash stays a backslash. */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stddef.h>

enum {
    ESCAPE_GROWTH = 4, /* bytes that one byte becomes at most */
    ESCAPE_SLACK = 16, /* bytes behind the result that may be written to */
};

/* Copies the text at `at` to *out, escaped, up to the first newline or carriage return, at most up to
 * `end`. Returns where it stopped and moves *out behind what was written. *out needs room for
 * ESCAPE_GROWTH * (end - at) + ESCAPE_SLACK bytes. */
const char *escape_line(const char *at, const char *end, char **out);

/* The same without vector instructions: what machines that have none run, and tests compare. */
const char *escape_line_plain(const char *at, const char *end, char **out);

/* `end`, or less when the text ends within a character: where that character starts. */
const char *escape_whole_characters(const char *at, const char *end);

#endif
