/* rankset.c - the plain rank grammar. Never expands a range. */
#include "base/rankset.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/search.h"

enum roost_code rank_range_read(struct strview item, struct place at, struct diag *diag,
                                struct rank_range *out)
{
    /* A leading "-" is not a range: "-1" has no start. */
    struct strview text = sv_trim(item);
    size_t dash = sv_find(text, '-', 0);
    int64_t first = 0, last = 0;
    enum number_result low = number_parse(sv_sub(text, 0, dash), ROOST_RANK_MAX, &first);
    enum number_result high =
        dash < text.len ? number_parse(sv_sub(text, dash + 1, text.len), ROOST_RANK_MAX, &last)
                        : low;
    if (low == NUMBER_MALFORMED || high == NUMBER_MALFORMED) {
        diag_error(diag, ROOST_ERR_RANK, at, "Invalid rank format '%s'", quote(text).text);
        diag_hint(diag, sv_is_nocase(text, "all")
                            ? "'all' stands alone: no blanks, commas or ranks beside it"
                            : "write a rank or a range of ranks: 3 or 0-3");
        return ROOST_ERR_RANK;
    }
    if (low == NUMBER_TOO_LARGE || high == NUMBER_TOO_LARGE) {
        diag_error(diag, ROOST_ERR_LIMIT, at, "'%s' goes beyond the largest rank, %d",
                   quote(text).text, ROOST_RANK_MAX);
        diag_hint(diag, "write ranks that the cluster has, such as 0-7, or 'all'");
        return ROOST_ERR_LIMIT;
    }
    if (dash == text.len)
        last = first;
    if (first > last) {
        diag_error(diag, ROOST_ERR_RANK, at,
                   "range '%s' runs backwards: its start must be <= its end", quote(text).text);
        diag_hint(diag, "write %d-%d", (int)last, (int)first);
        return ROOST_ERR_RANK;
    }
    *out = (struct rank_range){(int32_t)first, (int32_t)last};
    return ROOST_OK;
}

static int by_first(const void *a, const void *b)
{
    const struct rank_range *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

void rankset_settle(struct rankset *set)
{
    if (set->count == 0)
        return;
    qsort(set->ranges, (size_t)set->count, sizeof *set->ranges, by_first);
    int32_t kept = 0;
    for (int32_t i = 1; i < set->count; i++) {
        struct rank_range *last = &set->ranges[kept], next = set->ranges[i];
        if ((int64_t)next.first > (int64_t)last->last + 1)
            set->ranges[++kept] = next;
        else if (next.last > last->last)
            last->last = next.last;
    }
    set->count = kept + 1;
}

/* Room for `more` ranges; false without memory. */
static bool reserve(struct rankset *set, struct arena *arena, size_t more)
{
    size_t needed = (size_t)set->count + more;
    if (needed <= (size_t)set->room)
        return true;
    size_t room = needed > 2 * (size_t)set->room ? needed : 2 * (size_t)set->room;
    struct rank_range *ranges =
        room <= INT32_MAX ? arena_array(arena, struct rank_range, room) : NULL;
    if (!ranges)
        return false;
    if (set->count)
        memcpy(ranges, set->ranges, (size_t)set->count * sizeof *ranges);
    set->ranges = ranges;
    set->room = (int32_t)room;
    return true;
}

enum roost_code rankset_add(struct rankset *set, struct arena *arena, struct strview text,
                            struct place at, struct diag *diag)
{
    if (sv_is_nocase(text, "all")) {
        set->is_all = true;
        return ROOST_OK;
    }
    size_t items = 1;
    for (size_t comma = sv_find(text, ',', 0); comma < text.len;
         comma = sv_find(text, ',', comma + 1))
        items++;
    if (!reserve(set, arena, items))
        return diag_nomem(diag);
    enum roost_code result = ROOST_OK;
    for (size_t from = 0; from <= text.len;) {
        size_t comma = sv_find(text, ',', from);
        struct strview item = sv_trim(sv_sub(text, from, comma));
        from = comma + 1;
        if (item.len == 0)
            continue;
        enum roost_code code =
            rank_range_read(item, place_piece(at, text, item), diag, &set->ranges[set->count]);
        if (code == ROOST_OK)
            set->count++;
        else if (result == ROOST_OK)
            result = code;
    }
    return result;
}

enum roost_code rankset_read(struct rankset *set, struct arena *arena, struct strview text,
                             struct place at, struct diag *diag)
{
    enum roost_code code = rankset_add(set, arena, text, at, diag);
    rankset_settle(set);
    return code;
}

bool rankset_has(const struct rankset *set, int32_t rank)
{
    return rankset_next(set, rank) == rank;
}

int64_t rankset_size(const struct rankset *set)
{
    int64_t size = 0;
    for (int32_t i = 0; i < set->count; i++)
        size += range_size(set->ranges[i]);
    return size;
}

int32_t rankset_next(const struct rankset *set, int32_t from)
{
    int32_t found = SEARCH(set->count, at, set->ranges[at].last < from);
    if (found == set->count)
        return -1;
    return set->ranges[found].first > from ? set->ranges[found].first : from;
}
