/* rank_names.c - how messages name ranks: as ranges, and as the ranks of a worker group that are not ready.
 *
 * Both engines use these texts: the local one in run/group_ready.c, Ray's through the extension. */
#include <roost/engine/driver.h>
#include <stdarg.h>
#include <stdio.h>

/* A text that goes into memory of the caller's; what does not fit is only counted. */
struct out {
    char *bytes;
    size_t size, len;
};

static void put(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct out *out, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    size_t room = out->len < out->size ? out->size - out->len : 0;
    int len = vsnprintf(room ? out->bytes + out->len : NULL, room, format, words);
    va_end(words);
    out->len += len > 0 ? (size_t)len : 0;
}

size_t roost_ranks_text(const int32_t *ranks, size_t count, char *out, size_t size)
{
    struct out text = {out, size, 0};
    put(&text, "%s", "");
    for (size_t i = 0; i < count; i++) {
        int32_t first = ranks[i];
        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
            i++;
        put(&text, "%s%d", text.len ? ", " : "", (int)first);
        if (ranks[i] != first)
            put(&text, "-%d", (int)ranks[i]);
    }
    return text.len;
}

size_t roost_readiness_text(const char *group, int32_t world_size, const struct roost_late *late,
                            int32_t late_count, char *out, size_t size)
{
    struct out text = {out, size, 0};
    put(&text, "%d of %d processes of '%s' are ready; ", (int)(world_size - late_count),
        (int)world_size, group);
    for (int32_t i = 0; i < late_count && i < ROOST_LATE_NAMED; i++)
        put(&text, "%s%s/%d%s", i ? ", " : "", group, (int)late[i].rank,
            late[i].note ? late[i].note : "");
    if (late_count > ROOST_LATE_NAMED)
        put(&text, " and %d more", (int)late_count - ROOST_LATE_NAMED);
    put(&text, late_count == 1 ? " is not" : " are not");
    return text.len;
}
