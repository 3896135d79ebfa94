/* run_words.c - short texts of the tables of `roost ps` and `roost prune`. */
#include "cli/run_words.h"

#include <stdio.h>
#include <string.h>

struct run_word run_age(int64_t seconds)
{
    static const struct {
        int64_t size;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
    struct run_word out;
    size_t i = 0;
    seconds = seconds < 0 ? 0 : seconds;
    while (i < 3 && seconds < 2 * units[i].size)
        i++;
    snprintf(out.text, sizeof out.text, "%lld%c", (long long)(seconds / units[i].size),
             units[i].unit);
    return out;
}

struct run_word run_size(int64_t bytes)
{
    static const char units[] = "KMGT";
    struct run_word out;
    if (bytes < 1024) {
        snprintf(out.text, sizeof out.text, "%lld", (long long)bytes);
        return out;
    }
    size_t unit = 0;
    int64_t size = 1024;
    while (unit < sizeof units - 2 && bytes / size >= 1024) {
        size *= 1024;
        unit++;
    }
    int64_t tenths = bytes / (size / 16) * 10 / 16; /* no overflow, and exact enough for a digit */
    if (tenths < 100)
        snprintf(out.text, sizeof out.text, "%lld.%lld%c", (long long)(tenths / 10),
                 (long long)(tenths % 10), units[unit]);
    else
        snprintf(out.text, sizeof out.text, "%lld%c", (long long)(tenths / 10), units[unit]);
    return out;
}

struct quote run_what(const char *config, const char *components, int width)
{
    enum { SHOWN_MAX = 80 }; /* of a quote, which cuts the end */
    struct strview text = sv_from(config[0] ? config : components);
    size_t most = width <= 0 || width > SHOWN_MAX ? SHOWN_MAX : width > 8 ? (size_t)width : 8;
    bool is_cut = text.len > SHOWN_MAX;
    struct quote out = quote(is_cut ? sv_sub(text, text.len - SHOWN_MAX, text.len) : text);
    size_t len = strlen(out.text);
    if (!is_cut && len <= most) /* bytes are no less than columns */
        return out;
    most = len < most ? len : most;
    size_t from = len - (most - 3);
    while (((unsigned char)out.text[from] & 0xc0) == 0x80) /* not inside a character */
        from++;
    memmove(out.text + 3, out.text + from, len - from + 1);
    memcpy(out.text, "...", 3);
    return out;
}
