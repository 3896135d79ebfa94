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
    int32_t length; /* characters to underline; 0 counts as 1 */
};

#define NOWHERE ((struct place){0})

/* Line `line` of the source without its end; empty when there is none. */
struct strview source_line(const struct source *source, int32_t line);

/* The place of the byte `offset` of the source. */
struct place source_place(const struct source *source, size_t offset, int32_t length);

/* The place of `part`, a piece of the scalar `value` that starts at `at`. It is exact when the file
 * has the scalar's bytes as they are (plain, or quoted without escapes); otherwise it is `at`. */
struct place place_inside(struct place at, struct strview value, struct strview part);

#endif
