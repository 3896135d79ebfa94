/* strview.c - reading text without copying it. Knows ASCII only: bytes above 127 are never blank,
 * digit or letter, whatever the locale says. */
#include "base/strview.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

struct strview sv_from(const char *text)
{
    return (struct strview){text ? text : "", text ? strlen(text) : 0};
}

bool sv_is_nocase(struct strview a, const char *lower)
{
    size_t len = strlen(lower);
    if (a.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = a.at[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c != lower[i])
            return false;
    }
    return true;
}

bool sv_starts(struct strview a, const char *prefix)
{
    size_t len = strlen(prefix);
    return a.len >= len && memcmp(a.at, prefix, len) == 0;
}

bool sv_matches(struct strview a, const char *pattern)
{
    size_t len = strlen(pattern);
    if (len == 0 || pattern[len - 1] != '*')
        return sv_is(a, pattern);
    return a.len >= len - 1 && memcmp(a.at, pattern, len - 1) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct strview sv_trim(struct strview a)
{
    while (a.len > 0 && is_blank(a.at[0])) {
        a.at++;
        a.len--;
    }
    while (a.len > 0 && is_blank(a.at[a.len - 1]))
        a.len--;
    return a;
}

struct strview sv_sub(struct strview a, size_t from, size_t to)
{
    if (to > a.len)
        to = a.len;
    if (from > to)
        from = to;
    return (struct strview){a.at + from, to - from};
}

size_t sv_find(struct strview a, char c, size_t from)
{
    if (from >= a.len)
        return a.len;
    const char *found = memchr(a.at + from, c, a.len - from);
    return found ? (size_t)(found - a.at) : a.len;
}

int sv_compare(struct strview a, struct strview b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared ? memcmp(a.at, b.at, shared) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

struct quote quote(struct strview view)
{
    enum { TAIL = 4 }; /* "..." and NUL */
    struct quote q;
    size_t out = 0;
    const char *end = view.at + view.len;
    for (const char *at = view.at; at < end;) {
        uint32_t code = 0;
        size_t taken = utf8_next(at, end, &code);
        bool is_shown = taken > 0 && utf8_is_safe(code);
        taken = taken ? taken : 1;
        /* A character is taken whole or as escaped bytes, so that a cut never leaves half of one. */
        size_t len = is_shown ? taken : 4 * taken;
        if (out + len > sizeof q.text - TAIL) {
            memcpy(q.text + out, "...", TAIL);
            return q;
        }
        if (is_shown)
            memcpy(q.text + out, at, len);
        for (size_t i = 0; !is_shown && i < taken; i++)
            snprintf(q.text + out + 4 * i, 5, "\\x%02x", (unsigned char)at[i]);
        out += len;
        at += taken;
    }
    q.text[out] = '\0';
    return q;
}

/* Edit distance with swaps of neighbours counted once; words longer than the rows are not near. */
static size_t distance(struct strview a, struct strview b)
{
    enum { LONGEST = 40 };
    if (a.len > LONGEST || b.len > LONGEST)
        return LONGEST;
    size_t rows[3][LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        now[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = last[j - 1] + (a.at[i - 1] != b.at[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            bool is_swap =
                i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1];
            if (is_swap && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
        size_t *oldest = before;
        before = last;
        last = now;
        now = oldest;
    }
    return last[b.len];
}

const char *nearest_word(struct strview text, const char *const *words)
{
    const char *best = NULL;
    size_t best_distance =
        text.len / 3 + (text.len != 3 && text.len != 4 ? 2 : 1); /* of four letters one slip */
    for (; *words; words++) {
        struct strview word = sv_from(*words);
        size_t d = distance(text, word), longer = text.len > word.len ? text.len : word.len;
        if (d < best_distance && d < longer) { /* something must be left of it */
            best_distance = d;
            best = *words;
        }
    }
    return best;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool list_has(const char *list, const char *name)
{
    for (struct strview rest = sv_from(list);;) {
        size_t comma = sv_find(rest, ',', 0);
        if (sv_is(sv_sub(rest, 0, comma), name))
            return true;
        if (comma == rest.len)
            return false;
        rest = sv_sub(rest, comma + 1, rest.len);
    }
}

bool is_name(struct strview text)
{
    if (text.len < 1 || text.len > 63 || !(is_letter(text.at[0]) || is_digit(text.at[0])))
        return false;
    for (size_t i = 1; i < text.len; i++)
        if (!is_letter(text.at[i]) && !is_digit(text.at[i]) && text.at[i] != '.' &&
            text.at[i] != '-')
            return false;
    return true;
}

bool is_run_file(struct strview text)
{
    return sv_is(text, RUN_PAGE) || sv_is(text, RUN_RECORDS);
}

bool is_variable_name(struct strview text)
{
    if (text.len < 1 || !is_letter(text.at[0]))
        return false;
    for (size_t i = 1; i < text.len; i++)
        if (!is_letter(text.at[i]) && !is_digit(text.at[i]))
            return false;
    return true;
}
