/* json_string.c - strings and keys: from the opening quote to the closing one.
 * A string of plain ASCII that lies whole in the buffer is used where it is. All others are assembled,
 * unescaped, in the scratch text. Both are UTF-8 without NUL.
 * Faults, including the length limit, are found strictly from left to right, so that the same document
 * gives the same error however its bytes arrive. */
#include <endian.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json_reader_internal.h"

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* One bit in each of the eight bytes that is not plain. A borrow can add a bit above a true one, so
 * only the lowest counts. */
static uint64_t marks(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    uint64_t quotes = word ^ ones * '"', slashes = word ^ ones * '\\';
    return (((word - ones * 0x20) | (quotes - ones) | (slashes - ones)) & ~word & highs) |
           (word & highs);
}

/* The first byte that is not ASCII standing for itself; DEL is as good as a letter. */
static const char *plain_end(const char *at, const char *end)
{
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t found = marks(le64toh(word));
        if (found)
            return at + __builtin_ctzll(found) / 8;
    }
    while (at < end && is_plain((unsigned char)*at))
        at++;
    return at;
}

/* `len` bytes are wrong about this escape. */
static bool refuse_escape(struct json_reader *reader, size_t len, const char *why, const char *hint,
                          struct diag *diag)
{
    struct place at = json_place(reader);
    struct strview written = {reader->at, len};
    bool is_ascii = (unsigned char)reader->at[1] < 0x80;
    at.length = is_ascii ? (int32_t)len : 2;
    enum roost_code code =
        diag_error(diag, ROOST_ERR_SYNTAX, at, "'%s' %s", quote(written).text, why);
    diag_hint(diag, "%s", hint);
    return json_fail(reader, code);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The code unit of the escape "\uXXXX" at `at`; false with the length of what is right about it. */
static bool code_unit(const char *at, const char *end, uint32_t *out_unit, size_t *out_good)
{
    uint32_t unit = 0;
    size_t good = 0;
    for (; good < 6 && at + good < end; good++) {
        int value = good < 2 ? (at[good] == "\\u"[good] ? 0 : -1) : hex_value(at[good]);
        if (value < 0)
            break;
        unit = unit << 4 | (uint32_t)value;
    }
    *out_unit = unit;
    *out_good = good;
    return good == 6;
}

/* "\uXXXX", or a surrogate pair of them. */
static bool read_unicode(struct json_reader *reader, uint32_t *out_code, struct diag *diag)
{
    uint32_t unit, low;
    size_t good;
    if (!json_fill(reader, 12, diag))
        return false;
    if (!code_unit(reader->at, reader->end, &unit, &good))
        return refuse_escape(reader, good, "is not an escape", "four hex digits follow '\\u'",
                             diag);
    if (unit == 0)
        return refuse_escape(reader, good, "stands for NUL, which no text here may have",
                             "remove it", diag);
    if (unit >= 0xdc00 && unit < 0xe000)
        return refuse_escape(reader, good, "is the second half of a character without the first",
                             "write the character itself, or both halves", diag);
    if (unit >= 0xd800 && unit < 0xdc00) {
        bool is_pair =
            code_unit(reader->at + 6, reader->end, &low, &good) && low >= 0xdc00 && low < 0xe000;
        if (!is_pair)
            return refuse_escape(reader, 6, "is the first half of a character without the second",
                                 "write the character itself, or both halves", diag);
        unit = 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
        reader->at += 6;
    }
    reader->at += 6;
    *out_code = unit;
    return true;
}

/* A backslash and one character, not "u". Both are in the buffer. */
static bool read_letter(struct json_reader *reader, uint32_t *out_code, struct diag *diag)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = memchr(letters, reader->at[1], sizeof letters - 1);
    if (found) {
        *out_code = (uint32_t)meanings[found - letters];
        reader->at += 2;
        return true;
    }
    size_t len;
    reader->at++;
    if (!json_character(reader, &len, diag))
        return false;
    reader->at--;
    return refuse_escape(reader, 1 + len, "is not an escape",
                         "a backslash itself is written '\\\\'", diag);
}

static bool refuse_unclosed(struct json_reader *reader, struct place start, struct diag *diag)
{
    enum roost_code code = diag_error(diag, ROOST_ERR_SYNTAX, start,
                                      "this string is not closed before the document ends");
    diag_hint(diag, "close it with '\"'");
    return json_fail(reader, code);
}

static bool read_escape(struct json_reader *reader, struct place start, struct diag *diag)
{
    uint32_t code = 0;
    if (!json_fill(reader, 5, diag)) /* the backslash and a whole character */
        return false;
    if (reader->end - reader->at < 2)
        return refuse_unclosed(reader, start, diag);
    if (reader->at[1] == 'u' ? !read_unicode(reader, &code, diag)
                             : !read_letter(reader, &code, diag))
        return false;
    char bytes[4];
    struct strview piece = {bytes, utf8_put(bytes, code)};
    return json_keep(reader, piece, "string", start, diag);
}

static bool refuse_control(struct json_reader *reader, struct diag *diag)
{
    unsigned c = (unsigned char)*reader->at;
    enum roost_code code = diag_error(diag, ROOST_ERR_SYNTAX, json_place(reader),
                                      "control character U+%04X in a string", c);
    if (c == '\n' || c == '\r')
        diag_hint(diag, "close the string with '\"', or write '\\%c'", c == '\n' ? 'n' : 'r');
    else if (c)
        diag_hint(diag, "write '\\u%04x'", c);
    else
        diag_hint(diag, "remove it");
    return json_fail(reader, code);
}

static bool keep_character(struct json_reader *reader, struct place start, struct diag *diag)
{
    size_t len;
    if (!json_character(reader, &len, diag) ||
        !json_keep(reader, (struct strview){reader->at, len}, "string", start, diag))
        return false;
    json_step_over(reader, len);
    return true;
}

/* Takes what comes next in a string up to and including one byte that is not plain. */
static bool read_piece(struct json_reader *reader, struct place start, bool *out_is_closed,
                       struct diag *diag)
{
    const char *run = plain_end(reader->at, reader->end);
    struct strview plain = {reader->at, (size_t)(run - reader->at)};
    if (!json_keep(reader, plain, "string", start, diag))
        return false;
    reader->at = run;
    if (!json_fill(reader, 1, diag))
        return false;
    int c = json_peek(reader);
    if (c < 0)
        return refuse_unclosed(reader, start, diag);
    if (c == '\\')
        return read_escape(reader, start, diag);
    if (c < 0x20)
        return refuse_control(reader, diag);
    if (c >= 0x80)
        return keep_character(reader, start, diag);
    *out_is_closed = c == '"'; /* else the buffer had ended inside the run */
    reader->at += *out_is_closed;
    return true;
}

/* A string that is not plain, or does not end in the buffer. */
static struct strview gather(struct json_reader *reader, struct diag *diag)
{
    struct place start = json_place(reader);
    bool is_closed = false;
    reader->scratch.len = 0;
    reader->at++;
    while (!is_closed)
        if (!read_piece(reader, start, &is_closed, diag))
            return JSON_NO_TEXT;
    const char *bytes = text_string(&reader->scratch);
    if (!bytes)
        json_fail(reader, diag_nomem(diag));
    return (struct strview){bytes, reader->scratch.len};
}

struct strview json_string(struct json_reader *reader, struct diag *diag)
{
    const char *first = reader->at + 1, *last = plain_end(first, reader->end);
    size_t len = (size_t)(last - first);
    if (last == reader->end || *last != '"' || len > reader->limits.max_string)
        return gather(reader, diag);
    reader->at = last + 1;
    return (struct strview){first, len};
}
