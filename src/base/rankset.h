/* rankset.h - sets of ranks as users write them: "0-3,5", "7", "all".
 *
 * A set is kept as ranges, sorted and merged, however large: "0-2147483647" is one range. */
#ifndef BASE_RANKSET_H
#define BASE_RANKSET_H

#include <roost/export.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"

/* All ranks from first to last, both included. */
struct rank_range {
    int32_t first, last;
};

static inline int64_t range_size(struct rank_range range)
{
    return (int64_t)range.last - range.first + 1;
}

struct rankset {
    struct rank_range *ranges; /* rising, with a gap of at least one rank between them */
    int32_t count;             /* ranges */
    int32_t room;
    bool is_all; /* "all": every rank that exists; there are no ranges then */
};

/* Reads "a" or "a-b", blanks allowed around both numbers. Reports errors at `at`. */
enum roost_code rank_range_read(struct strview item, struct place at, struct diag *diag,
                                struct rank_range *out);

/* Reads a comma-separated list of ranges, or "all" (any case, no blanks around), and adds it to the
 * set. Blank items are skipped. `at` is the place of the whole text. */
enum roost_code rankset_read(struct rankset *set, struct arena *arena, struct strview text,
                             struct place at, struct diag *diag);

/* The two halves of rankset_read, for a caller that reads many texts into one set. rankset_add only appends
 * ranges. Call rankset_settle, which sorts and merges them, before you use the set. */
enum roost_code rankset_add(struct rankset *set, struct arena *arena, struct strview text,
                            struct place at, struct diag *diag);
void rankset_settle(struct rankset *set);

bool rankset_has(const struct rankset *set, int32_t rank);

/* How many ranks; 0 for "all". */
int64_t rankset_size(const struct rankset *set);

/* The lowest rank of `set` that is `from` or above; -1 when there is none. */
int32_t rankset_next(const struct rankset *set, int32_t from);

#endif
