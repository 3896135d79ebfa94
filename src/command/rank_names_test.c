/* rank_names_test.c - ranks in messages. */
#include <roost/engine/driver.h>
#include <string.h>

#include "tests/unit.h"

TEST(ranks_in_a_row_are_a_range)
{
    static const struct {
        int32_t ranks[6];
        size_t count;
        const char *text;
    } rows[] = {
        {{0}, 0, ""},
        {{7}, 1, "7"},
        {{0, 1}, 2, "0-1"},
        {{0, 1, 2, 3, 5}, 5, "0-3, 5"},
        {{1, 3, 5}, 3, "1, 3, 5"},
        {{0, 2, 3, 4, 8, 9}, 6, "0, 2-4, 8-9"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[64];
        size_t len = roost_ranks_text(rows[i].ranks, rows[i].count, text, sizeof text);
        CHECK_FACT(text, strcmp(text, rows[i].text) == 0 && len == strlen(text));
        CHECK_FACT(text, roost_ranks_text(rows[i].ranks, rows[i].count, NULL, 0) == len);
    }
}

TEST(a_text_that_does_not_fit_is_cut_and_its_length_is_told)
{
    const int32_t ranks[] = {100, 200, 300};
    char text[8];
    assert_true(roost_ranks_text(ranks, ROWS(ranks), text, sizeof text) == strlen("100, 200, 300"));
    CHECK_FACT(text, strcmp(text, "100, 20") == 0);
}

TEST(three_late_ranks_are_named_and_the_others_counted)
{
    static const struct roost_late late[] = {{1, NULL}, {3, " on node 1"}, {5, NULL}};
    static const struct {
        int32_t count;
        const char *text;
    } rows[] = {
        {1, "7 of 8 processes of 'actor' are ready; actor/1 is not"},
        {2, "6 of 8 processes of 'actor' are ready; actor/1, actor/3 on node 1 are not"},
        {3, "5 of 8 processes of 'actor' are ready; actor/1, actor/3 on node 1, actor/5 are not"},
        {5, "3 of 8 processes of 'actor' are ready; actor/1, actor/3 on node 1, actor/5 and 2 more "
            "are "
            "not"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[128];
        size_t len = roost_readiness_text("actor", 8, late, rows[i].count, text, sizeof text);
        CHECK_FACT(text, strcmp(text, rows[i].text) == 0 && len == strlen(text));
    }
}

RUN_TESTS(cmocka_unit_test(ranks_in_a_row_are_a_range),
          cmocka_unit_test(a_text_that_does_not_fit_is_cut_and_its_length_is_told),
          cmocka_unit_test(three_late_ranks_are_named_and_the_others_counted), )
