/* source.h - the text that something was read from, and places in it.
 *
 * A place is what an error points at. Lines and columns count from 1 and columns count characters;
 * line 0 is "nowhere", for what was never written in a file. */
#ifndef BASE_SOURCE_H
#define BASE_SOURCE_H

#include <stdint.h>

#include "base/strview.h"

struct source {
    const char *name;    /* as the user wrote it: a path, "-", "command line" */
    struct strview text; /* the whole of it; empty when it was streamed */
};

struct place {
    const struct source *source;
    int32_t line;
    int32_t column;
    int32_t length;              /* characters to underline; 0 counts as 1 */
    int32_t part_from, part_len; /* the piece of `value` that is meant: see place_part */
    struct strview value;        /* empty = the place is exact */
};

#define NOWHERE ((struct place){0})

/* Line `line` of the source without its end; empty when there is none. */
struct strview source_line(const struct source *source, int32_t line);

/* The place of the byte `offset` of the source. */
struct place source_place(const struct source *source, size_t offset, int32_t length);

/* The place behind `text`, which starts at `at`. */
struct place place_behind(struct place at, struct strview text);

/* The place of `part`, a piece of the scalar `value` that starts at `at`. It is exact when the file
 * has the scalar's bytes as they are (plain, or quoted without escapes); otherwise it is `at`. */
struct place place_inside(struct place at, struct strview value, struct strview part);

/* The same, found only when it is needed: nearly all pieces are good and nobody asks where they are.
 * Line and column stay those of `at` until place_settle; `value` is borrowed as long. */
struct place place_part(struct place at, struct strview value, struct strview part);
struct place place_settle(struct place at);

#endif
