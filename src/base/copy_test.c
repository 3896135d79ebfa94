/* copy_test.c - every byte arrives, and none beside them is touched. */
#include "base/copy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit.h"

enum { LARGE = 16 << 20, BESIDE = 128 };

static void check_copy(size_t len, size_t into_at, size_t from_at)
{
    size_t room = len + 2 * BESIDE;
    unsigned char *from = malloc(room), *into = malloc(room);
    assert_true(from && into);
    for (size_t i = 0; i < room; i++)
        from[i] = (unsigned char)(i * 31 + i / 251);
    memset(into, 0xa5, room);
    copy_bytes(into + into_at, from + from_at, len);
    assert_memory_equal(into + into_at, from + from_at, len);
    for (size_t i = 0; i < room; i++)
        if (i < into_at || i >= into_at + len)
            assert_int_equal(into[i], 0xa5);
    free(from);
    free(into);
}

TEST(copies_of_any_size_and_place_are_whole)
{
    static const size_t sizes[] = {0, 1, 63, 64, 1000, LARGE - 1, LARGE, LARGE + 1, LARGE + 63};
    static const size_t places[][2] = {{0, 0}, {1, 0}, {0, 1}, {63, 17}, {64, 16}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t p = 0; p < sizeof places / sizeof *places; p++)
            check_copy(sizes[s], places[p][0], places[p][1]);
}

TEST(nothing_may_be_nowhere)
{
    copy_bytes(NULL, NULL, 0);
}

RUN_TESTS(cmocka_unit_test(copies_of_any_size_and_place_are_whole),
          cmocka_unit_test(nothing_may_be_nowhere))
