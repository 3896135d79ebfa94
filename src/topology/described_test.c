/* described_test.c - clusters that somebody else describes, and how many nodes are taken. */
#include <roost/engine/cluster.h>
#include <roost/roost.h>

#include "tests/unit.h"

static const char *const arms[] = {"Franka", "Franka"};
static const struct roost_node_description nodes[] = {
    {ROOST_ACCELERATOR_NVIDIA, 4, NULL, 0, 0},
    {ROOST_ACCELERATOR_AMD, 2, arms, 2, 96},
};

static struct roost_cluster *build(struct roost_node_group_description group,
                                   struct roost_error *err)
{
    struct roost_cluster_description description = {nodes, 2, &group, 1};
    return roost_cluster_new_described(&description, err);
}

TEST(described_nodes_are_numbered_as_those_of_a_cluster)
{
    static const int32_t ranks[] = {0, 1};
    struct roost_error err;
    struct roost_cluster *cluster =
        build((struct roost_node_group_description){"both", "Accelerator", ranks, 2, false}, &err);
    struct roost_node_group group;
    struct roost_hardware unit;
    assert_int_equal(roost_cluster_accelerator_count(cluster), 6);
    assert_int_equal(roost_cluster_node_group_count(cluster), 3);
    assert_true(roost_cluster_node_group(cluster, 0, &group));
    assert_string_equal(group.label, "both");
    assert_int_equal(group.node_count, 2);
    assert_int_equal(group.node_ranks[0], 0);
    assert_int_equal(group.resource_count, 6);
    assert_true(roost_cluster_node_group(cluster, 1, &group));
    assert_string_equal(group.label, "cluster");
    assert_true(roost_cluster_hardware(cluster, 1, 1, &unit));
    assert_string_equal(unit.type, "Franka");
    assert_false(roost_cluster_hardware(cluster, 1, 2, &unit));
    assert_false(roost_cluster_hardware(cluster, 0, 0, &unit));
    roost_cluster_free(cluster);
}

TEST(descriptions_may_bring_their_own_cluster_group)
{
    static const int32_t rank = 1;
    struct roost_cluster *cluster =
        build((struct roost_node_group_description){"cluster", "Franka", &rank, 1, false}, NULL);
    struct roost_node_group group;
    assert_int_equal(roost_cluster_node_group_count(cluster), 2);
    assert_true(roost_cluster_node_group(cluster, 0, &group));
    assert_int_equal(group.resource_count, 2);
    roost_cluster_free(cluster);
}

TEST(the_group_node_counts_nodes_whatever_is_said)
{
    static const int32_t ranks[] = {0, 1};
    struct roost_cluster *cluster =
        build((struct roost_node_group_description){"node", "Accelerator", ranks, 2, false}, NULL);
    struct roost_node_group group;
    assert_true(roost_cluster_node_group(cluster, 0, &group));
    assert_null(group.hardware_type);
    assert_int_equal(group.resource_count, 2);
    roost_cluster_free(cluster);
}

TEST(descriptions_that_cannot_be_numbered_are_refused)
{
    static const int32_t rank = 2;
    struct roost_error err;
    assert_null(build((struct roost_node_group_description){"far", NULL, &rank, 1, false}, &err));
    assert_non_null(strstr(err.message, "'far' names node 2, which is out of range"));
    struct roost_cluster_description none = {0};
    assert_null(roost_cluster_new_described(&none, &err));
    assert_non_null(strstr(err.message, "a cluster has 1 to"));
    const struct roost_node_description large = {ROOST_ACCELERATOR_NVIDIA, 1 << 20, NULL, 0, 0};
    assert_null(
        roost_cluster_new_described(&(struct roost_cluster_description){&large, 1, NULL, 0}, &err));
    assert_non_null(strstr(err.message, "node 0 has 1048576 accelerators"));
}

TEST(nodes_of_a_described_group_rise)
{
    static const int32_t falling[] = {1, 0}, twice[] = {1, 1};
    struct roost_error err;
    assert_null(build((struct roost_node_group_description){"a", NULL, falling, 2, false}, &err));
    assert_string_equal(err.message, "the nodes of node group 'a' must rise, but 0 comes after 1");
    assert_string_equal(err.hint, "name each node once, in rising order");
    assert_null(build((struct roost_node_group_description){"a", NULL, twice, 2, false}, &err));
    assert_non_null(strstr(err.message, "but 1 comes after 1"));
}

TEST(a_type_that_was_not_declared_is_found)
{
    static const int32_t ranks[] = {0, 1};
    static const struct roost_node_description bare[] = {{.num_accelerators = 0},
                                                         {.num_accelerators = 0}};
    const struct roost_node_group_description groups[] = {{"a", NULL, ranks, 2, true},
                                                          {"b", "Franka", ranks, 2, true},
                                                          {"c", NULL, ranks, 2, false},
                                                          {"node", NULL, ranks, 2, true}};
    static const char *const expected[] = {"Accelerator", "Franka", NULL, NULL};
    struct roost_cluster *cluster = roost_cluster_new_described(
        &(struct roost_cluster_description){nodes, 2, groups, ROWS(groups)}, NULL);
    struct roost_cluster *empty =
        roost_cluster_new_described(&(struct roost_cluster_description){bare, 2, groups, 1}, NULL);
    struct roost_node_group group;
    for (size_t g = 0; g < ROWS(groups); g++) {
        roost_cluster_node_group(cluster, g, &group);
        if (expected[g])
            assert_string_equal(group.hardware_type, expected[g]);
        else
            assert_null(group.hardware_type);
    }
    roost_cluster_node_group(empty, 0, &group);
    assert_null(group.hardware_type);
    roost_cluster_free(cluster);
    roost_cluster_free(empty);
}

TEST(a_rank_is_found_on_its_node)
{
    static const int32_t ranks[] = {0, 1};
    struct roost_cluster *cluster =
        build((struct roost_node_group_description){"a", "Accelerator", ranks, 2, false}, NULL);
    int32_t node = -1, local = -1;
    static const int32_t expected[][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0}, {1, 1}};
    for (int32_t rank = 0; rank < 6; rank++) {
        assert_true(roost_cluster_locate(cluster, 0, rank, &node, &local));
        assert_int_equal(node, expected[rank][0]);
        assert_int_equal(local, expected[rank][1]);
    }
    assert_true(roost_cluster_locate(cluster, 2, 1, &node, &local)); /* the group `node` */
    assert_int_equal(node, 1);
    assert_int_equal(local, 0);
    assert_false(roost_cluster_locate(cluster, 0, 6, &node, &local));
    assert_false(roost_cluster_locate(cluster, 0, -1, &node, &local));
    assert_false(roost_cluster_locate(cluster, 3, 0, &node, &local));
    roost_cluster_free(cluster);
}

TEST(models_of_accelerators_name_their_type)
{
    static const struct {
        const char *text;
        enum roost_accelerator type;
        const char *model, *hint; /* a model of NULL is refused with the hint */
    } rows[] = {
        {"NV_GPU:A800", ROOST_ACCELERATOR_NVIDIA, "A800", NULL},
        {"NPU:910B", ROOST_ACCELERATOR_ASCEND, "910B", NULL},
        {"NPU:", ROOST_ACCELERATOR_ASCEND, "", NULL},
        {"RTX 3090", ROOST_ACCELERATOR_NVIDIA, "RTX 3090", NULL},
        {"", ROOST_ACCELERATOR_NVIDIA, "", NULL},
        {"NVGPU:A800", 0, NULL, "did you mean the type 'NV_GPU'?"},
        {"NV_GPU:A:B", 0, NULL, "write NV_GPU:A800, or the model alone for NVIDIA"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        enum roost_accelerator type = ROOST_ACCELERATOR_NONE;
        const char *model = NULL;
        struct roost_error err;
        enum roost_code code = roost_accelerator_read(rows[i].text, &type, &model, &err);
        CHECK_FACT(rows[i].text, (code == ROOST_OK) == (rows[i].model != NULL));
        if (rows[i].model) {
            CHECK_TEXT(rows[i].text, model, rows[i].model);
            CHECK_FACT(rows[i].text, type == rows[i].type);
            continue;
        }
        CHECK_SAYS(rows[i].text, err.message, "the model of an accelerator is TYPE:MODEL, not '");
        CHECK_TEXT(rows[i].text, err.hint, rows[i].hint);
    }
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

RUN_TESTS(cmocka_unit_test(described_nodes_are_numbered_as_those_of_a_cluster),
          cmocka_unit_test(descriptions_may_bring_their_own_cluster_group),
          cmocka_unit_test(the_group_node_counts_nodes_whatever_is_said),
          cmocka_unit_test(descriptions_that_cannot_be_numbered_are_refused),
          cmocka_unit_test(nodes_of_a_described_group_rise),
          cmocka_unit_test(a_type_that_was_not_declared_is_found),
          cmocka_unit_test(a_rank_is_found_on_its_node),
          cmocka_unit_test(models_of_accelerators_name_their_type),
          cmocka_unit_test(the_first_nodes_are_taken_when_asked),
          cmocka_unit_test(a_number_of_nodes_agrees_with_the_config))
