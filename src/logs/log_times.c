/* log_times.c - marks as bytes and back. The bytes may be anybody's: workers own the folder of the file. */
#include "logs/log_times.h"

enum { NUMBER_MAX = 10, NUMBERS = 3 };

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static size_t put_number(uint8_t *out, int64_t value)
{
    size_t len = 0;
    uint64_t left = zigzag(value);
    for (; left > 0x7f; left >>= 7)
        out[len++] = (uint8_t)(left | 0x80);
    out[len++] = (uint8_t)left;
    return len;
}

size_t times_put(uint8_t out[TIMES_MARK_MAX], int64_t before, const struct times_mark *mark)
{
    size_t len = put_number(out, mark->time - before);
    len += put_number(out + len, (int64_t)mark->rank * LOG_STREAMS + mark->stream);
    return len + put_number(out + len, mark->growth);
}

static enum times_result get_number(const uint8_t *at, size_t len, size_t *used, int64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < NUMBER_MAX; i++) {
        if (*used == len)
            return TIMES_PART;
        uint8_t byte = at[(*used)++];
        if (i == NUMBER_MAX - 1 && byte > 1)
            return TIMES_BAD; /* more than 64 bits */
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *out = unzigzag(value);
            return TIMES_OK;
        }
    }
    return TIMES_BAD;
}

enum times_result times_get(const uint8_t *at, size_t len, int64_t before, struct times_mark *out,
                            size_t *used)
{
    int64_t numbers[NUMBERS], time;
    size_t taken = 0;
    for (int i = 0; i < NUMBERS; i++) {
        enum times_result result = get_number(at, len, &taken, &numbers[i]);
        if (result != TIMES_OK)
            return result;
    }
    if (__builtin_add_overflow(before, numbers[0], &time) || time < 0 || time > TIMES_TIME_MAX ||
        numbers[1] < 0 || numbers[1] / LOG_STREAMS > INT32_MAX)
        return TIMES_BAD;
    *out = (struct times_mark){.time = time,
                               .rank = (int32_t)(numbers[1] / LOG_STREAMS),
                               .stream = (enum log_stream)(numbers[1] % LOG_STREAMS),
                               .growth = numbers[2]};
    *used = taken;
    return TIMES_OK;
}
