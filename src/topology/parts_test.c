/* parts_test.c - clusters that somebody else describes, and how many nodes are taken. */
#include <roost/roost.h>

#include "tests/unit.h"

static const char *const arms[] = {"Franka", "Franka"};
static const struct roost_node_part nodes[] = {
    {ROOST_ACCELERATOR_NVIDIA, 4, NULL, 0},
    {ROOST_ACCELERATOR_AMD, 2, arms, 2},
};

static struct roost_cluster *build(struct roost_group_part group, struct roost_error *err)
{
    struct roost_cluster_parts parts = {nodes, 2, &group, 1};
    return roost_cluster_new_parts(&parts, err);
}

TEST(parts_are_numbered_as_a_described_cluster_is)
{
    static const int32_t ranks[] = {1, 0, 1};
    struct roost_error err;
    struct roost_cluster *cluster =
        build((struct roost_group_part){"both", "Accelerator", ranks, 3}, &err);
    struct roost_node_group group;
    struct roost_hardware unit;
    assert_int_equal(roost_cluster_accelerator_count(cluster), 6);
    assert_int_equal(roost_cluster_group_count(cluster), 3);
    assert_true(roost_cluster_group(cluster, 0, &group));
    assert_string_equal(group.label, "both");
    assert_int_equal(group.node_count, 2);
    assert_int_equal(group.node_ranks[0], 0);
    assert_int_equal(group.resource_count, 6);
    assert_true(roost_cluster_group(cluster, 1, &group));
    assert_string_equal(group.label, "cluster");
    assert_true(roost_cluster_hardware(cluster, 1, 1, &unit));
    assert_string_equal(unit.type, "Franka");
    assert_false(roost_cluster_hardware(cluster, 1, 2, &unit));
    assert_false(roost_cluster_hardware(cluster, 0, 0, &unit));
    roost_cluster_free(cluster);
}

TEST(parts_may_bring_their_own_cluster_group)
{
    static const int32_t rank = 1;
    struct roost_cluster *cluster =
        build((struct roost_group_part){"cluster", "Franka", &rank, 1}, NULL);
    struct roost_node_group group;
    assert_int_equal(roost_cluster_group_count(cluster), 2);
    assert_true(roost_cluster_group(cluster, 0, &group));
    assert_int_equal(group.resource_count, 2);
    roost_cluster_free(cluster);
}

TEST(the_group_node_counts_nodes_whatever_is_said)
{
    static const int32_t ranks[] = {0, 1};
    struct roost_cluster *cluster =
        build((struct roost_group_part){"node", "Accelerator", ranks, 2}, NULL);
    struct roost_node_group group;
    assert_true(roost_cluster_group(cluster, 0, &group));
    assert_null(group.hardware_type);
    assert_int_equal(group.resource_count, 2);
    roost_cluster_free(cluster);
}

TEST(parts_that_cannot_be_numbered_are_refused)
{
    static const int32_t rank = 2;
    struct roost_error err;
    assert_null(build((struct roost_group_part){"far", NULL, &rank, 1}, &err));
    assert_non_null(strstr(err.message, "'far' names node 2, which is out of range"));
    struct roost_cluster_parts none = {0};
    assert_null(roost_cluster_new_parts(&none, &err));
    assert_non_null(strstr(err.message, "a cluster has 1 to"));
    const struct roost_node_part large = {ROOST_ACCELERATOR_NVIDIA, 1 << 20, NULL, 0};
    assert_null(roost_cluster_new_parts(&(struct roost_cluster_parts){&large, 1, NULL, 0}, &err));
    assert_non_null(strstr(err.message, "node 0 has 1048576 accelerators"));
}

TEST(the_first_nodes_are_taken_when_asked)
{
    struct roost_error err;
    struct roost_cluster_options options = {.text = "3x8", .num_nodes = 2};
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
    assert_int_equal(roost_cluster_node_count(cluster), 2);
    roost_cluster_free(cluster);
    options.num_nodes = 4;
    assert_null(roost_cluster_new(&options, NULL, &err));
    assert_int_equal(err.code, ROOST_ERR_FIT);
    options.num_nodes = -1;
    assert_null(roost_cluster_new(&options, NULL, &err));
    assert_non_null(strstr(err.message, "'num_nodes' must be a positive integer"));
}

TEST(a_number_of_nodes_agrees_with_the_config)
{
    static const char text[] = "cluster: {num_nodes: 2, component_placement: {}}";
    struct roost_config_options reading = {.path = "c", .text = text, .text_len = sizeof text - 1};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    struct roost_cluster_options options = {.text = "3x8", .config = config, .num_nodes = 2};
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
    assert_int_equal(roost_cluster_node_count(cluster), 2);
    roost_cluster_free(cluster);
    options.num_nodes = 3;
    assert_null(roost_cluster_new(&options, NULL, &err));
    assert_string_equal(err.message, "num_nodes is asked to be 3, but the config says 2");
    roost_config_free(config);
}

RUN_TESTS(cmocka_unit_test(parts_are_numbered_as_a_described_cluster_is),
          cmocka_unit_test(parts_may_bring_their_own_cluster_group),
          cmocka_unit_test(the_group_node_counts_nodes_whatever_is_said),
          cmocka_unit_test(parts_that_cannot_be_numbered_are_refused),
          cmocka_unit_test(the_first_nodes_are_taken_when_asked),
          cmocka_unit_test(a_number_of_nodes_agrees_with_the_config))
