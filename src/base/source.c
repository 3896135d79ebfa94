/* source.c - from bytes to lines and columns and back. Only errors come here, so it scans instead
 * of keeping tables. Line breaks are YAML 1.1's, as libyaml counts them. */
#include "base/source.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Length of the line break at `at`, 0 when there is none. */
static size_t break_length(const char *at, const char *end)
{
    if ((unsigned char)*at > '\r' && (unsigned char)*at < 0xc2)
        return 0; /* nearly all bytes */
    size_t left = (size_t)(end - at);
    if (*at == '\n')
        return 1;
    if (*at == '\r')
        return left > 1 && at[1] == '\n' ? 2 : 1;
    if (left > 1 && memcmp(at, "\xc2\x85", 2) == 0)
        return 2;
    if (left > 2 && (memcmp(at, "\xe2\x80\xa8", 3) == 0 || memcmp(at, "\xe2\x80\xa9", 3) == 0))
        return 3;
    return 0;
}

struct strview source_line(const struct source *source, int32_t line)
{
    const char *at = source->text.at, *end = at + source->text.len;
    int32_t current = 1;
    const char *start = at;
    while (at < end) {
        size_t len = break_length(at, end);
        if (len && current == line)
            break;
        if (len) {
            current++;
            start = at + len;
        }
        at += len ? len : 1;
    }
    return current == line ? (struct strview){start, (size_t)(at - start)} : SV("");
}

struct place place_behind(struct place place, struct strview text)
{
    const char *at = text.at, *end = at + text.len;
    while (at < end) {
        size_t len = break_length(at, end);
        if (len) {
            place.line++;
            place.column = 1;
            at += len;
            continue;
        }
        len = utf8_next(at, end, NULL);
        at += len ? len : 1;
        place.column++;
    }
    return place;
}

struct place source_place(const struct source *source, size_t offset, int32_t length)
{
    struct place start = {.source = source, .line = 1, .column = 1, .length = length};
    return place_behind(start, sv_sub(source->text, 0, offset));
}

static int32_t count_characters(struct strview text)
{
    int32_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.at[i] & 0xc0) != 0x80;
    return count;
}

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Copies what of the line fits around the byte `caret`, which is column `column` of it, without
 * cutting a character. */
static void cut_around(struct strview line, size_t caret, int32_t column, size_t cap,
                       struct excerpt *out, char *buf)
{
    size_t room = cap - 1, from = 0, to = line.len;
    if (line.len > room) {
        from = caret > room / 2 ? caret - room / 2 : 0;
        from = from > line.len - room ? line.len - room : from;
        to = from + room;
        while (from > 0 && from < caret && is_continuation(line.at[from]))
            from++;
        while (to > caret && to < line.len && is_continuation(line.at[to]))
            to--;
    }
    out->first = column - count_characters(sv_sub(line, from, caret));
    out->goes_on = out->goes_on || to < line.len;
    memmove(buf, line.at + from, to - from);
    buf[to - from] = '\0';
    out->text = buf;
}

static size_t byte_of_column(struct strview line, int32_t column)
{
    size_t byte = 0;
    for (int32_t c = 1; c < column && byte < line.len; c++) {
        size_t len = utf8_next(line.at + byte, line.at + line.len, NULL);
        byte += len ? len : 1;
    }
    return byte;
}

/* The piece of a streamed source around the place, cut to its line. */
static bool peek_around(struct place at, char *buf, size_t cap, struct excerpt *out)
{
    size_t before = at.offset < cap / 2 ? at.offset : cap / 2;
    size_t got = at.source->peek(at.source->peek_ctx, at.offset - before, buf, cap - 1);
    if (got < before || got == 0)
        return false;
    const char *caret = buf + before, *end = buf + got, *start = buf;
    while (before < at.offset && start < caret && is_continuation(*start))
        start++;
    for (const char *it = start; it < caret;) {
        size_t len = break_length(it, end);
        it += len ? len : 1;
        start = len && it <= caret ? it : start;
    }
    const char *stop = caret;
    while (stop < end && break_length(stop, end) == 0)
        stop++;
    out->goes_on = stop == end && got == cap - 1;
    while (out->goes_on && stop > caret + 1 && is_continuation(stop[-1]))
        stop--; /* the last character may not be whole */
    stop -= out->goes_on && stop > caret + 1;
    struct strview line = {start, (size_t)(stop - start)};
    cut_around(line, (size_t)(caret - start), at.column, cap, out, buf);
    return true;
}

bool source_excerpt(struct place at, char *buf, size_t cap, struct excerpt *out)
{
    *out = (struct excerpt){0};
    if (!at.source || at.line < 1)
        return false;
    if (at.source->text.len > 0) {
        struct strview line = source_line(at.source, at.line);
        size_t caret = byte_of_column(line, at.column);
        cut_around(line, caret, at.column, cap, out, buf);
        if (line.len < cap)
            out->first = 1; /* also where bytes are no characters, or the place is behind the end */
        return true;
    }
    return at.source->peek && peek_around(at, buf, cap, out);
}

struct place place_inside(struct place at, struct strview value, struct strview piece)
{
    if (!at.source || at.line < 1 || piece.at < value.at || piece.at > value.at + value.len)
        return at;
    struct strview line = source_line(at.source, at.line);
    size_t byte = byte_of_column(line, at.column);
    if (byte < line.len && (line.at[byte] == '"' || line.at[byte] == '\''))
        byte++;
    struct strview written = sv_sub(line, byte, byte + value.len);
    if (!sv_equal(written, value))
        return at;
    size_t offset = (size_t)(piece.at - value.at);
    at.column = 1 + count_characters(sv_sub(line, 0, byte + offset));
    at.length = count_characters(piece);
    return at;
}

struct place place_piece(struct place at, struct strview value, struct strview piece)
{
    if (piece.at < value.at || piece.at + piece.len > value.at + value.len || value.len > INT32_MAX)
        return at;
    at.value = value;
    at.piece_from = (int32_t)(piece.at - value.at);
    at.piece_len = (int32_t)piece.len;
    return at;
}

struct place place_settle(struct place at)
{
    struct strview value = at.value;
    if (value.len == 0)
        return at;
    size_t from = (size_t)at.piece_from;
    at.value = SV("");
    return place_inside(at, value, sv_sub(value, from, from + (size_t)at.piece_len));
}

/* What the user calls the line, when the source has names of its own for it. */
static const char *key_of(struct place at)
{
    return at.source && at.line > 0 && at.line <= at.source->line_key_count
               ? at.source->line_keys[at.line - 1]
               : NULL;
}

struct place_name place_name(struct place at)
{
    struct place_name name;
    const char *key = key_of(at);
    if (key)
        snprintf(name.text, sizeof name.text, "%s", quote(sv_from(key)).text);
    else
        snprintf(name.text, sizeof name.text, "line %d", (int)at.line);
    return name;
}

struct place_name place_full_name(struct place at)
{
    struct place_name name = place_name(at);
    if (!key_of(at))
        snprintf(name.text, sizeof name.text, "%s:%d",
                 at.source ? quote(sv_from(at.source->name)).text : "", (int)at.line);
    return name;
}
