/* packed_test.c - the closed form against the algorithm it replaces, and a table of placements. */
#include "tests/plan_unit.h"

/* Units of each node, for the naive algorithm. */
struct shape {
    const char *spec;
    int32_t counts[4]; /* 0 ends them unless nodes says otherwise */
    int32_t nodes;
};

enum { UNITS_MAX = 24 };

/* Takes the lowest unused rank, then every stride-th, n of them, and repeats. False when that cannot be done. */
static bool naive(const struct shape *shape, struct roost_packed packed, struct text *out)
{
    int32_t node_of[UNITS_MAX], local_of[UNITS_MAX], total = 0;
    for (int32_t node = 0; node < shape->nodes; node++)
        for (int32_t i = 0; i < shape->counts[node]; i++, total++) {
            node_of[total] = node;
            local_of[total] = i;
        }
    int32_t count = packed.end - packed.start + 1;
    if (packed.end >= total || count % (packed.per_process * packed.stride) != 0)
        return false;
    bool is_used[UNITS_MAX] = {false};
    for (int32_t process = 0, left = count; left > 0; process++) {
        int32_t at = packed.start;
        while (is_used[at])
            at++;
        int32_t node = node_of[at];
        text_printf(out, "%d node%d:", process, node);
        for (int32_t k = 0; k < packed.per_process; k++, at += packed.stride, left--) {
            if (at > packed.end || is_used[at] || node_of[at] != node)
                return false;
            is_used[at] = true;
            text_printf(out, k ? ",%d" : "%d", local_of[at]);
        }
        text_char(out, '\n');
    }
    return true;
}

TEST(the_closed_form_places_as_the_lowest_unused_rank_does)
{
    static const struct shape shapes[] = {
        {"1x8", {8}, 1},
        {"2x4", {4, 4}, 2},
        {"1x3,1x5", {3, 5}, 2},
        {"3x4", {4, 4, 4}, 3},
        {"1x2,1x0,1x6", {2, 0, 6}, 3},
        {"1x12", {12}, 1},
        {"1x1,1x2,1x3,1x4", {1, 2, 3, 4}, 4},
    };
    int placed = 0, refused = 0;
    for (size_t s = 0; s < ROWS(shapes); s++) {
        struct roost_cluster *cluster = cluster_of(shapes[s].spec, NULL);
        int32_t total = (int32_t)roost_cluster_accelerator_count(cluster);
        struct roost_packed packed;
        for (packed.start = 0; packed.start < total; packed.start++)
            for (packed.end = packed.start; packed.end <= total; packed.end++)
                for (packed.per_process = 1; packed.per_process <= total; packed.per_process++)
                    for (packed.stride = 1; packed.stride <= total; packed.stride++) {
                        struct text expected = TEXT_INIT, got = TEXT_INIT;
                        struct roost_error err;
                        bool is_possible = naive(&shapes[s], packed, &expected);
                        struct roost_plan *plan =
                            roost_plan_new_packed(cluster, NULL, &packed, &err);
                        if ((plan != NULL) != is_possible)
                            fail_msg("%s: %d-%d n=%d stride=%d: %s", shapes[s].spec, packed.start,
                                     packed.end, packed.per_process, packed.stride, err.message);
                        if (plan) {
                            put_brief(&got, roost_plan_component(plan, 0));
                            CHECK_TEXT(shapes[s].spec, text_string(&got), text_string(&expected));
                        }
                        placed += is_possible;
                        refused += !is_possible;
                        roost_plan_free(plan);
                        text_release(&expected);
                        text_release(&got);
                    }
        roost_cluster_free(cluster);
    }
    assert_true(placed > 500 && refused > 500); /* both sides were looked at */
}

/* One call on a cluster: its rows, or its error. */
struct call {
    const char *spec, *groups;
    const char *labels[3];
    struct roost_packed packed;
    bool shares;
    const char *expected;
};

static void check_call(const struct call *call)
{
    struct roost_cluster *cluster = cluster_of(call->spec, call->groups);
    struct roost_scope scope = {.labels = call->labels, .shares_accelerators = call->shares};
    struct roost_error err;
    struct text got = TEXT_INIT;
    while (call->labels[scope.label_count])
        scope.label_count++;
    struct roost_plan *plan = roost_plan_new_packed(cluster, &scope, &call->packed, &err);
    roost_cluster_free(cluster);
    if (plan) {
        const struct roost_component *it = roost_plan_component(plan, 0);
        assert_int_equal(it->strategy, ROOST_STRATEGY_PACKED);
        assert_int_equal(it->isolate_accelerator, !call->shares);
        put_full(&got, it);
        CHECK_TEXT(call->spec, text_string(&got), call->expected);
    } else {
        text_printf(&got, "%s: %s", roost_code_word(err.code), err.message);
        CHECK_SAYS(call->spec, text_string(&got), call->expected);
    }
    roost_plan_free(plan);
    text_release(&got);
}

#define TWO_GROUPS "[{label: a, node_ranks: 0}, {label: b, node_ranks: 1}]"

TEST(packed_placements_are_those_of_the_table)
{
    static const struct call rows[] = {
        {"1x4",
         NULL,
         {0},
         {0, 3, 1, 1},
         false,
         "r0 n0 p0 lar0 lr0/4 vis0 hw[0] g=cluster\nr1 n0 p0 lar1 lr1/4 vis1 hw[1] g=cluster\n"
         "r2 n0 p0 lar2 lr2/4 vis2 hw[2] g=cluster\nr3 n0 p0 lar3 lr3/4 vis3 hw[3] g=cluster\n"},
        {"1x4",
         NULL,
         {0},
         {0, 3, 2, 1},
         false,
         "r0 n0 p0 lar0 lr0/2 vis0,1 hw[0,1] g=cluster\n"
         "r1 n0 p0 lar2 lr1/2 vis2,3 hw[2,3] g=cluster\n"},
        {"1x4",
         NULL,
         {0},
         {0, 3, 2, 2},
         false,
         "r0 n0 p0 lar0 lr0/2 vis0,2 hw[0,2] g=cluster\n"
         "r1 n0 p0 lar1 lr1/2 vis1,3 hw[1,3] g=cluster\n"},
        {"1x8",
         NULL,
         {0},
         {0, 7, 2, 2},
         false,
         "r0 n0 p0 lar0 lr0/4 vis0,2 hw[0,2] g=cluster\n"
         "r1 n0 p0 lar1 lr1/4 vis1,3 hw[1,3] g=cluster\n"
         "r2 n0 p0 lar4 lr2/4 vis4,6 hw[4,6] g=cluster\n"
         "r3 n0 p0 lar5 lr3/4 vis5,7 hw[5,7] g=cluster\n"},
        {"2x4",
         NULL,
         {0},
         {2, 5, 1, 1},
         false,
         "r0 n0 p0 lar2 lr0/2 vis2 hw[2] g=cluster\nr1 n0 p0 lar3 lr1/2 vis3 hw[3] g=cluster\n"
         "r2 n1 p1 lar0 lr0/2 vis0 hw[0] g=cluster\nr3 n1 p1 lar1 lr1/2 vis1 hw[1] g=cluster\n"},
        {"2x4",
         NULL,
         {0},
         {2, 5, 2, 1},
         false,
         "r0 n0 p0 lar2 lr0/1 vis2,3 hw[2,3] g=cluster\n"
         "r1 n1 p1 lar0 lr0/1 vis0,1 hw[0,1] g=cluster\n"},
        {"2x4",
         NULL,
         {0},
         {1, 6, 3, 1},
         false,
         "r0 n0 p0 lar1 lr0/1 vis1,2,3 hw[1,2,3] g=cluster\n"
         "r1 n1 p1 lar0 lr0/1 vis0,1,2 hw[0,1,2] g=cluster\n"},
        {"2x4",
         NULL,
         {0},
         {0, 7, 2, 2},
         false,
         "r0 n0 p0 lar0 lr0/2 vis0,2 hw[0,2] g=cluster\n"
         "r1 n0 p0 lar1 lr1/2 vis1,3 hw[1,3] g=cluster\n"
         "r2 n1 p1 lar0 lr0/2 vis0,2 hw[0,2] g=cluster\n"
         "r3 n1 p1 lar1 lr1/2 vis1,3 hw[1,3] g=cluster\n"},
        {"2x4",
         TWO_GROUPS,
         {"b"},
         {0, 3, 1, 1},
         false,
         "r0 n1 p0 lar0 lr0/4 vis0 hw[0] g=b\nr1 n1 p0 lar1 lr1/4 vis1 hw[1] g=b\n"
         "r2 n1 p0 lar2 lr2/4 vis2 hw[2] g=b\nr3 n1 p0 lar3 lr3/4 vis3 hw[3] g=b\n"},
        {"2x4",
         TWO_GROUPS,
         {"b", "a"},
         {2, 5, 1, 1},
         false,
         "r0 n1 p0 lar2 lr0/2 vis2 hw[2] g=b\nr1 n1 p0 lar3 lr1/2 vis3 hw[3] g=b\n"
         "r2 n0 p1 lar0 lr0/2 vis0 hw[0] g=a\nr3 n0 p1 lar1 lr1/2 vis1 hw[1] g=a\n"},
        {"1x2,1x0,1x2",
         NULL,
         {0},
         {0, 3, 1, 1},
         false,
         "r0 n0 p0 lar0 lr0/2 vis0 hw[0] g=cluster\nr1 n0 p0 lar1 lr1/2 vis1 hw[1] g=cluster\n"
         "r2 n2 p1 lar0 lr0/2 vis0 hw[0] g=cluster\nr3 n2 p1 lar1 lr1/2 vis1 hw[1] g=cluster\n"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i]);
}

TEST(packed_stride_has_no_effect_with_one_unit_a_process)
{
    struct roost_cluster *cluster = cluster_of("1x8", NULL);
    struct roost_packed packed = {0, 7, 1, 2};
    struct roost_error err;
    struct text got = TEXT_INIT;
    struct roost_plan *plan = roost_plan_new_packed(cluster, NULL, &packed, &err);
    put_brief(&got, roost_plan_component(plan, 0));
    assert_string_equal(text_string(&got), "0 node0:0\n1 node0:1\n2 node0:2\n3 node0:3\n"
                                           "4 node0:4\n5 node0:5\n6 node0:6\n7 node0:7\n");
    text_release(&got);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
}

TEST(without_isolation_a_process_sees_the_node_and_knows_its_own_first)
{
    static const struct call row = {"1x4",
                                    NULL,
                                    {0},
                                    {0, 3, 2, 1},
                                    true,
                                    "r0 n0 p0 lar0 lr0/2 vis0,1,2,3 hw[0,1] g=cluster\n"
                                    "r1 n0 p0 lar2 lr1/2 vis0,1,2,3 hw[2,3] g=cluster\n"};
    check_call(&row);
}

TEST(what_packed_cannot_place_is_refused)
{
    static const struct call rows[] = {
        {"2x4", NULL, {0}, {0, 7, 8, 1}, false, "same node"},
        {"2x4", NULL, {0}, {3, 4, 2, 1}, false, "same node"}, /* one past the end of its node */
        {"1x3,1x5", NULL, {0}, {0, 7, 2, 1}, false, "same node"},
        {"1x4", NULL, {0}, {4, 7, 1, 1}, false, "fit: rank 7 is out of range"},
        {"1x4", NULL, {0}, {0, 4, 1, 1}, false, "fit: rank 4 is out of range"},
        {"1x4", NULL, {0}, {0, 3, 1, 5}, false, "rank: 4 resources are not a multiple"},
        {"1x4", NULL, {0}, {0, 2, 4, 1}, false, "rank: 3 resources are not a multiple"},
        {"1x4",
         NULL,
         {0},
         {-1, 2, 1, 1},
         false,
         "rank: start_hardware_rank -1 and end_hardware_rank 2 are not a range"},
        {"1x4",
         NULL,
         {0},
         {3, 1, 1, 1},
         false,
         "rank: start_hardware_rank 3 and end_hardware_rank 1 are not a range"},
        {"1x4",
         NULL,
         {0},
         {0, -1, 1, 1},
         false,
         "rank: start_hardware_rank 0 and end_hardware_rank -1 are not a range"},
        {"1x4", NULL, {0}, {0, 3, 0, 1}, false, "both must be at least 1"},
        {"1x4", NULL, {0}, {0, 3, -1, 1}, false, "both must be at least 1"},
        {"1x4", NULL, {0}, {0, 3, 1, 0}, false, "both must be at least 1"},
        {"1x4", NULL, {0}, {0, 3, 1, -1}, false, "both must be at least 1"},
        {"1x4", NULL, {0}, {0, 3, INT32_MAX, INT32_MAX}, false, "are not a multiple"},
        {"1x4", NULL, {0}, {0, INT32_MAX, 1, 1}, false, "out of range"},
        {"1x4", NULL, {"node"}, {0, 0, 1, 1}, false, "hardware: packed placement needs hardware"},
        {"2x0", NULL, {0}, {0, 1, 1, 1}, false, "hardware: packed placement needs hardware"},
        {"1x4",
         NULL,
         {"nobody"},
         {0, 0, 1, 1},
         false,
         "reference: there is no node group 'nobody'"},
        {"2x4", TWO_GROUPS, {"a", "a"}, {0, 0, 1, 1}, false, "name: node group 'a' is named twice"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_call(&rows[i]);
}

RUN_TESTS(cmocka_unit_test(the_closed_form_places_as_the_lowest_unused_rank_does),
          cmocka_unit_test(packed_placements_are_those_of_the_table),
          cmocka_unit_test(packed_stride_has_no_effect_with_one_unit_a_process),
          cmocka_unit_test(without_isolation_a_process_sees_the_node_and_knows_its_own_first),
          cmocka_unit_test(what_packed_cannot_place_is_refused))
