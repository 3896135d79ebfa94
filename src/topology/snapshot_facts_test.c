/* snapshot_facts_test.c - what Ray and the environment of a node say of it, settled. */
#include "tests/plan_unit.h"
#include "topology/cluster.h"

/* The cluster of these nodes, as a program has it that asked Ray; NULL = refused. */
static struct roost_cluster *settle(const char *nodes, struct roost_report *report,
                                    struct roost_error *err)
{
    struct text json = TEXT_INIT;
    text_printf(&json, "{\"roost\": 1, \"cluster\": {\"nodes\": [%s]}}", nodes);
    struct roost_cluster_options options = {.text = "the Ray cluster",
                                            .snapshot = text_string(&json)};
    struct roost_cluster *cluster = roost_cluster_new(&options, report, err);
    text_release(&json);
    return cluster;
}

/* The same where it must be good, and its first node. */
static struct roost_cluster *settle_well(const char *nodes, struct roost_node *out_first)
{
    struct roost_error err;
    struct roost_cluster *cluster = settle(nodes, NULL, &err);
    if (!cluster)
        fail_msg("'%s': %s", nodes, err.message);
    assert_true(roost_cluster_node(cluster, 0, out_first));
    return cluster;
}

#define FOUND(count, type)                                                                         \
    "{\"address\": \"10.0.0.1\", \"accelerator_type\": \"" type "\", \"num_accelerators\": " count
#define NONE FOUND("0", "NO_ACCEL")
#define RAY(resources) ", \"ray\": {\"resources\": {" resources "}}}"
#define LABELLED(label)                                                                            \
    ", \"ray\": {\"accelerator_type\": " label ", \"resources\": {\"GPU\": 4.0}}}"

TEST(accelerators_are_those_found_else_rays_and_the_fewer_where_they_differ)
{
    static const struct {
        const char *node;
        int32_t count;
        enum roost_accelerator type;
    } rows[] = {
        {NONE RAY("\"GPU\": 8.0"), 8, ROOST_ACCELERATOR_NVIDIA},
        {NONE RAY("\"GPU\": 8"), 8, ROOST_ACCELERATOR_NVIDIA},
        {NONE RAY("\"GPU\": 1024.0000"), 1024, ROOST_ACCELERATOR_NVIDIA},
        {NONE RAY(""), 0, ROOST_ACCELERATOR_NONE},
        {NONE RAY("\"GPU\": null"), 0, ROOST_ACCELERATOR_NONE},
        {NONE RAY("\"GPU\": 0, \"CPU\": 4.0, \"node:__internal_head__\": 1.0, \"x\": [\"y\"]"), 0,
         ROOST_ACCELERATOR_NONE},
        {NONE ", \"ray\": {}}", 0, ROOST_ACCELERATOR_NONE},
        {NONE ", \"ray\": {\"later\": {\"GPU\": 4}}}", 0, ROOST_ACCELERATOR_NONE},
        {"{\"ray\": {\"resources\": {\"GPU\": 2}}}", 2, ROOST_ACCELERATOR_NVIDIA},
        /* Part of an accelerator is none. */
        {NONE RAY("\"GPU\": 0.5"), 0, ROOST_ACCELERATOR_NONE},
        {NONE RAY("\"GPU\": 0.9999"), 0, ROOST_ACCELERATOR_NONE},
        {NONE RAY("\"GPU\": 2.75"), 2, ROOST_ACCELERATOR_NVIDIA},
        /* One kind a node: what Ray calls GPU comes first. */
        {NONE RAY("\"NPU\": 16.0"), 16, ROOST_ACCELERATOR_ASCEND},
        {NONE RAY("\"NPU\": 16.0, \"GPU\": 2.0"), 2, ROOST_ACCELERATOR_NVIDIA},
        {NONE RAY("\"NPU\": 16.0, \"GPU\": 0.5"), 16, ROOST_ACCELERATOR_ASCEND},
        /* What is found is what is there, as far as Ray gives it away. */
        {FOUND("4", "AMD_GPU") "}", 4, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY(""), 4, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY("\"GPU\": 0.5"), 4, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY("\"GPU\": 4.0"), 4, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY("\"GPU\": 8.0"), 4, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY("\"GPU\": 2.0"), 2, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "AMD_GPU") RAY("\"NPU\": 2.0"), 2, ROOST_ACCELERATOR_AMD},
        {FOUND("4", "NV_GPU") RAY("\"GPU\": 2147483647"), 4, ROOST_ACCELERATOR_NVIDIA},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_node node;
        struct roost_cluster *cluster = settle_well(rows[i].node, &node);
        CHECK_FACT(rows[i].node, node.num_accelerators == rows[i].count);
        CHECK_FACT(rows[i].node, node.accelerator == rows[i].type);
        roost_cluster_free(cluster);
    }
}

TEST(a_gpu_of_ray_is_of_the_family_that_its_label_names)
{
    static const struct {
        const char *node;
        enum roost_accelerator type;
    } rows[] = {
        {NONE LABELLED("\"AMD-Instinct-MI300X\""), ROOST_ACCELERATOR_AMD},
        {NONE LABELLED("\"amd\""), ROOST_ACCELERATOR_AMD},
        {NONE LABELLED("\"an iNSTINCt\""), ROOST_ACCELERATOR_AMD},
        {NONE LABELLED("\"Intel-GPU-Max-1550\""), ROOST_ACCELERATOR_INTEL},
        {NONE LABELLED("\"Ascend910B\""), ROOST_ACCELERATOR_ASCEND},
        {NONE LABELLED("\"A100\""), ROOST_ACCELERATOR_NVIDIA},
        {NONE LABELLED("\"Inte\""), ROOST_ACCELERATOR_NVIDIA},
        {NONE LABELLED("\"\""), ROOST_ACCELERATOR_NVIDIA},
        {NONE LABELLED("null"), ROOST_ACCELERATOR_NVIDIA},
        /* What was found there is no matter of labels. */
        {FOUND("4", "MUSA_GPU") LABELLED("\"AMD\""), ROOST_ACCELERATOR_MUSA},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_node node;
        struct roost_cluster *cluster = settle_well(rows[i].node, &node);
        CHECK_FACT(rows[i].node, node.num_accelerators == 4);
        CHECK_FACT(rows[i].node, node.accelerator == rows[i].type);
        roost_cluster_free(cluster);
    }
}

TEST(models_and_lists_stay_with_accelerators_that_were_found)
{
    struct roost_node node;
    struct roost_cluster *cluster =
        settle_well("{\"accelerator_model\": \"A800\", \"accelerators\": [{\"id\": \"a\"}, "
                    "{\"id\": \"b\"}]" RAY("\"GPU\": 1"),
                    &node);
    assert_int_equal(node.num_accelerators, 1);
    assert_string_equal(node.accelerator_model, "A800");
    assert_string_equal(cluster->nodes[0].accelerators[0].id, "a");
    roost_cluster_free(cluster);

    cluster = settle_well(
        "{\"accelerator_model\": \"A800\", \"accelerators\": []" RAY("\"GPU\": 3"), &node);
    assert_int_equal(node.num_accelerators, 3);
    assert_null(node.accelerator_model);
    assert_null(cluster->nodes[0].accelerators);
    roost_cluster_free(cluster);
}

TEST(counts_that_differ_are_warned_about_and_no_others)
{
    static const struct {
        const char *node, *message;
    } rows[] = {
        {FOUND("4", "NV_GPU") RAY("\"GPU\": 8.0"),
         "node 10.0.0.1 has 4 accelerators, but Ray was told of 8 there: 4 are used"},
        {FOUND("4", "NV_GPU") RAY("\"GPU\": 2.5"),
         "node 10.0.0.1 has 4 accelerators, but Ray was told of 2 there: 2 are used"},
        {"{\"ray\": {\"resources\": {\"GPU\": 1}}, \"num_accelerators\": 2, \"id\": \"a\\u001b\"}",
         "node a\\x1b has 2 accelerators, but Ray was told of 1 there: 1 are used"},
        {"{\"ray\": {\"resources\": {\"GPU\": 1}}, \"num_accelerators\": 2}",
         "node ? has 2 accelerators, but Ray was told of 1 there: 1 are used"},
        {FOUND("4", "NV_GPU") RAY("\"GPU\": 4.0"), NULL},
        {FOUND("4", "NV_GPU") RAY(""), NULL},
        {NONE RAY("\"GPU\": 4.0"), NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        struct roost_report *report = roost_report_new();
        roost_cluster_free(settle(rows[i].node, report, &err));
        CHECK_FACT(rows[i].node, err.code == ROOST_OK);
        CHECK_FACT(rows[i].node, roost_report_count(report) == (rows[i].message != NULL));
        if (rows[i].message) {
            const struct roost_diagnostic *said = roost_report_at(report, 0);
            assert_string_equal(said->message, rows[i].message);
            assert_int_equal(said->warning, ROOST_WARN_COUNTS);
            assert_int_equal(said->line, 0); /* nobody sees the text of a program */
        }
        roost_report_free(report);
    }
}

#define ENV(variables) "{\"address\": \"10.0.0.1\", \"env\": {" variables "}}, {\"node_rank\": 0}"

TEST(a_rank_text_is_a_number_as_everywhere)
{
    static const char *const rows[] = {
        ENV("\"ROOST_NODE_RANK\": \"1\""),
        ENV("\"RLINF_NODE_RANK\": \"1\""),
        ENV("\"ROOST_NODE_RANK\": \"+1\""),
        ENV("\"ROOST_NODE_RANK\": \" 1\\t\""),
        ENV("\"ROOST_NODE_RANK\": \"0000000000000000000001\""),
        ENV("\"ROOST_NODE_RANK\": \"1\", \"RLINF_NODE_RANK\": \"0\""),
        ENV("\"RLINF_NODE_RANK\": \"x\", \"ROOST_NODE_RANK\": \"1\""),
        ENV("\"ROOST_NODE_RANK\": \"\", \"RLINF_NODE_RANK\": \"1\""),
        ENV("\"ROOST_NODE_RANK\": null, \"RLINF_NODE_RANK\": \"1\""),
        ENV("\"RLINF_NODE_RANK\": \"1\", \"PATH\": 7, \"NODE_RANK\": [\"0\"]"),
        /* A rank that is settled is not looked for again. */
        "{\"node_rank\": 1, \"env\": {\"ROOST_NODE_RANK\": \"x\"}}, {\"node_rank\": 0}",
        "{\"env\": {\"ROOST_NODE_RANK\": \"7\"}, \"node_rank\": 1}, {\"node_rank\": 0}",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        struct roost_cluster *cluster = settle(rows[i], NULL, &err);
        CHECK_SAYS(rows[i], err.message, "");
        CHECK_FACT(rows[i], cluster != NULL && roost_cluster_node_count(cluster) == 2);
        roost_cluster_free(cluster);
    }
}

TEST(nodes_without_a_rank_text_are_ordered_by_address)
{
    struct roost_node node;
    struct roost_cluster *cluster =
        settle_well("{\"address\": \"10.0.0.10\", \"env\": {}}, {\"address\": \"10.0.0.9\", "
                    "\"env\": {\"ROOST_NODE_RANK\": \"\", \"RLINF_NODE_RANK\": \"\"}}",
                    &node);
    assert_string_equal(node.address, "10.0.0.9");
    roost_cluster_free(cluster);
}

TEST(one_node_is_node_0_whatever_rank_it_has_among_others)
{
    struct roost_node node;
    roost_cluster_free(settle_well("{\"env\": {\"RLINF_NODE_RANK\": \"3\"}}", &node));
    assert_int_equal(node.node_rank, 0);
    struct roost_error err;
    assert_null(settle("{\"env\": {\"RLINF_NODE_RANK\": \"three\"}}", NULL, &err));
    CHECK_SAYS("malformed", err.message, "RLINF_NODE_RANK of node ? is 'three', which is no");
    /* Who writes a rank down means it. */
    assert_null(settle("{\"node_rank\": 3}", NULL, &err));
    CHECK_SAYS("explicit", err.message, "no node has node_rank 0");
}

#define SAYS_RANK(text) "ROOST_NODE_RANK of node 10.0.0.1 is '" text "', which is no node rank"

TEST(a_rank_text_that_is_no_number_is_refused_in_its_own_words)
{
    static const struct {
        const char *nodes, *message;
    } rows[] = {
        {ENV("\"ROOST_NODE_RANK\": \"one\""), SAYS_RANK("one")},
        {ENV("\"ROOST_NODE_RANK\": \"1_0\""), SAYS_RANK("1_0")},
        {ENV("\"ROOST_NODE_RANK\": \"\u0663\""), SAYS_RANK("\u0663")},
        {ENV("\"ROOST_NODE_RANK\": \"-1\""), SAYS_RANK("-1")},
        {ENV("\"ROOST_NODE_RANK\": \"1.0\""), SAYS_RANK("1.0")},
        {ENV("\"ROOST_NODE_RANK\": \"1 0\""), SAYS_RANK("1 0")},
        {ENV("\"ROOST_NODE_RANK\": \"0x1\""), SAYS_RANK("0x1")},
        {ENV("\"ROOST_NODE_RANK\": \"+\""), SAYS_RANK("+")},
        {ENV("\"ROOST_NODE_RANK\": \" \""), SAYS_RANK(" ")},
        {ENV("\"ROOST_NODE_RANK\": \"2147483648\""), SAYS_RANK("2147483648")},
        {ENV("\"ROOST_NODE_RANK\": \"99999999999999999999\""), SAYS_RANK("99999999999999999999")},
        {ENV("\"ROOST_NODE_RANK\": \"x\", \"RLINF_NODE_RANK\": \"1\""), SAYS_RANK("x")},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        CHECK_FACT(rows[i].nodes, settle(rows[i].nodes, NULL, &err) == NULL);
        CHECK_SAYS(rows[i].nodes, err.message, rows[i].message);
        CHECK_SAYS(rows[i].nodes, err.hint, "set it to 0, 1, ... before `ray start` there");
        CHECK_FACT(rows[i].nodes, err.code == ROOST_ERR_SCHEMA && err.line == 0);
    }
}

TEST(ranks_of_the_environment_are_for_all_nodes_or_none_and_each_once)
{
    struct roost_error err;
    assert_null(settle("{\"env\": {\"ROOST_NODE_RANK\": \"0\"}}, {\"env\": {}}", NULL, &err));
    CHECK_SAYS("some", err.message, "in 'the Ray cluster' 1 of 2 nodes have a node_rank");
    assert_null(settle("{\"env\": {\"ROOST_NODE_RANK\": \"0\"}}, "
                       "{\"env\": {\"RLINF_NODE_RANK\": \"+0\"}}",
                       NULL, &err));
    CHECK_SAYS("twice", err.message, "in 'the Ray cluster' two nodes have node_rank 0");
}

TEST(facts_that_make_no_sense_are_refused)
{
    static const struct {
        const char *nodes, *message;
    } rows[] = {
        {NONE RAY("\"GPU\": -1"),
         "Ray's resource GPU must be a number from 0 to 2147483647, not '-1'"},
        {NONE RAY("\"NPU\": 1e3"),
         "Ray's resource NPU must be a number from 0 to 2147483647, not '1e3'"},
        {NONE RAY("\"GPU\": 2147483648"),
         "must be a number from 0 to 2147483647, not '2147483648'"},
        {NONE RAY("\"GPU\": 99999999999999999999.0"), "not '99999999999999999999.0'"},
        {NONE RAY("\"GPU\": 0.00001"), "not '0.00001'"},
        {NONE RAY("\"GPU\": 1025.0"),
         "Ray was told of 1025 accelerators on node 10.0.0.1; at most 1024 can be numbered"},
        {NONE RAY("\"GPU\": \"8\""), "GPU must be a number or null, not a string"},
        {NONE RAY("\"GPU\": true"), "GPU must be a number or null, not true"},
        {NONE RAY("\"GPU\": {\"a\": [1]}"), "GPU must be a number or null, not an"},
        {NONE LABELLED("7"), "Ray's accelerator_type must be a string or null, not a number"},
        {NONE ", \"ray\": null}", "ray must be an object, not null"},
        {NONE ", \"ray\": 8}", "ray must be an object, not a number"},
        {NONE ", \"ray\": {\"resources\": [8]}}", "resources must be an object, not an array"},
        {NONE ", \"env\": \"ROOST_NODE_RANK=1\"}", "env must be an object, not a string"},
        {ENV("\"ROOST_NODE_RANK\": 1"), "ROOST_NODE_RANK must be a string or null, not a number"},
        {NONE ", \"ray\": {\"resources\": {\"GPU\": 1", ""},
        {NONE ", \"env\": {\"ROOST_NODE_RANK\": \"1\"", ""},
        /* Fields that do not agree are not settled either. */
        {"{\"accelerator_type\": \"NV_GPU\", \"num_accelerators\": 0" RAY("\"GPU\": 8"),
         "a node of type NV_GPU cannot have 0 accelerators"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        CHECK_FACT(rows[i].nodes, settle(rows[i].nodes, NULL, &err) == NULL);
        CHECK_SAYS(rows[i].nodes, err.message, rows[i].message);
        CHECK_FACT(rows[i].nodes,
                   err.code == (rows[i].message[0] ? ROOST_ERR_SCHEMA : ROOST_ERR_SYNTAX));
    }
}

TEST(every_wrong_fact_is_said_once_and_nothing_that_follows_from_it)
{
    struct roost_error err;
    struct roost_report *report = roost_report_new();
    assert_null(settle("{\"address\": \"a\", \"num_accelerators\": 2, \"env\": "
                       "{\"ROOST_NODE_RANK\": \"x\"}, \"ray\": {\"resources\": {\"GPU\": -1, "
                       "\"NPU\": \"1\"}}}, {\"address\": \"b\", \"env\": []}, {\"node_rank\": 0}",
                       report, &err));
    assert_int_equal(roost_report_errors(report), 4);
    assert_int_equal(roost_report_warnings(report), 0);
    roost_report_free(report);
}

RUN_TESTS(cmocka_unit_test(accelerators_are_those_found_else_rays_and_the_fewer_where_they_differ),
          cmocka_unit_test(a_gpu_of_ray_is_of_the_family_that_its_label_names),
          cmocka_unit_test(models_and_lists_stay_with_accelerators_that_were_found),
          cmocka_unit_test(counts_that_differ_are_warned_about_and_no_others),
          cmocka_unit_test(a_rank_text_is_a_number_as_everywhere),
          cmocka_unit_test(nodes_without_a_rank_text_are_ordered_by_address),
          cmocka_unit_test(one_node_is_node_0_whatever_rank_it_has_among_others),
          cmocka_unit_test(a_rank_text_that_is_no_number_is_refused_in_its_own_words),
          cmocka_unit_test(ranks_of_the_environment_are_for_all_nodes_or_none_and_each_once),
          cmocka_unit_test(facts_that_make_no_sense_are_refused),
          cmocka_unit_test(every_wrong_fact_is_said_once_and_nothing_that_follows_from_it))
