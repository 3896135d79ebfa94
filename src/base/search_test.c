/* search_test.c - the binary search against a walk from the front. */
#include "base/search.h"

#include "tests/unit.h"

/* What the search must give: the elements at the front that are before `value`. */
static int32_t count_before(const int32_t *values, int32_t count, int32_t value)
{
    int32_t before = 0;
    while (before < count && values[before] < value)
        before++;
    return before;
}

TEST(an_empty_sequence_has_nothing_before_and_is_not_read)
{
    const int32_t *values = NULL;
    assert_int_equal(SEARCH(0, at, values[at] < 7), 0);
}

TEST(one_element_is_before_or_not)
{
    const int32_t values[] = {5};
    assert_int_equal(SEARCH(1, at, values[at] < 4), 0);
    assert_int_equal(SEARCH(1, at, values[at] < 5), 0);
    assert_int_equal(SEARCH(1, at, values[at] < 6), 1);
}

TEST(first_last_and_absent_elements_are_found_in_sequences_of_every_length)
{
    enum { LONGEST = 67 };
    int32_t values[LONGEST];
    for (int32_t i = 0; i < LONGEST; i++)
        values[i] = 10 * i;
    for (int32_t count = 0; count <= LONGEST; count++)
        for (int32_t value = -1; value <= 10 * count + 1; value++)
            assert_int_equal(SEARCH(count, at, values[at] < value),
                             count_before(values, count, value));
}

TEST(of_equal_elements_the_first_is_found)
{
    const int32_t values[] = {1, 3, 3, 3, 3, 8};
    assert_int_equal(SEARCH(6, at, values[at] < 3), 1);
    assert_int_equal(SEARCH(6, at, values[at] <= 3), 5);
}

TEST(the_row_of_a_ragged_column_is_the_one_that_ends_behind)
{
    enum { ROW_COUNT = 4 };
    const int64_t first_of[ROW_COUNT + 1] = {0, 8, 8, 16, 20}; /* the second is empty */
    static const struct {
        int64_t value;
        int32_t row;
    } rows[] = {{-1, 0}, {0, 0}, {7, 0}, {8, 2}, {15, 2}, {16, 3}, {19, 3}, {20, 3}, {99, 3}};
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(SEARCH(ROW_COUNT - 1, at, first_of[at + 1] <= rows[i].value), rows[i].row);
}

RUN_TESTS(cmocka_unit_test(an_empty_sequence_has_nothing_before_and_is_not_read),
          cmocka_unit_test(one_element_is_before_or_not),
          cmocka_unit_test(first_last_and_absent_elements_are_found_in_sequences_of_every_length),
          cmocka_unit_test(of_equal_elements_the_first_is_found),
          cmocka_unit_test(the_row_of_a_ragged_column_is_the_one_that_ends_behind))
