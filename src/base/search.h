/* search.h - the binary search of roost.
 *
 * One macro serves columns, fields of structs and strings alike, without a call per step. Use libc's
 * bsearch() for arrays where any equal element will do. */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

#include <stdint.h>

/* The index of the first element of a sorted sequence for which `is_before` is false; `count` when it is
 * true for all. `is_before` is an expression in `at`, an int32_t index from 0 to count - 1. It is true for
 * some elements at the front and false for all others.
 *
 *     SEARCH(count, at, rank_of[at] < rank)     the first with `rank` or more
 *     SEARCH(count - 1, at, first_of[at + 1] <= rank)
 *                                               the row of first_of[count + 1] that has `rank`; the last
 *                                               row when all end before it */
#define SEARCH(count, at, is_before)                                                               \
    __extension__({                                                                                \
        int32_t search_low_ = 0, search_high_ = (count);                                           \
        while (search_low_ < search_high_) {                                                       \
            const int32_t at = search_low_ + (search_high_ - search_low_) / 2;                     \
            if (is_before)                                                                         \
                search_low_ = (at) + 1;                                                            \
            else                                                                                   \
                search_high_ = at;                                                                 \
        }                                                                                          \
        search_low_;                                                                               \
    })

#endif
