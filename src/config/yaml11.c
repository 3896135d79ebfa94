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
        struct strview part = sv_sub(text, colon + 1, next);
        int64_t digits;
        bool is_part_large = false;
        if (part.len < 1 || part.len > 2 || part.at[0] == '_' || part.at[part.len - 1] == '_' ||
            !read_digits(part, 10, &digits, &is_part_large) || digits > 59)
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
    if (is_int && is_negative)
        *value = -*value;
    return is_int;
}

/* Digits, at most one point, an exponent; at least one digit before the exponent. */
static bool is_float(struct strview text)
{
    size_t i = text.len > 0 && (text.at[0] == '-' || text.at[0] == '+') ? 1 : 0;
    bool has_digit = false, has_point = false, has_exponent = false;
    for (; i < text.len; i++) {
        char c = text.at[i];
        if (c >= '0' && c <= '9') {
            has_digit = true;
        } else if (c == '.' && !has_point) {
            has_point = true;
        } else if ((c == 'e' || c == 'E') && has_digit) {
            has_exponent = true;
            i++;
            break;
        } else if (c != '_' || !has_digit) {
            return false;
        }
    }
    if (!has_exponent)
        return has_digit && has_point;
    if (i < text.len && (text.at[i] == '-' || text.at[i] == '+'))
        i++;
    int64_t value;
    return number_parse(sv_sub(text, i, text.len), INT64_MAX, &value) != NUMBER_MALFORMED;
}

struct yaml11 yaml11_read(struct strview text)
{
    struct yaml11 reading = {.kind = YAML11_TEXT};
    int64_t value = 0;
    bool is_large = false;
    if (is_one_of(text, nulls)) {
        reading.kind = YAML11_NULL;
        snprintf(reading.as_text, sizeof reading.as_text, "None");
    } else if (is_one_of(text, truths) || is_one_of(text, lies)) {
        reading.kind = YAML11_BOOL;
        snprintf(reading.as_text, sizeof reading.as_text, "%s",
                 is_one_of(text, truths) ? "True" : "False");
    } else if (read_int(text, &value, &is_large)) {
        reading.kind = YAML11_INT;
        if (!is_large)
            snprintf(reading.as_text, sizeof reading.as_text, "%" PRId64, value);
    } else if (is_one_of(text, specials) || is_float(text)) {
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
    if (!scalar->is_plain)
        return;
    struct yaml11 reading = yaml11_read(scalar->text);
    if (reading.kind != YAML11_TEXT && !sv_is(scalar->text, reading.as_text))
        warn(scalar, reading, diag);
}

void yaml11_warn_number(const struct node *scalar, struct diag *diag)
{
    if (!scalar->is_plain)
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
