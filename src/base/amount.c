/* amount.c - decimals without floating point: 0.8 + 0.2 is 1, not nearly 1. */
#include "base/amount.h"

#include <stdio.h>

enum { DECIMALS = 4 };

/* Digit i of the number without its point; zeros go on behind the decimals. */
static char digit_at(struct strview whole, struct strview decimals, size_t i)
{
    if (i < whole.len)
        return whole.at[i];
    if (i - whole.len < decimals.len)
        return decimals.at[i - whole.len];
    return '0';
}

enum amount_result amount_parse(struct strview text, int64_t max, int64_t *out_value)
{
    text = sv_trim(text);
    size_t point = sv_find(text, '.', 0);
    struct strview decimals = sv_sub(text, point + 1, text.len);
    int64_t value = 0;
    bool is_large = false, is_fine = false;
    if (point + decimals.len == 0 || (point < text.len && decimals.len == 0))
        return AMOUNT_MALFORMED;
    for (size_t i = 0; i < point + DECIMALS || i < point + decimals.len; i++) {
        char c = digit_at(sv_sub(text, 0, point), decimals, i);
        if (c < '0' || c > '9')
            return AMOUNT_MALFORMED;
        if (i >= point + DECIMALS) {
            is_fine |= c != '0';
            continue;
        }
        is_large = is_large || __builtin_mul_overflow(value, 10, &value) ||
                   __builtin_add_overflow(value, c - '0', &value);
    }
    if (is_fine)
        return AMOUNT_TOO_FINE;
    if (is_large || value > max)
        return AMOUNT_TOO_LARGE;
    *out_value = value;
    return AMOUNT_OK;
}

struct amount_text amount_text(int64_t value)
{
    struct amount_text out;
    int len = snprintf(out.text, sizeof out.text, "%lld.%04d", (long long)(value / AMOUNT_ONE),
                       (int)(value % AMOUNT_ONE));
    while (len > 0 && out.text[len - 1] == '0')
        len--;
    out.text[len > 0 && out.text[len - 1] == '.' ? len - 1 : len] = '\0';
    return out;
}
