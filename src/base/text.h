/* text.h - builds text, in memory or streamed.
 *
 * Without a flush function the text grows. With one, it keeps a fixed buffer and flushes it whenever it is
 * full, so a document of any size costs the same memory. Failures stick: append without checks and ask once
 * at the end. */
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

/* A text in `bytes`, which it borrows; an append beyond `size` fails. For short texts of known maximum
 * length, in callers that could not report a failure. Make `bytes` 32 bytes longer than that maximum. Do not
 * release it. */
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

/* Appends the text made safe for a terminal: control characters become \xHH, see escape.h. */
void text_safe(struct text *text, struct strview view);

/* The built text, NUL-terminated and borrowed; NULL after a failure. Not for streamed texts. */
const char *text_string(struct text *text);

/* Flushes the rest of a streamed text; false when anything has failed. */
bool text_finish(struct text *text);

/* The decimal digits of `value` at `out` (no NUL); returns how many. At most 11. */
size_t format_int32(char *out, int32_t value);

#endif
