/* arena_test.c - sizes, borders and the end of an arena. */
#include "base/arena.h"

#include "tests/unit.h"

TEST(arena_pieces_keep_their_bytes_however_many_follow)
{
    enum { PIECES = 3000 };
    struct arena arena = ARENA_INIT;
    unsigned char *pieces[PIECES];
    size_t sizes[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = i % 97 == 0 ? 40000 + i : (i * 7) % 300;
        pieces[i] = arena_array(&arena, unsigned char, sizes[i]);
        assert_non_null(pieces[i]);
        memset(pieces[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(pieces[i][k], i % 251);
    arena_release(&arena);
}

TEST(arena_refuses_a_product_that_overflows_and_stays_good)
{
    static const struct {
        size_t count, size;
    } wrong[] = {
        {SIZE_MAX, 1},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX / 2 + 1, 2},
        {SIZE_MAX / 8 + 1, 8},
        {(size_t)PTRDIFF_MAX / 2 + 1, 1},
        {(size_t)1 << 32, (size_t)1 << 32},
    };
    struct arena arena = ARENA_INIT;
    char *before = arena_copy(&arena, SV("before"));
    for (size_t i = 0; i < ROWS(wrong); i++) {
        assert_null(arena_get(&arena, wrong[i].count, wrong[i].size, 1));
        assert_null(arena_get_zeroed(&arena, wrong[i].count, wrong[i].size, 16));
    }
    assert_string_equal(before, "before");
    assert_string_equal(arena_copy(&arena, SV("after")), "after");
    arena_release(&arena);
}

TEST(arena_memory_is_aligned_as_asked)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        struct arena arena = ARENA_INIT;
        for (size_t i = 0; i < 200; i++) {
            assert_non_null(arena_get(&arena, i % 5, 1, 1)); /* moves the next one off its border */
            char *got = arena_get(&arena, i % 7 == 0 ? 5000 : 3, 1, align);
            assert_non_null(got);
            assert_int_equal((uintptr_t)got % align, 0);
            memset(got, 1, 3);
        }
        arena_release(&arena);
    }
}

TEST(arena_array_of_nothing_is_not_null)
{
    struct arena arena = ARENA_INIT;
    assert_non_null(arena_array(&arena, int32_t, 0));
    assert_non_null(arena_zeroed(&arena, int32_t, 0));
    arena_release(&arena);
}

TEST(arena_zeroed_memory_is_zero_where_a_chunk_was_used_before)
{
    struct arena arena = ARENA_INIT;
    for (int round = 0; round < 3; round++) {
        unsigned char *got = arena_zeroed(&arena, unsigned char, 3000);
        for (size_t i = 0; i < 3000; i++)
            assert_int_equal(got[i], 0);
        memset(got, 0xff, 3000);
        arena_release(&arena);
    }
}

TEST(arena_goes_on_in_its_chunk_after_a_large_request)
{
    struct arena arena = ARENA_INIT;
    char *first = arena_array(&arena, char, 8);
    assert_non_null(arena_array(&arena, char, 1000000));
    char *second = arena_array(&arena, char, 8);
    assert_ptr_equal(second, first + 8);
    arena_release(&arena);
}

TEST(arena_copy_ends_with_nul_and_keeps_nul_bytes_inside)
{
    struct arena arena = ARENA_INIT;
    char *copy = arena_copy(&arena, SV("a\0b"));
    assert_memory_equal(copy, "a\0b", 4);
    assert_string_equal(arena_copy(&arena, (struct strview){NULL, 0}), "");
    arena_release(&arena);
}

TEST(arena_released_is_empty_and_usable_again)
{
    struct arena arena = ARENA_INIT;
    arena_release(&arena);
    assert_non_null(arena_array(&arena, char, 10));
    arena_release(&arena);
    arena_release(&arena);
    assert_null(arena.last);
    assert_string_equal(arena_copy(&arena, SV("again")), "again");
    arena_release(&arena);
}

RUN_TESTS(cmocka_unit_test(arena_pieces_keep_their_bytes_however_many_follow),
          cmocka_unit_test(arena_refuses_a_product_that_overflows_and_stays_good),
          cmocka_unit_test(arena_memory_is_aligned_as_asked),
          cmocka_unit_test(arena_array_of_nothing_is_not_null),
          cmocka_unit_test(arena_zeroed_memory_is_zero_where_a_chunk_was_used_before),
          cmocka_unit_test(arena_goes_on_in_its_chunk_after_a_large_request),
          cmocka_unit_test(arena_copy_ends_with_nul_and_keeps_nul_bytes_inside),
          cmocka_unit_test(arena_released_is_empty_and_usable_again))
