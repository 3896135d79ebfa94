/* duration.c - one grammar for how long and how old. */
#include "base/duration.h"

#include "base/number.h"

static int64_t seconds_of_unit(char unit)
{
    switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 60 * 60;
    case 'd': return 24 * 60 * 60;
    case 'w': return 7 * 24 * 60 * 60;
    default: return 0;
    }
}

bool duration_parse(struct strview text, int64_t *out_seconds)
{
    int64_t count, seconds, unit = text.len > 1 ? seconds_of_unit(text.at[text.len - 1]) : 0;
    /* number_parse allows blanks and a sign around a number; a duration has neither. */
    if (unit == 0 || text.at[0] < '0' || text.at[0] > '9' || text.at[text.len - 2] < '0' ||
        text.at[text.len - 2] > '9' ||
        number_parse(sv_sub(text, 0, text.len - 1), INT64_MAX, &count) != NUMBER_OK ||
        __builtin_mul_overflow(count, unit, &seconds))
        return false;
    *out_seconds = seconds;
    return true;
}
