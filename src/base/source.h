/* source.h - the text that something was read from, and places in it.
 *
 * A place is what an error points at. Lines and columns count from 1, and columns count characters.
 * Line 0 means "nowhere": the value was never written in a file. */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"

/* Reads bytes of a streamed source again: at most `cap` from `offset` on; returns how many. */
typedef size_t (*source_peek_fn)(void *ctx, size_t offset, char *buf, size_t cap);

struct source {
    const char *name;    /* as the user wrote it: a path, "-", "command line" */
    struct strview text; /* all of it; empty when it was streamed */
    source_peek_fn peek; /* for a streamed source that can be read again; may be NULL */
    void *peek_ctx;
    /* For a text that a program wrote: the key of each line. Users do not know its line numbers. */
    const char *const *line_keys;
    int32_t line_key_count;
};

struct place {
    const struct source *source;
    int32_t line;
    int32_t column;
    int32_t length;                /* characters to underline; 0 counts as 1 */
    int32_t piece_from, piece_len; /* the piece of `value` that is meant: see place_piece */
    struct strview value;          /* empty = the place is exact */
    size_t offset;                 /* in a streamed source: bytes before it */
};

#define NOWHERE ((struct place){0})

/* Line `line` of the source without its line break; empty when there is no such line. */
struct strview source_line(const struct source *source, int32_t line);

/* The line of a place as messages show it: all of it, or the part of a long line around the place. */
struct excerpt {
    const char *text; /* in the buffer */
    int32_t first;    /* column of its first character */
    bool goes_on;     /* the line continues after it */
};

/* Puts the excerpt into `buf`, which has `cap` bytes. A line that fits is shown whole. False when the source
 * cannot be read again. */
bool source_excerpt(struct place at, char *buf, size_t cap, struct excerpt *out);

/* The place of the byte `offset` of the source. */
struct place source_place(const struct source *source, size_t offset, int32_t length);

/* The place just after `text`, which starts at `at`. */
struct place place_behind(struct place at, struct strview text);

/* The place of `piece` of the scalar `value` that starts at `at`. It is exact when the file
 * has the scalar's bytes as they are (plain, or quoted without escapes); otherwise it is `at`. */
struct place place_inside(struct place at, struct strview value, struct strview piece);

/* The same, but line and column stay those of `at` until place_settle computes them: nearly all pieces are
 * good, and no error needs their place. `value` is borrowed until then. */
struct place place_piece(struct place at, struct strview value, struct strview piece);
struct place place_settle(struct place at);

/* How a message names a second place: "line 4", or the key when the user does not know the lines. Used as
 * place_name(at).text inside one expression. */
struct place_name {
    char text[128];
};
struct place_name place_name(struct place at);

/* The same with the file: "train.yaml:4". */
struct place_name place_full_name(struct place at);

#endif
