/* synthetic_test.c - clusters from specs: what they are made of, and what is no spec. */
#include "tests/plan_unit.h"
#include "topology/cluster.h"

/* "NV_GPU 8 A800; NO_ACCEL 0 -", one piece a node. */
static void put_nodes(struct text *out, const struct roost_cluster *cluster)
{
    for (int32_t n = 0; n < roost_cluster_node_count(cluster); n++) {
        struct roost_node node;
        assert_true(roost_cluster_node(cluster, n, &node));
        assert_int_equal(node.node_rank, n);
        assert_null(node.address);
        assert_null(node.id);
        assert_int_equal(node.num_cpus, -1);
        text_printf(out, "%s%s %d %s", n ? "; " : "", roost_accelerator_type(node.accelerator),
                    (int)node.num_accelerators,
                    node.accelerator_model ? node.accelerator_model : "-");
    }
}

TEST(a_spec_says_nodes_accelerators_and_their_kind)
{
    static const char *const rows[][2] = {
        {"1x8", "NV_GPU 8 -"},
        {"2x4", "NV_GPU 4 -; NV_GPU 4 -"},
        {"2x0", "NO_ACCEL 0 -; NO_ACCEL 0 -"},
        {"1x8 A800", "NV_GPU 8 A800"},
        {"1x8 NVIDIA", "NV_GPU 8 -"},
        {"1x8 AMD", "AMD_GPU 8 -"},
        {"1x8 ASCEND", "NPU 8 -"},
        {"1x8 INTEL", "INTEL_GPU 8 -"},
        {"1x8 MUSA", "MUSA_GPU 8 -"},
        {"1x8 KUNLUN", "KUNLUN_XPU 8 -"},
        {"1x8 amd", "NV_GPU 8 amd"},
        {"1x8 A800,1x4 AMD,1x0", "NV_GPU 8 A800; AMD_GPU 4 -; NO_ACCEL 0 -"},
        {"1x8 , 1x4", "NV_GPU 8 -; NV_GPU 4 -"},
        {"01x08", "NV_GPU 8 -"},
        {"1x0 AMD", "NO_ACCEL 0 -"},
        {"1x1024", "NV_GPU 1024 -"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_cluster *cluster = cluster_of(rows[i][0], NULL);
        struct text got = TEXT_INIT;
        put_nodes(&got, cluster);
        CHECK_TEXT(rows[i][0], text_string(&got), rows[i][1]);
        text_release(&got);
        roost_cluster_free(cluster);
    }
}

TEST(a_wrong_spec_is_refused_with_what_is_wrong)
{
    static const struct {
        const char *text;
        enum roost_code code;
        const char *phrase;
    } rows[] = {
        {"0x8", ROOST_ERR_USAGE, "it has no nodes"},
        {"1x8,", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8,,1x8", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8,8", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8,x8", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8,1x", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8,-1x8", ROOST_ERR_USAGE, "an entry is N x K"},
        {"1x8 two words", ROOST_ERR_USAGE, "a vendor or model is one word"},
        {"1x8 -", ROOST_ERR_USAGE, "a vendor or model is one word"},
        {"1x1025", ROOST_ERR_LIMIT, "larger than"},
        {"1048577x1", ROOST_ERR_LIMIT, "larger than"},
        {"99999999999999999999x1", ROOST_ERR_LIMIT, "larger than"},
        {"1048576x0,1x0", ROOST_ERR_LIMIT, "larger than 1048576 nodes"},
        {"65537x1024", ROOST_ERR_LIMIT, "at most 67108864 are numbered"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        struct roost_cluster_options options = {.text = rows[i].text};
        CHECK_FACT(rows[i].text, roost_cluster_new(&options, NULL, &err) == NULL);
        CHECK_SAYS(rows[i].text, err.message, rows[i].phrase);
        CHECK_FACT(rows[i].text, err.code == rows[i].code);
        CHECK_FACT(rows[i].text, err.line == 0);
    }
}

TEST(a_spec_is_told_from_a_file_by_how_it_starts)
{
    static const char *const specs[] = {"2x8", "1x0", "2x8 A800", "10x1,2x2", "2 x8", "2x8.json"};
    static const char *const files[] = {"",      "x8",           "2x",    "2X8",
                                        "local", "cluster.json", "./2x8", "2y8"};
    for (size_t i = 0; i < ROWS(specs); i++)
        CHECK_FACT(specs[i], roost_cluster_is_spec(specs[i]));
    for (size_t i = 0; i < ROWS(files); i++)
        CHECK_FACT(files[i], !roost_cluster_is_spec(files[i]));
}

TEST(a_spec_in_a_config_is_refused_at_its_place)
{
    static const char yaml[] = "cluster: {num_nodes: 1, component_placement: {a: 0}}\n"
                               "roost:\n  cluster: 1x4,1x4 q q\n";
    struct roost_error err;
    assert_null(plan_of(NULL, yaml, ROOST_MODE_HYBRID, &err));
    assert_int_equal(err.code, ROOST_ERR_SYNTAX);
    assert_int_equal(err.line, 3);
    assert_int_equal(err.column, 16);
}

TEST(the_largest_cluster_is_numbered_whole)
{
    struct roost_cluster *cluster = cluster_of("65536x1024", NULL);
    struct roost_node_group group;
    assert_int_equal(roost_cluster_accelerator_count(cluster), 67108864);
    assert_true(roost_cluster_node_group(cluster, 0, &group));
    assert_string_equal(group.label, "cluster");
    assert_int_equal(group.resource_count, 67108864);
    roost_cluster_free(cluster);
}

/* "a Accelerator 0,2 5; node nodes 0,1,2 3" */
static void check_groups(const char *spec, const char *groups, const char *expected)
{
    struct roost_cluster *cluster = cluster_of(spec, groups);
    struct text got = TEXT_INIT;
    struct roost_node_group group;
    for (size_t g = 0; roost_cluster_node_group(cluster, g, &group); g++) {
        text_printf(&got, "%s%s %s ", g ? "; " : "", group.label,
                    group.hardware_type ? group.hardware_type : "nodes");
        put_ranks(&got, group.node_ranks, group.node_count);
        text_printf(&got, " %d", (int)group.resource_count);
    }
    CHECK_TEXT(spec, text_string(&got), expected);
    assert_false(
        roost_cluster_node_group(cluster, roost_cluster_node_group_count(cluster), &group));
    text_release(&got);
    roost_cluster_free(cluster);
}

TEST(groups_count_accelerators_robots_or_nodes)
{
    check_groups("2x4", NULL, "cluster Accelerator 0,1 8; node nodes 0,1 2");
    check_groups("2x0", NULL, "cluster nodes 0,1 2; node nodes 0,1 2");
    check_groups("1x2,1x0,1x4", NULL, "cluster Accelerator 0,1,2 6; node nodes 0,1,2 3");
    check_groups(
        "1x2,1x0,1x4", "[{label: a, node_ranks: '2,0'}, {label: b, node_ranks: 1}]",
        "a Accelerator 0,2 6; b nodes 1 1; cluster Accelerator 0,1,2 6; node nodes 0,1,2 3");
    check_groups("2x4", "[{label: cpu, node_ranks: all, ignore_hardware: true}]",
                 "cpu nodes 0,1 2; cluster Accelerator 0,1 8; node nodes 0,1 2");
    check_groups("2x4",
                 "[{label: arms, node_ranks: 0-1, hardware: {type: Franka, configs: "
                 "[{node_rank: 1, robot_ip: 10.0.0.1}, {node_rank: 0}, {node_rank: 1}]}}]",
                 "arms Franka 0,1 3; cluster Accelerator 0,1 8; node nodes 0,1 2");
    check_groups("2x4", "[{label: g, node_ranks: [0, 1], hardware_type: Accelerator}]",
                 "g Accelerator 0,1 8; cluster Accelerator 0,1 8; node nodes 0,1 2");
}

TEST(a_node_that_is_not_there_is_not_given)
{
    struct roost_cluster *cluster = cluster_of("2x1", NULL);
    struct roost_node node;
    assert_false(roost_cluster_node(cluster, -1, &node));
    assert_false(roost_cluster_node(cluster, 2, &node));
    roost_cluster_free(cluster);
    roost_cluster_free(NULL);
}

RUN_TESTS(cmocka_unit_test(a_spec_says_nodes_accelerators_and_their_kind),
          cmocka_unit_test(a_wrong_spec_is_refused_with_what_is_wrong),
          cmocka_unit_test(a_spec_is_told_from_a_file_by_how_it_starts),
          cmocka_unit_test(a_spec_in_a_config_is_refused_at_its_place),
          cmocka_unit_test(the_largest_cluster_is_numbered_whole),
          cmocka_unit_test(groups_count_accelerators_robots_or_nodes),
          cmocka_unit_test(a_node_that_is_not_there_is_not_given))
