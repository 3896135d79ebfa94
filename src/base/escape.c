/* escape.c - copies text and escapes every byte that a terminal would interpret.
 *
 * Most bytes of a log are printable, so the loop copies blocks and checks them on the way: one load, one
 * store and a few compares per block. Only a block with a special byte is handled byte by byte. A block is
 * stored before it is checked; ESCAPE_SLACK makes room for that. */
#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static bool is_end_of_line(char c)
{
    return c == '\n' || c == '\r';
}

static char *put_byte(char *out, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'x';
    out[2] = digits[byte >> 4];
    out[3] = digits[byte & 15];
    return out + 4;
}

const char *escape_character(const char *at, const char *end, char **out)
{
    uint32_t code = 0;
    size_t len = utf8_next(at, end, &code);
    bool is_shown = len > 1 && utf8_is_safe(code);
    for (size_t i = 0; i < (len ? len : 1); i++)
        if (is_shown)
            *(*out)++ = at[i];
        else
            *out = put_byte(*out, (unsigned char)at[i]);
    return at + (len ? len : 1);
}

/* Eight bytes at a time: true when one of them is not printable ASCII. Tabs count as special here;
 * escape_copy_bytes lets them pass. */
static bool has_special(uint64_t block)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    uint64_t below_blank = block - ones * 0x20;
    uint64_t above = (block & ~highs) + ones; /* 0x7f carries into the high bit */
    return ((below_blank | above | block) & highs) != 0;
}

const char *escape_copy_words(const char *at, const char *end, char **out)
{
    while (end - at >= 8) {
        uint64_t block;
        memcpy(&block, at, sizeof block);
        if (has_special(block)) {
            const char *stop = escape_copy_bytes(at, at + 8, out);
            if (stop < at + 8)
                return stop;
        } else {
            memcpy(*out, at, sizeof block);
            *out += 8;
        }
        at += 8;
    }
    return escape_copy_bytes(at, end, out);
}

const char *escape_line_plain(const char *at, const char *end, char **out)
{
    for (;;) {
        at = escape_copy_words(at, end, out);
        if (at == end || is_end_of_line(*at))
            return at;
        at = escape_character(at, end, out);
    }
}

const char *escape_line(const char *at, const char *end, char **out)
{
    for (;;) {
        at = escape_copy_plain(at, end, out);
        if (at == end || is_end_of_line(*at))
            return at;
        at = escape_character(at, end, out);
    }
}

void escape_text(const char *text, char *out)
{
    const char *end = text + strlen(text);
    while ((text = escape_line(text, end, &out)) < end)
        out = put_byte(out, (unsigned char)*text++);
    *out = '\0';
}

const char *escape_whole_characters(const char *at, const char *end)
{
    for (int back = 1; back <= 3 && end - at >= back; back++) {
        unsigned char c = (unsigned char)end[-back];
        if ((c & 0xc0) == 0x80)
            continue;
        int length = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return length > back ? end - back : end;
    }
    return end;
}
