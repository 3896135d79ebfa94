/* text.h - text to build, in memory or streamed.
 *
 * Without a flush function the text grows; with one it keeps a fixed buffer and hands it on whenever
 * it is full, so a document of any size costs the same memory. Failures stick: append freely and
 * ask once at the end. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/strview.h"

/* Takes `len` bytes; false when it cannot, and the text then ignores all that follows. */
typedef bool (*text_flush_fn)(void *ctx, const char *bytes, size_t len);

struct text {
    char *bytes;
    size_t len;
    size_t cap;
    text_flush_fn flush; /* NULL = grow */
    void *ctx;
    bool has_failed;
};

#define TEXT_INIT {NULL, 0, 0, NULL, NULL, false}

/* A text in `bytes`, which it borrows: what goes beyond fails. For short texts whose longest is known and
 * where a failure would have nobody to tell; leave 32 bytes more than that. Not to be released. */
struct text text_fixed(char *bytes, size_t size);

void text_release(struct text *text);

/* Makes room for `more` bytes; false when there is none. A streamed text has room for 256 KiB
 * at most at a time. */
bool text_reserve(struct text *text, size_t more);

void text_append(struct text *text, const char *bytes, size_t len);
void text_put(struct text *text, struct strview view);
void text_puts(struct text *text, const char *string);
void text_char(struct text *text, char c);
void text_repeat(struct text *text, char c, int count);
void text_int(struct text *text, int64_t value);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The text as a terminal may be given it: what it would obey is shown as \xHH. */
void text_safe(struct text *text, struct strview view);

/* What was built, NUL-terminated and borrowed; NULL after a failure. Not for streamed texts. */
const char *text_string(struct text *text);

/* Hands on what is left of a streamed text; false when anything has failed on the way. */
bool text_finish(struct text *text);

/* The decimal digits of `value` at `out` (no NUL); returns how many. At most 11. */
size_t format_int32(char *out, int32_t value);

#endif
