/* json_word.c - numbers and literals. All are words: the longest run of letters, digits, signs and
 * points. A word is read whole before it is checked, so that an error quotes what the user sees as one word.
 * Numbers stay text; only json_int() computes a value. */
#include "json/json_reader_internal.h"

static const bool is_word_byte[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['+'] = true,
    ['-'] = true,         ['.'] = true,         ['_'] = true,
};

bool json_is_word(int c)
{
    return c >= 0 && is_word_byte[c];
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool starts_number(char c)
{
    return is_digit(c) || c == '-' || c == '+' || c == '.';
}

static const char *word_end(const char *at, const char *end)
{
    while (at < end && is_word_byte[(unsigned char)*at])
        at++;
    return at;
}

/* A word that does not end in the buffer, or is too long. */
static struct strview gather(struct json_reader *reader, struct diag *diag)
{
    struct place start = json_place(reader);
    const char *noun = starts_number(*reader->at) ? "number" : "word";
    reader->scratch.len = 0;
    while (json_is_word(json_peek(reader))) {
        const char *last = word_end(reader->at, reader->end);
        struct strview piece = {reader->at, (size_t)(last - reader->at)};
        if (!json_keep(reader, piece, noun, start, diag))
            return JSON_NO_TEXT;
        reader->at = last;
        if (!json_fill(reader, 1, diag))
            return JSON_NO_TEXT;
    }
    return (struct strview){reader->scratch.bytes, reader->scratch.len};
}

struct strview json_word(struct json_reader *reader, struct diag *diag)
{
    const char *first = reader->at, *last = word_end(first, reader->end);
    size_t len = (size_t)(last - first);
    if (last == reader->end || len > reader->limits.max_string)
        return gather(reader, diag);
    reader->at = last;
    return (struct strview){first, len};
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at))
        at++;
    return at;
}

/* What is wrong with a number, NULL when nothing is. */
static const char *number_fault(struct strview number)
{
    const char *at = number.at, *end = at + number.len;
    if (*at == '+')
        return "starts with '+'";
    at += *at == '-';
    const char *digits = at;
    at = skip_digits(at, end);
    if (at == digits)
        return at < end && *at == '.' ? "has no digit before its point" : "has no digits";
    if (*digits == '0' && at - digits > 1)
        return "has a leading zero";
    if (at < end && *at == '.') {
        digits = ++at;
        at = skip_digits(at, end);
        if (at == digits)
            return "has no digit after its point";
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        at += at < end && (*at == '+' || *at == '-');
        digits = at;
        at = skip_digits(at, end);
        if (at == digits)
            return "has no digit in its exponent";
    }
    return at == end ? NULL : "is not written as JSON writes numbers";
}

enum json_kind json_word_kind(struct strview word)
{
    if (starts_number(word.at[0]))
        return number_fault(word) ? JSON_FAILED : JSON_NUMBER;
    if (sv_equal(word, SV("true")))
        return JSON_TRUE;
    if (sv_equal(word, SV("false")))
        return JSON_FALSE;
    return sv_equal(word, SV("null")) ? JSON_NULL : JSON_FAILED;
}

bool json_refuse_word(struct json_reader *reader, struct strview word, struct place at,
                      struct diag *diag)
{
    if (!starts_number(word.at[0]))
        return json_refuse(reader, word, at, diag);
    enum roost_code code = diag_error(diag, ROOST_ERR_SYNTAX, at, "number '%s' %s",
                                      quote(word).text, number_fault(word));
    diag_hint(diag, "numbers look like -12, 0.5 or 1e9");
    return json_fail(reader, code);
}

bool json_int(struct json_event event, int64_t min, int64_t max, int64_t *out_value)
{
    if (event.kind != JSON_NUMBER || sv_is(event.text, "-0"))
        return false;
    bool is_negative = event.text.at[0] == '-';
    int64_t value = 0;
    for (size_t i = is_negative; i < event.text.len; i++) {
        int digit = event.text.at[i] - '0';
        if (!is_digit(event.text.at[i]) || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, is_negative ? digit : -digit, &value))
            return false;
    }
    if (value < min || value > max)
        return false;
    *out_value = value;
    return true;
}
