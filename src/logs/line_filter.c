/* line_filter.c - lets colour sequences pass or removes them; base/escape.h does the rest. */
#include "logs/line_filter.h"

#include <string.h>

#include "base/utf8.h"

enum { FONT_FIRST = 10, FONT_LAST = 20, NUMBER_MAX = 255 };

static bool is_sgr_byte(char c)
{
    return (c >= '0' && c <= '9') || c == ';' || c == ':';
}

/* The numbers of a sequence, one after the other. */
struct numbers {
    int colors;   /* numbers to come that belong to a colour and may be anything */
    bool is_mode; /* the next number says what kind of colour follows 38, 48 or 58 */
};

/* Whether the next number of a sequence may pass. `is_sub`: a colon stands before it. */
static bool take_number(struct numbers *it, int number, bool is_sub)
{
    if (number > NUMBER_MAX)
        return false;
    if (it->is_mode) {
        it->is_mode = false;
        /* 38:2 may have the number of a colour space before red, green and blue. */
        it->colors = number == 5 ? 1 : number == 2 ? (is_sub ? 4 : 3) : 0;
        return true;
    }
    if (it->colors > 0 && (is_sub || it->colors <= 3)) {
        it->colors--;
        return true;
    }
    it->colors = 0;
    it->is_mode = number == 38 || number == 48 || number == 58;
    return number < FONT_FIRST || number > FONT_LAST;
}

size_t filter_sgr_length(const char *at, const char *end)
{
    if (end - at < 3 || at[0] != '\x1b' || at[1] != '[')
        return 0;
    if (end - at > FILTER_SGR_MAX)
        end = at + FILTER_SGR_MAX;
    struct numbers numbers = {0};
    int number = 0;
    bool is_sub = false;
    for (const char *p = at + 2; p < end; p++) {
        if (*p >= '0' && *p <= '9') {
            number = number > NUMBER_MAX ? number : number * 10 + (*p - '0');
            continue;
        }
        if ((*p != ';' && *p != ':' && *p != 'm') || !take_number(&numbers, number, is_sub))
            return 0;
        if (*p == 'm')
            return (size_t)(p + 1 - at);
        is_sub = *p == ':';
        number = 0;
    }
    return 0;
}

static bool is_reset(const char *at, size_t len)
{
    return len == 3 || (len == 4 && at[2] == '0');
}

const char *filter_line(const char *at, const char *end, bool has_color, char **out)
{
    bool is_colored = false;
    for (;;) {
        at = escape_copy_plain(at, end, out);
        if (at == end || *at == '\n' || *at == '\r')
            break;
        size_t len = *at == '\x1b' ? filter_sgr_length(at, end) : 0;
        if (len == 0) {
            at = escape_character(at, end, out);
            continue;
        }
        if (has_color) {
            memcpy(*out, at, len);
            *out += len;
            is_colored = !is_reset(at, len);
        }
        at += len;
    }
    if (is_colored) {
        memcpy(*out, FILTER_RESET, sizeof FILTER_RESET - 1);
        *out += sizeof FILTER_RESET - 1;
    }
    return at;
}

const char *filter_whole(const char *at, const char *end)
{
    const char *start = end;
    while (start > at && end - start < FILTER_SGR_MAX && is_sgr_byte(start[-1]))
        start--;
    if (start > at && start[-1] == '[')
        start--;
    if (start > at && start[-1] == '\x1b')
        return start - 1;
    return escape_whole_characters(at, end);
}

size_t filter_fit(char *out, size_t room, struct strview text, int columns)
{
    const char *at = text.at, *end = text.at + text.len;
    size_t used = 0;
    bool is_colored = false;
    while (at < end && used < room - FILTER_SGR_MAX - FILTER_SLACK) {
        uint32_t code = 0;
        size_t sgr = filter_sgr_length(at, end), len = sgr ? sgr : utf8_next(at, end, &code);
        columns -= sgr ? 0 : len ? utf8_width(code) : 1;
        if (columns < 0 || len == 0)
            break;
        memcpy(out + used, *at == '\t' ? " " : at, len);
        is_colored |= sgr > 0;
        used += len;
        at += len;
    }
    if (is_colored) {
        memcpy(out + used, FILTER_RESET, sizeof FILTER_RESET - 1);
        used += sizeof FILTER_RESET - 1;
    }
    return used;
}
