/* strategy_test.c - tables of flexible and node placements. */
#include <stdlib.h>

#include "tests/plan_unit.h"

/* A call: `lists` is "0,1|2|3" for [[0,1],[2],[3]], "-" for an empty list inside, "" for none at
 * all. The node strategy takes "1,0,1". */
struct call {
    const char *spec, *groups;
    const char *labels[3];
    const char *lists;
    bool shares;
    const char *expected; /* the rows, or a phrase of "code: message" */
};

enum { RANKS_MAX = 16 };

struct lists {
    int32_t first[RANKS_MAX + 1], ranks[RANKS_MAX], count;
};

static struct lists read_lists(const char *text)
{
    struct lists lists = {0};
    int32_t filled = 0;
    while (*text) {
        lists.first[lists.count++] = filled;
        for (; *text && *text != '|'; text += *text == ',') {
            char *end;
            if (strcmp(text, "-") == 0) {
                text++;
                break;
            }
            lists.ranks[filled++] = (int32_t)strtol(text, &end, 10);
            text = end;
        }
        text += *text == '|';
        lists.first[lists.count] = filled;
    }
    return lists;
}

static void check_call(const struct call *call, bool is_node)
{
    struct roost_cluster *cluster = cluster_of(call->spec, call->groups);
    struct roost_scope scope = {.labels = call->labels, .shares_accelerators = call->shares};
    struct lists lists = read_lists(call->lists), before = lists;
    struct roost_error err;
    struct text got = TEXT_INIT;
    while (call->labels[scope.label_count])
        scope.label_count++;
    struct roost_plan *plan =
        is_node
            ? roost_plan_new_node(cluster, &scope, lists.ranks, lists.first[lists.count], &err)
            : roost_plan_new_flexible(cluster, &scope, lists.first, lists.ranks, lists.count, &err);
    roost_cluster_free(cluster);
    assert_memory_equal(&lists, &before, sizeof lists); /* the caller's lists are never changed */
    if (plan) {
        const struct roost_component *it = roost_plan_component(plan, 0);
        assert_int_equal(it->strategy, is_node ? ROOST_STRATEGY_NODE : ROOST_STRATEGY_FLEXIBLE);
        assert_string_equal(it->name, "");
        put_full(&got, it);
        CHECK_TEXT(call->lists, text_string(&got), call->expected);
    } else {
        text_printf(&got, "%s: %s", roost_code_word(err.code), err.message);
        CHECK_SAYS(call->lists, text_string(&got), call->expected);
    }
    roost_plan_free(plan);
    text_release(&got);
}

#define TWO_GROUPS "[{label: a, node_ranks: 0}, {label: b, node_ranks: 1}]"

TEST(flexible_placements_are_those_of_the_table)
{
    static const char three[] = "r0 n0 p0 lar0 lr0/3 vis0,1 hw[0,1] g=cluster\n"
                                "r1 n0 p0 lar2 lr1/3 vis2 hw[2] g=cluster\n"
                                "r2 n0 p0 lar3 lr2/3 vis3 hw[3] g=cluster\n";
    static const struct call rows[] = {
        {"1x4", NULL, {0}, "0,1|2|3", false, three},
        {"1x4", NULL, {0}, "3|1,0|2", false, three},
        {"1x4", NULL, {0}, "2,1,3", false, "r0 n0 p0 lar1 lr0/1 vis1,2,3 hw[1,2,3] g=cluster\n"},
        {"2x4",
         NULL,
         {0},
         "4|0|5,6",
         false,
         "r0 n0 p0 lar0 lr0/1 vis0 hw[0] g=cluster\n"
         "r1 n1 p1 lar0 lr0/2 vis0 hw[0] g=cluster\n"
         "r2 n1 p1 lar1 lr1/2 vis1,2 hw[1,2] g=cluster\n"},
        {"1x4",
         NULL,
         {0},
         "0|0",
         false,
         "r0 n0 p0 lar0 lr0/2 vis0 hw[0] g=cluster\nr1 n0 p0 lar0 lr1/2 vis0 hw[0] g=cluster\n"},
        {"2x4", NULL, {0}, "0,4", false, "same node"},
        {"2x4", NULL, {0}, "0|8", false, "fit: rank 8 of process 1 is out of range"},
        {"1x4",
         NULL,
         {0},
         "0,0",
         false,
         "rank: process 0 names rank 0 twice: ranks of a process must be unique"},
        {"1x4", NULL, {0}, "", false, "rank: hardware_ranks_list must not be empty"},
        {"1x4", NULL, {0}, "-", false, "rank: hardware_ranks_list[0] must not be empty"},
        {"1x4", NULL, {0}, "-1", false, "fit: rank -1 in hardware_ranks_list[0] is out of range"},
        {"2x0", NULL, {0}, "0", false, "hardware: flexible placement needs hardware"},
        {"1x4", NULL, {"node"}, "0", false, "hardware: flexible placement needs hardware"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i], false);
}

TEST(flexible_counts_units_node_by_node_where_nodes_differ)
{
    static const struct call row = {
        "1x2,1x0,1x4",
        NULL,
        {0},
        "0|1|2|3|4|5",
        false,
        "r0 n0 p0 lar0 lr0/2 vis0 hw[0] g=cluster\nr1 n0 p0 lar1 lr1/2 vis1 hw[1] g=cluster\n"
        "r2 n2 p1 lar0 lr0/4 vis0 hw[0] g=cluster\nr3 n2 p1 lar1 lr1/4 vis1 hw[1] g=cluster\n"
        "r4 n2 p1 lar2 lr2/4 vis2 hw[2] g=cluster\nr5 n2 p1 lar3 lr3/4 vis3 hw[3] g=cluster\n"};
    check_call(&row, false);
}

TEST(flexible_goes_through_groups_in_the_order_given)
{
    static const struct call rows[] = {
        {"2x4",
         TWO_GROUPS,
         {"a", "b"},
         "2|3|4|5",
         false,
         "r0 n0 p0 lar2 lr0/2 vis2 hw[2] g=a\nr1 n0 p0 lar3 lr1/2 vis3 hw[3] g=a\n"
         "r2 n1 p1 lar0 lr0/2 vis0 hw[0] g=b\nr3 n1 p1 lar1 lr1/2 vis1 hw[1] g=b\n"},
        {"2x4",
         TWO_GROUPS,
         {"b", "a"},
         "2|3|4|5",
         false,
         "r0 n1 p0 lar2 lr0/2 vis2 hw[2] g=b\nr1 n1 p0 lar3 lr1/2 vis3 hw[3] g=b\n"
         "r2 n0 p1 lar0 lr0/2 vis0 hw[0] g=a\nr3 n0 p1 lar1 lr1/2 vis1 hw[1] g=a\n"},
        {"2x4", TWO_GROUPS, {"a", "b"}, "3,4", false, "same node"},
        {"2x4", TWO_GROUPS, {"a"}, "4", false, "fit: rank 4 of process 0 is out of range"},
        {"2x4", TWO_GROUPS, {"c"}, "0", false, "reference: there is no node group 'c'"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i], false);
}

TEST(flexible_counts_a_node_met_again_as_the_same_node)
{
    /* Accelerators of both nodes, then the robots of both: nodes come 0, 1, 0, 1. */
    static const char groups[] =
        "[{label: arms, node_ranks: all, hardware: {type: Franka, configs: [{node_rank: 0}, "
        "{node_rank: 1}]}}]";
    static const struct call rows[] = {
        {"2x1",
         groups,
         {"cluster", "arms"},
         "0|1|2|3",
         false,
         "r0 n0 p0 lar0 lr0/2 vis0 hw[0] g=cluster\nr1 n1 p1 lar0 lr0/2 vis0 hw[0] g=cluster\n"
         "r2 n0 p0 lar0 lr1/2 vis0 hw[0] g=arms\nr3 n1 p1 lar0 lr1/2 vis0 hw[0] g=arms\n"},
        {"1x1,1x0",
         groups,
         {"arms"},
         "0|1",
         false,
         "r0 n0 p0 lar0 lr0/1 vis0 hw[0] g=arms\nr1 n1 p1 lar-1 lr0/1 vis hw[0] g=arms\n"},
        {"1x1",
         "[{label: arm, node_ranks: 0, hardware: {type: Franka, configs: [{node_rank: 0}]}}]",
         {"cluster", "arm"},
         "0,1",
         false,
         "Franka"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i], false);
}

TEST(one_unit_through_two_groups_is_held_once)
{
    static const char groups[] = "[{label: a, node_ranks: 0}, {label: b, node_ranks: 0}]";
    static const struct call rows[] = {
        {"1x2", groups, {"a", "b"}, "0,2", false, "twice"},
        {"1x2", groups, {"a", "b"}, "0,3", false, "r0 n0 p0 lar0 lr0/1 vis0,1 hw[0,1] g=a\n"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i], false);
}

TEST(without_isolation_processes_see_their_whole_node)
{
    static const struct call row = {"1x2,1x3",
                                    NULL,
                                    {0},
                                    "0,1|3|4",
                                    true,
                                    "r0 n0 p0 lar0 lr0/1 vis0,1 hw[0,1] g=cluster\n"
                                    "r1 n1 p1 lar1 lr0/2 vis0,1,2 hw[1] g=cluster\n"
                                    "r2 n1 p1 lar2 lr1/2 vis0,1,2 hw[2] g=cluster\n"};
    check_call(&row, false);
}

TEST(node_placements_are_those_of_the_table)
{
    static const struct call rows[] = {
        {"1x0",
         NULL,
         {0},
         "0,0,0,0",
         false,
         "r0 n0 p0 lar-1 lr0/4 vis hw[] g=cluster\nr1 n0 p0 lar-1 lr1/4 vis hw[] g=cluster\n"
         "r2 n0 p0 lar-1 lr2/4 vis hw[] g=cluster\nr3 n0 p0 lar-1 lr3/4 vis hw[] g=cluster\n"},
        {"2x2",
         NULL,
         {0},
         "1,0,1",
         false,
         "r0 n0 p0 lar0 lr0/1 vis0,1 hw[] g=cluster\nr1 n1 p1 lar0 lr0/2 vis0,1 hw[] g=cluster\n"
         "r2 n1 p1 lar0 lr1/2 vis0,1 hw[] g=cluster\n"},
        {"3x1",
         NULL,
         {0},
         "0,1,1,2",
         false,
         "r0 n0 p0 lar0 lr0/1 vis0 hw[] g=cluster\nr1 n1 p1 lar0 lr0/2 vis0 hw[] g=cluster\n"
         "r2 n1 p1 lar0 lr1/2 vis0 hw[] g=cluster\nr3 n2 p2 lar0 lr0/1 vis0 hw[] g=cluster\n"},
        {"1x1,1x2",
         TWO_GROUPS,
         {"a", "b"},
         "0,1",
         false,
         "r0 n0 p0 lar0 lr0/1 vis0 hw[] g=a\nr1 n1 p1 lar0 lr0/1 vis0,1 hw[] g=b\n"},
        {"2x1",
         "[{label: a, node_ranks: 1}]",
         {"a"},
         "0",
         false,
         "r0 n1 p0 lar0 lr0/1 vis0 hw[] g=a\n"},
        {"2x2", NULL, {"node"}, "1", true, "r0 n1 p0 lar0 lr0/1 vis0,1 hw[] g=node\n"},
        {"2x1",
         TWO_GROUPS,
         {"b", "a"},
         "0,1",
         false,
         "r0 n1 p0 lar0 lr0/1 vis0 hw[] g=b\nr1 n0 p1 lar0 lr0/1 vis0 hw[] g=a\n"},
        {"2x1", NULL, {0}, "0,2", false, "fit: node rank 2 is out of range"},
        {"2x1", NULL, {0}, "-1", false, "fit: node rank -1 is out of range"},
        {"2x1", NULL, {0}, "", false, "rank: node_ranks must not be empty"},
        {"2x1",
         "[{label: a, node_ranks: 0}, {label: b, node_ranks: 0-1}]",
         {"a", "b"},
         "0",
         false,
         "rank: node groups 'a' and 'b' share node 0"},
        {"2x1", NULL, {"zzz"}, "0", false, "reference: there is no node group 'zzz'"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i], true);
}

TEST(ranks_that_were_asked_for_are_kept_as_ranges)
{
    static const struct {
        const char *lists, *ranges;
    } rows[] = {{"0|1|2|3", "0-3"}, {"0,1|5|6", "0-1 5-6"}, {"3|0", "0-0 3-3"}, {"0|0", "0-0"}};
    struct roost_cluster *cluster = cluster_of("1x8", NULL);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct lists lists = read_lists(rows[i].lists);
        struct roost_error err;
        struct text got = TEXT_INIT;
        struct roost_plan *plan =
            roost_plan_new_flexible(cluster, NULL, lists.first, lists.ranks, lists.count, &err);
        const struct roost_component *it = roost_plan_component(plan, 0);
        for (int32_t r = 0; r < it->hardware_range_count; r++)
            text_printf(&got, r ? " %d-%d" : "%d-%d", it->hardware_ranges[r].first,
                        it->hardware_ranges[r].last);
        CHECK_TEXT(rows[i].lists, text_string(&got), rows[i].ranges);
        text_release(&got);
        roost_plan_free(plan);
    }
    roost_cluster_free(cluster);
}

TEST(more_processes_than_a_component_may_have_are_refused)
{
    struct roost_cluster *cluster = cluster_of("1x1", NULL);
    struct roost_error err;
    static const int32_t none[1] = {0};
    assert_null(roost_plan_new_node(cluster, NULL, none, (1 << 24) + 1, &err));
    assert_int_equal(err.code, ROOST_ERR_LIMIT);
    assert_null(roost_plan_new_flexible(cluster, NULL, none, none, (1 << 24) + 1, &err));
    assert_int_equal(err.code, ROOST_ERR_LIMIT);
    assert_null(roost_plan_new_node(cluster, NULL, none, -1, &err));
    assert_int_equal(err.code, ROOST_ERR_RANK);
    roost_cluster_free(cluster);
}

RUN_TESTS(cmocka_unit_test(flexible_placements_are_those_of_the_table),
          cmocka_unit_test(flexible_counts_units_node_by_node_where_nodes_differ),
          cmocka_unit_test(flexible_goes_through_groups_in_the_order_given),
          cmocka_unit_test(flexible_counts_a_node_met_again_as_the_same_node),
          cmocka_unit_test(one_unit_through_two_groups_is_held_once),
          cmocka_unit_test(without_isolation_processes_see_their_whole_node),
          cmocka_unit_test(node_placements_are_those_of_the_table),
          cmocka_unit_test(ranks_that_were_asked_for_are_kept_as_ranges),
          cmocka_unit_test(more_processes_than_a_component_may_have_are_refused))
