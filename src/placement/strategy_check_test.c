/* strategy_check_test.c - what is wrong with a strategy whatever the cluster is. */
#include <roost/roost.h>

#include "tests/unit.h"

struct packed_case {
    struct roost_packed packed;
    const char *expected; /* NULL = nothing is wrong */
};

static void check(enum roost_code code, const struct roost_error *err, const char *expected)
{
    if (!expected) {
        assert_int_equal(code, ROOST_OK);
        return;
    }
    assert_int_not_equal(code, ROOST_OK);
    assert_int_equal(code, err->code);
    if (!strstr(err->message, expected))
        fail_msg("said '%s', not '%s'", err->message, expected);
}

TEST(packed_numbers_are_refused_without_a_cluster)
{
    static const struct packed_case cases[] = {
        {{0, 3, 1, 1}, NULL},
        {{0, ROOST_RANK_MAX, 1, 1}, NULL},
        {{-1, 2, 1, 1}, "are not a range"},
        {{3, 1, 1, 1}, "are not a range"},
        {{0, 3, 0, 1}, "at least 1"},
        {{0, 3, 1, -1}, "at least 1"},
        {{0, 2, 4, 1}, "not a multiple"},
        {{0, 3, 1, 5}, "not a multiple"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct roost_error err;
        check(roost_packed_check(&cases[i].packed, &err), &err, cases[i].expected);
    }
    assert_int_equal(roost_packed_check(&cases[2].packed, NULL), ROOST_ERR_RANK);
}

TEST(flexible_lists_are_refused_without_a_cluster)
{
    static const int32_t first[] = {0, 1, 1}, ranks[] = {3}, below[] = {-1};
    struct roost_error err;
    check(roost_flexible_check(first, ranks, 1, &err), &err, NULL);
    check(roost_flexible_check(first, ranks, 2, &err), &err, "ranks_list[1] must not be empty");
    check(roost_flexible_check(first, ranks, 0, &err), &err, "must not be empty");
    check(roost_flexible_check(first, below, 1, &err), &err, "out of range: ranks start at 0");
}

TEST(node_lists_are_refused_without_a_cluster)
{
    static const int32_t ranks[] = {0, 5, -1};
    struct roost_error err;
    check(roost_node_check(ranks, 2, &err), &err, NULL);
    check(roost_node_check(ranks, 0, &err), &err, "must not be empty");
    check(roost_node_check(ranks, 3, &err), &err, "node rank -1 in node_ranks[2] is out");
}

RUN_TESTS(cmocka_unit_test(packed_numbers_are_refused_without_a_cluster),
          cmocka_unit_test(flexible_lists_are_refused_without_a_cluster),
          cmocka_unit_test(node_lists_are_refused_without_a_cluster))
