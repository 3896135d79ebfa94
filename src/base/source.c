/* source.c - from bytes to lines and columns and back. Only errors come here, so it scans instead
 * of keeping tables. Line breaks are YAML 1.1's, as libyaml counts them. */
#include "base/source.h"

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

struct place place_inside(struct place at, struct strview value, struct strview part)
{
    if (!at.source || at.line < 1 || part.at < value.at || part.at > value.at + value.len)
        return at;
    struct strview line = source_line(at.source, at.line);
    size_t byte = 0;
    for (int32_t column = 1; column < at.column && byte < line.len; column++) {
        size_t len = utf8_next(line.at + byte, line.at + line.len, NULL);
        byte += len ? len : 1;
    }
    if (byte < line.len && (line.at[byte] == '"' || line.at[byte] == '\''))
        byte++;
    struct strview written = sv_sub(line, byte, byte + value.len);
    if (!sv_equal(written, value))
        return at;
    size_t offset = (size_t)(part.at - value.at);
    at.column = 1 + count_characters(sv_sub(line, 0, byte + offset));
    at.length = count_characters(part);
    return at;
}

struct place place_part(struct place at, struct strview value, struct strview part)
{
    if (part.at < value.at || part.at + part.len > value.at + value.len || value.len > INT32_MAX)
        return at;
    at.value = value;
    at.part_from = (int32_t)(part.at - value.at);
    at.part_len = (int32_t)part.len;
    return at;
}

struct place place_settle(struct place at)
{
    struct strview value = at.value;
    if (value.len == 0)
        return at;
    size_t from = (size_t)at.part_from;
    at.value = SV("");
    return place_inside(at, value, sv_sub(value, from, from + (size_t)at.part_len));
}
