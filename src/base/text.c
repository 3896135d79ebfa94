/* text.c - one buffer type for messages, tables and million-row documents. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { STREAM_BUFFER = 256 * 1024 };

static bool flush_nothing(void *ctx, const char *bytes, size_t len)
{
    (void)ctx, (void)bytes, (void)len;
    return false;
}

struct text text_fixed(char *bytes, size_t size)
{
    return (struct text){.bytes = bytes, .cap = size, .flush = flush_nothing};
}

void text_release(struct text *text)
{
    free(text->bytes);
    text->bytes = NULL;
    text->len = text->cap = 0;
}

static bool resize(struct text *text, size_t cap)
{
    char *bytes = realloc(text->bytes, cap);
    if (!bytes) {
        text->has_failed = true;
        return false;
    }
    text->bytes = bytes;
    text->cap = cap;
    return true;
}

static bool flush(struct text *text)
{
    if (text->len && !text->flush(text->ctx, text->bytes, text->len))
        text->has_failed = true;
    text->len = 0;
    return !text->has_failed;
}

bool text_reserve(struct text *text, size_t more)
{
    if (text->has_failed)
        return false;
    if (more <= text->cap - text->len)
        return true;
    if (text->flush) {
        if (text->cap ? !flush(text) : !resize(text, STREAM_BUFFER))
            return false;
        text->has_failed = more > text->cap;
        return !text->has_failed;
    }
    size_t cap = text->cap ? text->cap : 256;
    while (cap - text->len < more) {
        if (cap > SIZE_MAX / 2) {
            text->has_failed = true;
            return false;
        }
        cap *= 2;
    }
    return resize(text, cap);
}

void text_append(struct text *text, const char *bytes, size_t len)
{
    while (text->flush && len > STREAM_BUFFER / 2) {
        if (!text_reserve(text, STREAM_BUFFER / 2))
            return;
        memcpy(text->bytes + text->len, bytes, STREAM_BUFFER / 2);
        text->len += STREAM_BUFFER / 2;
        bytes += STREAM_BUFFER / 2;
        len -= STREAM_BUFFER / 2;
    }
    if (len == 0 || !text_reserve(text, len))
        return;
    memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

void text_put(struct text *text, struct strview view)
{
    text_append(text, view.at, view.len);
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_char(struct text *text, char c)
{
    text_append(text, &c, 1);
}

void text_repeat(struct text *text, char c, int count)
{
    for (int i = 0; i < count; i++)
        text_char(text, c);
}

size_t format_int32(char *out, int32_t value)
{
    if (value >= 0 && value < 10) { /* most numbers of a plan */
        out[0] = (char)('0' + value);
        return 1;
    }
    char digits[11];
    size_t at = sizeof digits;
    uint32_t left = value < 0 ? -(uint32_t)value : (uint32_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0)
        digits[--at] = '-';
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

void text_int(struct text *text, int64_t value)
{
    char digits[24];
    text_append(text, digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)value));
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list args;
    for (size_t room = 128;;) {
        if (!text_reserve(text, room))
            return;
        va_start(args, format);
        int len = vsnprintf(text->bytes + text->len, room, format, args);
        va_end(args);
        if (len < 0) {
            text->has_failed = true;
            return;
        }
        if ((size_t)len < room) {
            text->len += (size_t)len;
            return;
        }
        room = (size_t)len + 1;
    }
}

void text_safe(struct text *text, struct strview view)
{
    const char *end = view.at + view.len;
    for (const char *at = view.at, *next; at < end; at = next) {
        uint32_t code = 0;
        size_t len = utf8_next(at, end, &code);
        bool is_safe = len > 0 && utf8_is_safe(code);
        next = at + (len ? len : 1);
        if (is_safe)
            text_append(text, at, len);
        for (; !is_safe && at < next; at++)
            text_printf(text, "\\x%02x", (unsigned char)*at);
    }
}

const char *text_string(struct text *text)
{
    if (!text_reserve(text, 1))
        return NULL;
    text->bytes[text->len] = '\0';
    return text->bytes;
}

bool text_finish(struct text *text)
{
    if (text->flush && !text->has_failed)
        flush(text);
    return !text->has_failed;
}
