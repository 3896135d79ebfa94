/* bytes.c - one grammar for how much. */
#include "base/bytes.h"

#include <string.h>

#include "base/number.h"

bool bytes_parse(struct strview text, int64_t *out_bytes)
{
    static const char units[] = "KMGT";
    const char *unit = text.len > 1 ? memchr(units, text.at[text.len - 1], sizeof units - 1) : NULL;
    int64_t count, bytes;
    /* number_parse allows blanks and a sign around a number; a size has neither. */
    if (!unit || text.at[0] < '0' || text.at[0] > '9' || text.at[text.len - 2] < '0' ||
        text.at[text.len - 2] > '9' ||
        number_parse(sv_sub(text, 0, text.len - 1), INT64_MAX, &count) != NUMBER_OK ||
        __builtin_mul_overflow(count, (int64_t)1024 << (10 * (unit - units)), &bytes))
        return false;
    *out_bytes = bytes;
    return true;
}
