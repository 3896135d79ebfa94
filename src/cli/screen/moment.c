/* moment.c - local times to milliseconds and back; the C library knows the zone. */
#include "cli/screen/moment.h"

#include <stdio.h>
#include <time.h>

#include "base/duration.h"

size_t moment_put(char out[MOMENT_MAX], int64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm = {0};
    (void)localtime_r(&seconds, &tm);
    long zone = tm.tm_gmtoff / 60, minutes = zone < 0 ? -zone : zone;
    int len =
        snprintf(out, MOMENT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%03d%c%02ld:%02ld",
                 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                 (int)(ms % 1000), zone < 0 ? '-' : '+', minutes / 60, minutes % 60);
    return len < 0 ? 0 : len < MOMENT_MAX ? (size_t)len : MOMENT_MAX - 1;
}

/* --- reading --- */

struct reading {
    struct strview left;
};

/* Exactly `digits` digits, with a value from `low` to `high`. */
static bool read_number(struct reading *it, size_t digits, int low, int high, int *out)
{
    int value = 0;
    if (it->left.len < digits)
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (it->left.at[i] < '0' || it->left.at[i] > '9')
            return false;
        value = value * 10 + (it->left.at[i] - '0');
    }
    if (value < low || value > high)
        return false;
    it->left = sv_sub(it->left, digits, it->left.len);
    *out = value;
    return true;
}

static bool read_char(struct reading *it, char c)
{
    if (it->left.len == 0 || it->left.at[0] != c)
        return false;
    it->left = sv_sub(it->left, 1, it->left.len);
    return true;
}

static bool is_day_of_month(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (month == 2 && is_leap);
}

static bool read_date(struct reading *it, struct tm *out)
{
    int year, month, day;
    if (!read_number(it, 4, 1970, 9999, &year) || !read_char(it, '-') ||
        !read_number(it, 2, 1, 12, &month) || !read_char(it, '-') ||
        !read_number(it, 2, 1, 31, &day) || !is_day_of_month(year, month, day))
        return false;
    out->tm_year = year - 1900;
    out->tm_mon = month - 1;
    out->tm_mday = day;
    return true;
}

/* hh:mm[:ss[.fraction]]; digits beyond milliseconds are dropped. */
static bool read_clock(struct reading *it, struct tm *out, int *out_ms)
{
    if (!read_number(it, 2, 0, 23, &out->tm_hour) || !read_char(it, ':') ||
        !read_number(it, 2, 0, 59, &out->tm_min))
        return false;
    if (!read_char(it, ':'))
        return true;
    if (!read_number(it, 2, 0, 59, &out->tm_sec))
        return false;
    if (!read_char(it, '.'))
        return true;
    int digit, scale = 100;
    if (!read_number(it, 1, 0, 9, &digit))
        return false;
    do {
        *out_ms += digit * scale;
        scale /= 10;
    } while (read_number(it, 1, 0, 9, &digit));
    return true;
}

/* Z, +hh:mm or -hh:mm, as seconds east. */
static bool read_zone(struct reading *it, int *out)
{
    int hours, minutes, sign = it->left.at[0] == '-' ? -1 : 1;
    *out = 0;
    if (read_char(it, 'Z'))
        return true;
    if (!(read_char(it, '+') || read_char(it, '-')) || !read_number(it, 2, 0, 23, &hours) ||
        !read_char(it, ':') || !read_number(it, 2, 0, 59, &minutes))
        return false;
    *out = sign * (hours * 60 + minutes) * 60;
    return true;
}

static bool read_time(struct strview text, int64_t now_ms, int64_t *out_ms)
{
    struct reading it = {text};
    time_t now = (time_t)(now_ms / 1000), seconds;
    struct tm today = {0}, tm = {.tm_isdst = -1};
    int ms = 0, zone = 0;
    bool has_zone = false, has_clock = text.len > 2 && text.at[2] == ':';
    (void)localtime_r(&now, &today);
    tm.tm_year = today.tm_year;
    tm.tm_mon = today.tm_mon;
    tm.tm_mday = today.tm_mday;
    if (!has_clock) {
        if (!read_date(&it, &tm))
            return false;
        has_clock = it.left.len > 0;
        if (has_clock && !read_char(&it, 'T') && !read_char(&it, ' '))
            return false;
    }
    if (has_clock && !read_clock(&it, &tm, &ms))
        return false;
    if (it.left.len > 0) {
        has_zone = read_zone(&it, &zone);
        if (!has_zone || it.left.len > 0)
            return false;
    }
    seconds = has_zone ? timegm(&tm) - zone : mktime(&tm);
    *out_ms = (int64_t)seconds * 1000 + ms;
    return true;
}

bool moment_parse(struct strview text, int64_t now_ms, int64_t *out_ms)
{
    int64_t seconds;
    if (duration_parse(text, &seconds)) {
        *out_ms = seconds > now_ms / 1000 ? 0 : now_ms - seconds * 1000;
        return true;
    }
    return read_time(text, now_ms, out_ms);
}
