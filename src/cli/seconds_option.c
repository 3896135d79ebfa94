/* seconds_option.c - see seconds_option.h. */
#include "cli/seconds_option.h"

#include "base/number.h"
#include "cli/output.h"

/* As milliseconds; -1 when it is not a number of seconds. */
static int32_t read_seconds(const char *text)
{
    enum { MOST = 86400 };
    struct strview whole = sv_from(text), part = {0};
    size_t point = sv_find(whole, '.', 0);
    int64_t seconds, thousandths = 0;
    if (point < whole.len) {
        part = sv_sub(whole, point + 1, whole.len);
        whole.len = point;
        if (part.len == 0 || part.len > 3 || part.at[0] == '+' ||
            number_parse(part, 999, &thousandths) != NUMBER_OK)
            return -1;
        for (size_t i = part.len; i < 3; i++)
            thousandths *= 10;
    }
    if (number_parse(whole, MOST, &seconds) != NUMBER_OK)
        return -1;
    return (int32_t)(seconds * 1000 + thousandths);
}

int seconds_option(const struct invocation *invocation, const char *name, int32_t *out_ms)
{
    const char *text = option_value(invocation, name);
    *out_ms = text ? read_seconds(text) : -1;
    if (text && *out_ms < 0)
        return output_refuse(invocation, "--%s is a number of seconds, not '%s'", name,
                             quote(sv_from(text)).text);
    return 0;
}
