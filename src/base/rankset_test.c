/* rankset_test.c - the plain rank grammar, row by row, and set operations. */
#include "base/rankset.h"

#include "base/text.h"
#include "tests/unit.h"

/* "0-3,5", "all", or "" for an empty set. */
static void describe(const struct rankset *set, struct text *out)
{
    if (set->is_all)
        text_puts(out, "all");
    for (int32_t i = 0; i < set->count; i++) {
        struct rank_range range = set->ranges[i];
        text_puts(out, out->len ? "," : "");
        text_printf(out, range.first == range.last ? "%d" : "%d-%d", range.first, range.last);
    }
}

static void check_read(const char *text, const char *expected)
{
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct text got = TEXT_INIT;
    enum roost_code code = rankset_read(&set, &arena, sv_from(text), NOWHERE, &diag);
    if (code == ROOST_OK)
        describe(&set, &got);
    else
        text_printf(&got, "%s: %s", roost_code_word(code), err.message);
    CHECK_FACT(text, code == err.code);
    CHECK_TEXT(text, text_string(&got), expected);
    text_release(&got);
    arena_release(&arena);
}

TEST(ranks_are_read_sorted_and_merged)
{
    static const char *const rows[][2] = {
        {"0-3", "0-3"},
        {"0,2,4", "0,2,4"},
        {"3,1,2", "1-3"},
        {"0-3,2-5", "0-5"},
        {"0-1,2-3", "0-3"},
        {"0-9,3", "0-9"},
        {"5,5,5", "5"},
        {" 0 - 3 , 5 ", "0-3,5"},
        {"all", "all"},
        {"ALL", "all"},
        {"All", "all"},
        {"", ""},
        {",", ""},
        {" , ,", ""},
        {",0,", "0"},
        {"007", "7"},
        {"+1", "1"},
        {"+1-+2", "1-2"},
        {"0-0", "0"},
        {"2147483647", "2147483647"},
        {"0-2147483647", "0-2147483647"},
        {"2147483647,0-2147483646", "0-2147483647"},
        {"2147483647,0", "0,2147483647"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_read(rows[i][0], rows[i][1]);
}

TEST(what_is_not_a_rank_is_refused_as_it_was_written)
{
    static const char *const rows[] = {"-1",  "1-",  "0--3", "0-1-2", "0:1",  "1.0",
                                       "0x3", "a",   "1_0",  "true",  "null", "2.0",
                                       "[0",  "1 2", "- 1",  "-",     "0 -",  "\xd9\xa3"};
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text expected = TEXT_INIT;
        text_printf(&expected, "rank: Invalid rank format '%s'", rows[i]);
        check_read(rows[i], text_string(&expected));
        text_release(&expected);
    }
    check_read(" all", "rank: Invalid rank format 'all'");
    check_read("all,0", "rank: Invalid rank format 'all'");
}

TEST(ranges_that_run_backwards_or_too_far_are_refused)
{
    check_read("3-1", "rank: range '3-1' runs backwards: its start must be <= its end");
    check_read("2147483648", "limit: '2147483648' goes beyond the largest rank, 2147483647");
    check_read("0-99999999999999999999",
               "limit: '0-99999999999999999999' goes beyond the largest rank, 2147483647");
}

TEST(every_wrong_item_is_said_at_its_own_place_and_the_good_ones_are_kept)
{
    const struct source source = {.name = "x", .text = SV("ranks: 0-1,b,7-5,9")};
    struct strview text = sv_sub(source.text, 7, source.text.len);
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    struct roost_error err;
    struct roost_report *report = roost_report_new();
    struct diag diag = diag_start(report, &err);
    struct text got = TEXT_INIT;
    assert_int_equal(rankset_read(&set, &arena, text, source_place(&source, 7, 11), &diag),
                     ROOST_ERR_RANK);
    assert_int_equal(roost_report_errors(report), 2);
    assert_int_equal(roost_report_at(report, 0)->column, 12);
    assert_int_equal(roost_report_at(report, 0)->length, 1);
    assert_int_equal(roost_report_at(report, 1)->column, 14);
    assert_int_equal(roost_report_at(report, 1)->length, 3);
    assert_string_equal(roost_report_at(report, 1)->hint, "write 5-7");
    describe(&set, &got);
    assert_string_equal(text_string(&got), "0-1,9");
    text_release(&got);
    roost_report_free(report);
    arena_release(&arena);
}

TEST(reading_again_adds_to_the_set)
{
    static const char *const parts[] = {"4", "0-1", "3", "8-9"};
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    struct diag diag = diag_start(NULL, NULL);
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < ROWS(parts); i++)
        assert_int_equal(rankset_read(&set, &arena, sv_from(parts[i]), NOWHERE, &diag), ROOST_OK);
    describe(&set, &got);
    assert_string_equal(text_string(&got), "0-1,3-4,8-9");
    text_release(&got);
    arena_release(&arena);
}

TEST(membership_next_and_size_agree_with_counting)
{
    static const char *const texts[] = {"", "0", "3", "0-2,5,7-9", "1,3,5,7,9", "0-9", "9"};
    for (size_t t = 0; t < ROWS(texts); t++) {
        struct arena arena = ARENA_INIT;
        struct rankset set = {0};
        struct diag diag = diag_start(NULL, NULL);
        assert_int_equal(rankset_read(&set, &arena, sv_from(texts[t]), NOWHERE, &diag), ROOST_OK);
        bool is_in[12] = {false};
        int64_t size = 0;
        for (int32_t i = 0; i < set.count; i++)
            for (int32_t r = set.ranges[i].first; r <= set.ranges[i].last; r++, size++)
                is_in[r] = true;
        CHECK_FACT(texts[t], rankset_size(&set) == size);
        for (int32_t r = 0; r < 12; r++) {
            int32_t next = r;
            while (next < 12 && !is_in[next])
                next++;
            CHECK_FACT(texts[t], rankset_has(&set, r) == is_in[r]);
            CHECK_FACT(texts[t], rankset_next(&set, r) == (next == 12 ? -1 : next));
        }
        arena_release(&arena);
    }
}

TEST(a_set_of_all_ranks_is_one_range)
{
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    struct diag diag = diag_start(NULL, NULL);
    assert_int_equal(rankset_read(&set, &arena, SV("0-2147483647"), NOWHERE, &diag), ROOST_OK);
    assert_int_equal(set.count, 1);
    assert_int_equal(rankset_size(&set), INT64_C(2147483648));
    assert_true(rankset_has(&set, ROOST_RANK_MAX));
    arena_release(&arena);
}

RUN_TESTS(cmocka_unit_test(ranks_are_read_sorted_and_merged),
          cmocka_unit_test(what_is_not_a_rank_is_refused_as_it_was_written),
          cmocka_unit_test(ranges_that_run_backwards_or_too_far_are_refused),
          cmocka_unit_test(every_wrong_item_is_said_at_its_own_place_and_the_good_ones_are_kept),
          cmocka_unit_test(reading_again_adds_to_the_set),
          cmocka_unit_test(membership_next_and_size_agree_with_counting),
          cmocka_unit_test(a_set_of_all_ranks_is_one_range))
