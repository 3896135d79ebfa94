/* number.c - one integer grammar for ranks, counts and sizes. */
#include "base/number.h"

enum number_result number_parse(struct strview text, int64_t max, int64_t *out_value)
{
    text = sv_trim(text);
    if (text.len > 0 && text.at[0] == '+')
        text = sv_sub(text, 1, text.len);
    if (text.len == 0)
        return NUMBER_MALFORMED;
    int64_t value = 0;
    bool is_large = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c < '0' || c > '9')
            return NUMBER_MALFORMED;
        if (!is_large && (__builtin_mul_overflow(value, 10, &value) ||
                          __builtin_add_overflow(value, c - '0', &value) || value > max))
            is_large = true; /* keep looking: a later letter makes it malformed */
    }
    if (is_large)
        return NUMBER_TOO_LARGE;
    *out_value = value;
    return NUMBER_OK;
}
