/* yaml11.c - the implicit types of YAML 1.1 as PyYAML and OmegaConf apply them. Written as small
 * matchers instead of regular expressions; tests compare them with OmegaConf itself. */
#include "config/yaml11.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static bool is_one_of(struct strview text, const char *const *words)
{
    for (; *words; words++)
        if (sv_is(text, *words))
            return true;
    return false;
}

static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
static const char *const truths[] = {"yes",  "Yes", "YES", "true", "True",
                                     "TRUE", "on",  "On",  "ON",   NULL};
static const char *const lies[] = {"no",    "No",  "NO",  "false", "False",
                                   "FALSE", "off", "Off", "OFF",   NULL};
static const char *const specials[] = {".inf",  ".Inf",  ".INF", "+.inf", "+.Inf", "+.INF", "-.inf",
                                       "-.Inf", "-.INF", ".nan", ".NaN",  ".NAN",  NULL};

static int digit_value(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : 99;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits of `base` with "_" anywhere, at least one character; the value saturates. */
static bool read_digits(struct strview text, int base, int64_t *value, bool *is_large)
{
    *value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '_')
            continue;
        int digit = digit_value(text.at[i]);
        if (digit >= base)
            return false;
        if (__builtin_mul_overflow(*value, base, value) ||
            __builtin_add_overflow(*value, digit, value))
            *is_large = true;
    }
    return text.len > 0;
}

/* [1-9][0-9_]*(:[0-5]?[0-9])+ */
static bool read_base60(struct strview text, int64_t *value, bool *is_large)
{
    size_t colon = sv_find(text, ':', 0);
    if (colon == text.len || text.at[0] < '1' || text.at[0] > '9' ||
        !read_digits(sv_sub(text, 0, colon), 10, value, is_large))
        return false;
    while (colon < text.len) {
        size_t next = sv_find(text, ':', colon + 1);
        struct strview piece = sv_sub(text, colon + 1, next);
        int64_t digits;
        bool is_piece_large = false;
        if (piece.len < 1 || piece.len > 2 || piece.at[0] == '_' ||
            piece.at[piece.len - 1] == '_' || !read_digits(piece, 10, &digits, &is_piece_large) ||
            digits > 59)
            return false;
        if (__builtin_mul_overflow(*value, 60, value) ||
            __builtin_add_overflow(*value, digits, value))
            *is_large = true;
        colon = next;
    }
    return true;
}

static bool read_int(struct strview text, int64_t *value, bool *is_large)
{
    bool is_negative = false;
    if (text.len > 0 && (text.at[0] == '-' || text.at[0] == '+')) {
        is_negative = text.at[0] == '-';
        text = sv_sub(text, 1, text.len);
    }
    if (text.len == 0 || text.at[0] < '0' || text.at[0] > '9')
        return false;
    bool is_int;
    if (sv_starts(text, "0b"))
        is_int = read_digits(sv_sub(text, 2, text.len), 2, value, is_large);
    else if (sv_starts(text, "0x"))
        is_int = read_digits(sv_sub(text, 2, text.len), 16, value, is_large);
    else if (text.at[0] == '0' && text.len > 1)
        is_int = read_digits(sv_sub(text, 1, text.len), 8, value, is_large);
    else
        is_int = read_digits(text, 10, value, is_large) || read_base60(text, value, is_large);
    if (is_int && is_negative && !*is_large) /* a value that wrapped may have no opposite */
        *value = -*value;
    return is_int;
}

/* The end of [0-9][0-9_]* that starts at `i`; `i` itself when there is no digit. */
static size_t skip_digits(struct strview text, size_t i)
{
    if (i < text.len && is_digit(text.at[i]))
        while (i < text.len && (is_digit(text.at[i]) || text.at[i] == '_'))
            i++;
    return i;
}

/* Every "_" stands between two digits, as OmegaConf wants it and PyYAML does not. */
static bool is_well_grouped(struct strview digits)
{
    for (size_t i = 0; i < digits.len; i++)
        if (digits.at[i] == '_' && (i + 1 == digits.len || digits.at[i + 1] == '_'))
            return false;
    return true;
}

/* [eE][-+]?[0-9]+ up to the end. */
static bool is_exponent(struct strview text, size_t i, bool needs_sign)
{
    if (i >= text.len || (text.at[i] != 'e' && text.at[i] != 'E'))
        return false;
    i++;
    bool has_sign = i < text.len && (text.at[i] == '-' || text.at[i] == '+');
    i += has_sign;
    size_t first = i;
    while (i < text.len && is_digit(text.at[i]))
        i++;
    return i == text.len && i > first && (has_sign || !needs_sign);
}

/* The patterns of PyYAML and those that OmegaConf adds: 1.5, 1e3, .5, and 1:30.5 in base 60. */
static bool is_float(struct strview text)
{
    size_t first = text.len > 0 && (text.at[0] == '-' || text.at[0] == '+') ? 1 : 0;
    if (first == 0 && text.len > 1 && text.at[0] == '.') {
        size_t end = skip_digits(text, 1);
        return end > 1 && (end == text.len || is_exponent(text, end, true));
    }
    size_t i = skip_digits(text, first);
    if (i == first || i == text.len)
        return false;
    bool is_base60 = text.at[i] == ':';
    bool is_grouped = is_well_grouped(sv_sub(text, first, i));
    while (i + 1 < text.len && text.at[i] == ':' && is_digit(text.at[i + 1])) {
        bool has_two = i + 2 < text.len && is_digit(text.at[i + 2]);
        if (has_two && text.at[i + 1] > '5')
            return false;
        i += has_two ? 3 : 2;
    }
    if (i == text.len || text.at[i] != '.')
        return !is_base60 && is_grouped && is_exponent(text, i, false);
    do {
        i++;
    } while (i < text.len && (is_digit(text.at[i]) || text.at[i] == '_'));
    return i == text.len || (!is_base60 && is_exponent(text, i, !is_grouped));
}

/* The digits of a number's mantissa without the zeros at both ends. */
static int count_significant(struct strview text)
{
    int count = 0, zeros = 0;
    for (size_t i = 0; i < text.len && text.at[i] != 'e'; i++) {
        if (!is_digit(text.at[i]) || (text.at[i] == '0' && count == 0))
            continue;
        zeros = text.at[i] == '0' ? zeros + 1 : 0;
        count++;
    }
    return count - zeros;
}

/* Whether Python would write this number with the same characters: an integer beyond 64 bits, or a
 * float of at most 15 digits (which all survive), in its shortest form. No conversion takes part, so
 * that no locale does. */
static bool is_as_python_writes(struct strview text)
{
    if (text.len > 0 && text.at[0] == '-')
        text = sv_sub(text, 1, text.len);
    size_t e = sv_find(text, 'e', 0), point = sv_find(text, '.', 0);
    struct strview whole = sv_sub(text, 0, point < e ? point : e);
    struct strview fraction = point < e ? sv_sub(text, point + 1, e) : SV("");
    struct strview exponent = sv_sub(text, e + 1, text.len);
    if (whole.len == 0 || (whole.len > 1 && whole.at[0] == '0') || memchr(text.at, '_', text.len) ||
        memchr(text.at, '+', e) || memchr(text.at, 'E', text.len) || memchr(text.at, ':', text.len))
        return false;
    if (e == text.len && point == text.len)
        return true;
    if (count_significant(text) > 15)
        return false;
    bool ends_in_zero = fraction.len > 0 && fraction.at[fraction.len - 1] == '0';
    if (e == text.len) /* 0.0001, 1.0 */
        return fraction.len > 0 && (!ends_in_zero || fraction.len == 1) && whole.len <= 16 &&
               !(whole.at[0] == '0' && sv_starts(fraction, "0000"));
    /* 1e-05, 1.5e+16 */
    int64_t size;
    if (whole.len != 1 || whole.at[0] == '0' || ends_in_zero || (point < e && fraction.len == 0) ||
        exponent.len < 3 || (exponent.len > 3 && exponent.at[1] == '0') ||
        number_parse(sv_sub(exponent, 1, exponent.len), 307, &size) != NUMBER_OK)
        return false;
    return exponent.at[0] == '-' ? size >= 5 : exponent.at[0] == '+' && size >= 16;
}

struct yaml11 yaml11_read(struct strview text)
{
    enum { LONGEST_WORD = 5 };
    struct yaml11 reading = {.kind = YAML11_TEXT};
    int64_t value = 0;
    bool is_large = false;
    /* Most texts are longer than any of the words, or start with a digit. */
    bool may_be_word = text.len <= LONGEST_WORD && (text.len == 0 || !is_digit(text.at[0]));
    if (may_be_word && is_one_of(text, nulls)) {
        reading.kind = YAML11_NULL;
        snprintf(reading.as_text, sizeof reading.as_text, "None");
    } else if (may_be_word && (is_one_of(text, truths) || is_one_of(text, lies))) {
        reading.kind = YAML11_BOOL;
        snprintf(reading.as_text, sizeof reading.as_text, "%s",
                 is_one_of(text, truths) ? "True" : "False");
    } else if (read_int(text, &value, &is_large)) {
        reading.kind = YAML11_INT;
        if (!is_large)
            snprintf(reading.as_text, sizeof reading.as_text, "%" PRId64, value);
    } else if ((may_be_word && is_one_of(text, specials)) || is_float(text)) {
        reading.kind = YAML11_FLOAT;
    }
    return reading;
}

static void warn(const struct node *scalar, struct yaml11 reading, struct diag *diag)
{
    struct quote text = quote(scalar->text);
    if (reading.as_text[0])
        diag_warn(diag, ROOST_WARN_READING, node_place(scalar),
                  "'%s' is %s to other YAML readers, RLinf's among them", text.text,
                  reading.as_text);
    else
        diag_warn(diag, ROOST_WARN_READING, node_place(scalar),
                  "'%s' is a number to other YAML readers, RLinf's among them", text.text);
    diag_hint(diag, "write \"%s\" in quotes, so that everyone reads the same", text.text);
}

void yaml11_warn(const struct node *scalar, struct diag *diag)
{
    if (!scalar->is_plain || scalar->secret) /* what others read tells what it is */
        return;
    struct yaml11 reading = yaml11_read(scalar->text);
    bool is_same = reading.as_text[0] ? sv_is(scalar->text, reading.as_text)
                                      : is_as_python_writes(scalar->text);
    if (reading.kind != YAML11_TEXT && !is_same)
        warn(scalar, reading, diag);
}

/* Digits that do not start with a zero: everyone reads those the same. */
static bool is_plain_number(struct strview text)
{
    size_t i = 0;
    while (i < text.len && is_digit(text.at[i]))
        i++;
    return i == text.len && (text.len == 1 || (text.len > 1 && text.at[0] != '0'));
}

void yaml11_warn_number(const struct node *scalar, struct diag *diag)
{
    if (!scalar->is_plain || scalar->secret || is_plain_number(scalar->text))
        return;
    /* What roost refuses as a number (0x3, 1_0, -1) is an error of its own, and quotes are no cure. */
    for (size_t i = 0; i < scalar->text.len; i++)
        if (!strchr("0123456789:+", scalar->text.at[i]))
            return;
    struct yaml11 reading = yaml11_read(scalar->text);
    int64_t ours, theirs;
    bool is_same = number_parse(scalar->text, INT64_MAX, &ours) == NUMBER_OK &&
                   number_parse(sv_from(reading.as_text), INT64_MAX, &theirs) == NUMBER_OK &&
                   ours == theirs;
    if (reading.kind != YAML11_INT || !reading.as_text[0] || is_same)
        return;
    warn(scalar, reading, diag);
    if (number_parse(scalar->text, INT64_MAX, &ours) == NUMBER_OK) /* 010: quotes are for texts */
        diag_hint(diag, "write %" PRId64 ", which everyone reads the same", ours);
}
