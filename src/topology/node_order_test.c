/* node_order_test.c - the same nodes in any order give the same ranks. */
#include "tests/plan_unit.h"
#include "topology/cluster.h"

/* A node as a test writes it; rank -1 = none. */
struct given {
    const char *id, *address;
    int32_t rank;
    bool is_head;
};

/* Orders the nodes and shows their ids, or the error. */
static void order(const struct given *given, size_t count, struct text *out)
{
    struct roost_cluster cluster = {.node_count = (int32_t)count};
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    cluster.nodes = arena_zeroed(&cluster.arena, struct cluster_node, count);
    for (size_t i = 0; i < count; i++) {
        cluster.nodes[i].id = given[i].id;
        cluster.nodes[i].address = given[i].address;
        cluster.nodes[i].explicit_rank = given[i].rank;
        cluster.nodes[i].is_head = given[i].is_head;
    }
    out->len = 0;
    bool is_good = topology_order_nodes(&cluster, "nodes.json", &diag);
    assert_int_equal(is_good, diag.errors == 0);
    if (!is_good)
        text_puts(out, err.message);
    for (size_t i = 0; is_good && i < count; i++)
        text_printf(out, "%s%s", i ? " " : "", cluster.nodes[i].id ? cluster.nodes[i].id : "-");
    arena_release(&cluster.arena);
}

TEST(addresses_order_nodes_by_value_then_names_then_ids)
{
    static const struct given nodes[] = {
        {"name10", "node10", -1, false}, {"ip10", "10.0.0.10", -1, false},
        {"b", "10.0.0.2", -1, false},    {"nowhere", NULL, -1, false},
        {"v6", "fe80::1", -1, false},    {"name2", "node2", -1, false},
        {"a", "10.0.0.2", -1, false},    {"ip9", "9.0.0.1", -1, false},
    };
    enum { COUNT = ROWS(nodes) };
    struct text got = TEXT_INIT;
    for (size_t shift = 0; shift < COUNT; shift++) {
        for (int is_reversed = 0; is_reversed < 2; is_reversed++) {
            struct given shuffled[COUNT];
            for (size_t i = 0; i < COUNT; i++)
                shuffled[i] = nodes[((is_reversed ? COUNT - 1 - i : i) + shift) % COUNT];
            order(shuffled, COUNT, &got);
            assert_string_equal(text_string(&got), "ip9 a b ip10 v6 name2 name10 nowhere");
        }
    }
    text_release(&got);
}

TEST(explicit_ranks_win_over_addresses_and_over_a_head)
{
    static const struct given nodes[] = {
        {"two", "10.0.0.1", 2, true}, {"zero", "10.0.0.9", 0, false}, {"one", NULL, 1, false}};
    struct text got = TEXT_INIT;
    order(nodes, 3, &got);
    assert_string_equal(text_string(&got), "zero one two");
    text_release(&got);
}

TEST(a_head_comes_before_every_address)
{
    static const struct given nodes[] = {{"b", "10.0.0.2", -1, false},
                                         {"head", "10.0.0.10", -1, true},
                                         {"a", "10.0.0.1", -1, false}};
    struct text got = TEXT_INIT;
    order(nodes, 3, &got);
    assert_string_equal(text_string(&got), "head a b");
    text_release(&got);
}

TEST(ranks_are_on_all_nodes_or_on_none_and_each_once)
{
    static const struct {
        int32_t ranks[3];
        const char *message;
    } rows[] = {
        {{0, 1, -1}, "in 'nodes.json' 2 of 3 nodes have a node_rank"},
        {{-1, -1, 0}, "in 'nodes.json' 1 of 3 nodes have a node_rank"},
        {{0, 1, 1}, "in 'nodes.json' two nodes have node_rank 1"},
        {{0, 1, 3}, "in 'nodes.json' no node has node_rank 2"},
        {{1, 2, 3}, "in 'nodes.json' no node has node_rank 0"},
        {{0, 0, 0}, "in 'nodes.json' two nodes have node_rank 0"},
        {{0, 1, ROOST_RANK_MAX}, "in 'nodes.json' no node has node_rank 2"},
    };
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct given nodes[3] = {
            {"a", NULL, 0, false}, {"b", NULL, 0, false}, {"c", NULL, 0, false}};
        for (size_t k = 0; k < 3; k++)
            nodes[k].rank = rows[i].ranks[k];
        order(nodes, 3, &got);
        CHECK_TEXT(rows[i].message, text_string(&got), rows[i].message);
    }
    text_release(&got);
}

TEST(nodes_without_any_identity_keep_the_order_they_came_in)
{
    static const struct given nodes[] = {
        {NULL, NULL, -1, false}, {"x", NULL, -1, false}, {NULL, NULL, -1, false}};
    struct text got = TEXT_INIT;
    order(nodes, 3, &got);
    assert_string_equal(text_string(&got), "- - x");
    order(nodes, 0, &got);
    assert_string_equal(text_string(&got), "");
    text_release(&got);
}

RUN_TESTS(cmocka_unit_test(addresses_order_nodes_by_value_then_names_then_ids),
          cmocka_unit_test(explicit_ranks_win_over_addresses_and_over_a_head),
          cmocka_unit_test(a_head_comes_before_every_address),
          cmocka_unit_test(ranks_are_on_all_nodes_or_on_none_and_each_once),
          cmocka_unit_test(nodes_without_any_identity_keep_the_order_they_came_in))
