/* plan_test.c - the public API as a C program uses it: a config text, a cluster, columns. */
#include "tests/plan_unit.h"

#define CONFIG(nodes, placement)                                                                   \
    "cluster: {num_nodes: " #nodes ", component_placement: {" placement "}}\n"

/* A component of a config against a cluster: its short rows, or a phrase of "code: message". */
static void check_plan(const char *spec, const char *yaml, const char *component,
                       enum roost_mode mode, const char *expected)
{
    struct roost_error err;
    struct text got = TEXT_INIT;
    struct roost_plan *plan = plan_of(spec, yaml, mode, &err);
    if (plan) {
        assert_non_null(roost_plan_find(plan, component));
        put_brief(&got, roost_plan_find(plan, component));
        CHECK_TEXT(yaml, text_string(&got), expected);
    } else {
        text_printf(&got, "%s: %s", roost_code_word(err.code), err.message);
        CHECK_SAYS(yaml, text_string(&got), expected);
    }
    roost_plan_free(plan);
    text_release(&got);
}

#define CHECK_PLAN(spec, nodes, text, expected)                                                    \
    check_plan(spec, CONFIG(nodes, "actor: \"" text "\""), "actor", ROOST_MODE_HYBRID, expected)

TEST(a_text_fills_a_node_before_opening_the_next)
{
    CHECK_PLAN("2x4", 2, "0-5",
               "0 node0:0\n1 node0:1\n2 node0:2\n3 node0:3\n4 node1:0\n5 node1:1\n");
}

TEST(texts_map_resources_to_processes)
{
    CHECK_PLAN("1x8", 1, "all",
               "0 node0:0\n1 node0:1\n2 node0:2\n3 node0:3\n4 node0:4\n5 node0:5\n"
               "6 node0:6\n7 node0:7\n");
    CHECK_PLAN("1x8", 1, "all:0", "0 node0:0,1,2,3,4,5,6,7\n");
    CHECK_PLAN("1x8", 1, "ALL:0-3", "0 node0:0,1\n1 node0:2,3\n2 node0:4,5\n3 node0:6,7\n");
    CHECK_PLAN("1x8", 1, "0-3:0-7",
               "0 node0:0\n1 node0:0\n2 node0:1\n3 node0:1\n4 node0:2\n"
               "5 node0:2\n6 node0:3\n7 node0:3\n");
    CHECK_PLAN("1x8", 1, "0-3:0-1", "0 node0:0,1\n1 node0:2,3\n");
    CHECK_PLAN("1x8", 1, "0-2,5,7", "0 node0:0\n1 node0:1\n2 node0:2\n3 node0:5\n4 node0:7\n");
    CHECK_PLAN("1x8", 1, "0-1:0-3,3-5,7:7-8",
               "0 node0:0\n1 node0:0\n2 node0:1\n3 node0:1\n4 node0:3\n5 node0:4\n6 node0:5\n"
               "7 node0:7\n8 node0:7\n");
    CHECK_PLAN("1x8", 1, "0-1,2-3:2", "0 node0:0\n1 node0:1\n2 node0:2,3\n");
    CHECK_PLAN("2x8", 2, "0-1:0-3,3-5,7-10:7-14",
               "0 node0:0\n1 node0:0\n2 node0:1\n3 node0:1\n4 node0:3\n5 node0:4\n6 node0:5\n"
               "7 node0:7\n8 node0:7\n9 node1:0\n10 node1:0\n11 node1:1\n12 node1:1\n13 node1:2\n"
               "14 node1:2\n");
    CHECK_PLAN("2x8", 2, "6-9:0-1", "0 node0:6,7\n1 node1:0,1\n");
    CHECK_PLAN("2x8", 2, "6-9:0", "same node");
    CHECK_PLAN("1x8", 1, "8", "fit: ");
    CHECK_PLAN("1x8", 1, "0-2:0-1", "rank: ");
    CHECK_PLAN("1x8", 1, "", "must not be empty");
}

/* How many processes each node has, in the order nodes are met. */
static void check_sizes(const char *spec, const char *yaml, const char *expected)
{
    struct roost_error err;
    struct text got = TEXT_INIT;
    struct roost_plan *plan = plan_of(spec, yaml, ROOST_MODE_HYBRID, &err);
    if (!plan)
        fail_msg("%s", err.message);
    const struct roost_component *it = roost_plan_component(plan, 0);
    for (int32_t p = 0; p < it->world_size; p++)
        if (it->local_rank[p] == 0)
            text_printf(&got, "%d ", it->local_world_size[p]);
    CHECK_TEXT(yaml, text_string(&got), expected);
    text_release(&got);
    roost_plan_free(plan);
}

TEST(processes_spread_over_nodes_evenly_or_with_one_more_on_the_first)
{
    check_sizes("4x0", CONFIG(4, "env: \"0-1:0-199,2-3:200-399\""), "100 100 100 100 ");
    check_sizes("4x0", CONFIG(4, "env: \"0-1:0-200,2-3:201-511\""), "101 100 156 155 ");
    check_sizes("3x2", CONFIG(3, "env: {node_group: node, placement: \"all:0-6\"}"), "3 2 2 ");
}

TEST(groups_that_count_different_things_count_nodes_together)
{
    static const char yaml[] = "cluster: {num_nodes: 2, node_groups: [{label: gpu, node_ranks: 0}, "
                               "{label: cpu, node_ranks: "
                               "1, ignore_hardware: true}], component_placement: {env: "
                               "{node_group: \"gpu,cpu\", placement: "
                               "all}}}";
    check_plan("2x4", yaml, "env", ROOST_MODE_HYBRID, "0 node0:\n1 node1:\n");
}

TEST(a_component_named_in_a_list_of_groups_uses_all_of_them)
{
    static const char yaml[] =
        "cluster: {num_nodes: 3, node_groups: [{label: a, node_ranks: 2}, {label: b, node_ranks: "
        "[0]}], component_placement: {env: {node_group: [a, b], placement: 1-4}}}";
    check_plan("1x4,1x1,1x2", yaml, "env", ROOST_MODE_HYBRID,
               "0 node2:1\n1 node0:0\n2 node0:1\n3 node0:2\n");
}

TEST(a_plan_is_read_after_config_and_cluster_are_gone)
{
    static const char yaml[] = CONFIG(
        2, "\"actor,critic\": 0-3, rollout: \"4-15:0-5\"") "roost: {launch: {critic: {isolate: "
                                                           "false, local_rank: torchrun}}}\n";
    struct roost_error err;
    struct roost_plan *plan = plan_of("2x8 A800", yaml, ROOST_MODE_HYBRID, &err);
    assert_non_null(plan);
    assert_int_equal(roost_plan_mode(plan), ROOST_PLAN_HYBRID);
    assert_null(roost_plan_model_parallel(plan));
    assert_int_equal(roost_plan_component_count(plan), 3);
    assert_null(roost_plan_component(plan, 3));
    assert_null(roost_plan_find(plan, "nobody"));

    const struct roost_component *actor = roost_plan_component(plan, 0);
    assert_string_equal(actor->name, "actor");
    assert_int_equal(actor->world_size, 4);
    assert_int_equal(actor->strategy, ROOST_STRATEGY_FLEXIBLE);
    assert_string_equal(roost_strategy_word(actor->strategy), "flexible");
    assert_true(actor->isolate_accelerator);
    assert_string_equal(actor->node_groups[0], "cluster");
    assert_int_equal(actor->hardware_range_count, 1);
    assert_int_equal(actor->hardware_ranges[0].last, 3);
    assert_int_equal(actor->accelerator[3], ROOST_ACCELERATOR_NVIDIA);
    assert_null(actor->visible_count);

    const struct roost_component *critic = roost_plan_find(plan, "critic");
    assert_false(critic->isolate_accelerator);
    assert_string_equal(roost_local_rank_word(critic->local_rank_rule), "torchrun");
    assert_int_equal(critic->visible_count[0], 8);
    assert_int_equal(critic->local_accelerator_rank[3], 3);

    const struct roost_component *rollout = roost_plan_find(plan, "rollout");
    struct text got = TEXT_INIT;
    put_full(&got, rollout);
    assert_string_equal(text_string(&got), "r0 n0 p0 lar4 lr0/2 vis4,5 hw[4,5] g=cluster\n"
                                           "r1 n0 p0 lar6 lr1/2 vis6,7 hw[6,7] g=cluster\n"
                                           "r2 n1 p1 lar0 lr0/4 vis0,1 hw[0,1] g=cluster\n"
                                           "r3 n1 p1 lar2 lr1/4 vis2,3 hw[2,3] g=cluster\n"
                                           "r4 n1 p1 lar4 lr2/4 vis4,5 hw[4,5] g=cluster\n"
                                           "r5 n1 p1 lar6 lr3/4 vis6,7 hw[6,7] g=cluster\n");
    text_release(&got);
    roost_plan_free(plan);
    roost_plan_free(NULL);
}

TEST(sharing_accelerators_is_asked_of_the_whole_plan)
{
    static const char yaml[] = CONFIG(1, "actor: 2-3");
    struct roost_config_options reading = {.path = "x", .text = yaml, .text_len = sizeof yaml - 1};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    struct roost_cluster_options options = {.text = "1x4", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
    struct roost_plan_options wanted = {.shares_accelerators = true};
    struct roost_plan *plan = roost_plan_new(config, cluster, &wanted, NULL, &err);
    struct text got = TEXT_INIT;
    put_full(&got, roost_plan_component(plan, 0));
    assert_string_equal(text_string(&got), "r0 n0 p0 lar2 lr0/2 vis0,1,2,3 hw[2] g=cluster\n"
                                           "r1 n0 p0 lar3 lr1/2 vis0,1,2,3 hw[3] g=cluster\n");
    text_release(&got);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
}

TEST(faults_of_all_components_are_reported_at_once)
{
    static const char yaml[] = "cluster:\n  num_nodes: 1\n  component_placement:\n"
                               "    a: 0-8\n    b: {node_group: zzz, placement: x}\n    c: 0-3\n"
                               "    d: \"0:1\"\n";
    struct roost_config_options reading = {.path = "x", .text = yaml, .text_len = sizeof yaml - 1};
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct roost_config *config = roost_config_load(&reading, report, &err);
    assert_non_null(config);
    struct roost_cluster_options options = {.text = "1x8", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&options, report, &err);
    assert_null(roost_plan_new(config, cluster, NULL, report, &err));
    assert_int_equal(err.code, ROOST_ERR_FIT);
    assert_int_equal(err.line, 4);
    assert_int_equal(roost_report_errors(report), 4);
    static const int32_t lines[] = {4, 5, 5, 7};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(roost_report_at(report, i)->line, lines[i]);
    assert_int_equal(roost_report_exit(report), 3);
    /* Without a cluster the same, less what depends on it. */
    assert_int_equal(roost_plan_check_texts(config, NULL, &err), ROOST_ERR_REFERENCE);
    assert_int_equal(err.line, 5);
    roost_cluster_free(cluster);
    roost_config_free(config);
    roost_report_free(report);
}

TEST(advice_names_idle_accelerators_and_unreached_environments)
{
    static const char yaml[] =
        "cluster:\n  num_nodes: 2\n  node_groups:\n    - {label: g, node_ranks: 0, env_configs: "
        "[{node_ranks: all, env_vars: [{A: x}]}]}\n  component_placement:\n    actor: 0-4\n";
    struct roost_config_options reading = {.path = "x", .text = yaml, .text_len = sizeof yaml - 1};
    struct roost_report *report = roost_report_new();
    struct roost_config *config = roost_config_load(&reading, report, NULL);
    struct roost_cluster_options options = {.text = "2x4", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&options, report, NULL);
    struct roost_plan *plan = roost_plan_new(config, cluster, NULL, report, NULL);
    roost_plan_advise(plan, config, cluster, report);
    assert_int_equal(roost_report_errors(report), 0);
    assert_int_equal(roost_report_warnings(report), 2);
    const struct roost_diagnostic *label = roost_report_at(report, 0);
    assert_int_equal(label->warning, ROOST_WARN_OTHER_LABEL);
    assert_int_equal(label->line, 6);
    const struct roost_diagnostic *idle = roost_report_at(report, 1);
    assert_int_equal(idle->warning, ROOST_WARN_IDLE);
    CHECK_SAYS("idle", idle->message, "3 of 8 accelerators are idle (node 1: 1-3)");
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    roost_report_free(report);
}

TEST(fewer_nodes_than_wanted_do_not_fit_and_more_are_left_out)
{
    struct roost_error err;
    assert_null(plan_of("1x8", CONFIG(2, "a: 0"), ROOST_MODE_HYBRID, &err));
    assert_int_equal(err.code, ROOST_ERR_FIT);
    check_plan("4x2", CONFIG(2, "a: all"), "a", ROOST_MODE_HYBRID,
               "0 node0:0\n1 node0:1\n2 node1:0\n3 node1:1\n");
    check_plan("4x2", CONFIG(2, "a: 4"), "a", ROOST_MODE_HYBRID, "fit: ");
}

/* --- model-parallel, a table of its modes --- */

#define SIZES(actor_tp, rollout_tp)                                                                \
    "actor: {model: {tensor_model_parallel_size: " #actor_tp "}}\n"                                \
    "rollout: {tensor_parallel_size: " #rollout_tp "}\n"
#define TOGETHER(nodes, ranks) CONFIG(nodes, "\"actor,rollout,reward\": " ranks)

static void check_model(const char *spec, const char *yaml, const char *expected)
{
    check_plan(spec, yaml, "rollout", ROOST_MODE_MODEL_PARALLEL, expected);
}

TEST(collocated_rollout_strides_over_the_actors_tensor_groups)
{
    check_model("1x4", TOGETHER(1, "0-3") SIZES(4, 2), "0 node0:0,2\n1 node0:1,3\n");
    check_model("1x8", TOGETHER(1, "0-7") SIZES(4, 1),
                "0 node0:0\n1 node0:1\n2 node0:2\n3 node0:3\n4 node0:4\n5 node0:5\n6 node0:6\n"
                "7 node0:7\n");
    check_model("1x8", TOGETHER(1, "0-7") SIZES(1, 2),
                "0 node0:0,1\n1 node0:2,3\n2 node0:4,5\n3 node0:6,7\n");
    check_model("2x8", TOGETHER(2, "all") SIZES(8, 4),
                "0 node0:0,2,4,6\n1 node0:1,3,5,7\n2 node1:0,2,4,6\n3 node1:1,3,5,7\n");
    check_model("1x12", TOGETHER(1, "0-11") SIZES(4, 3), "not a multiple");
    check_model("1x4", CONFIG(1, "\"actor,rollout,reward,inference\": 0-3"), "collocated mode");
}

TEST(a_collocated_plan_knows_its_sizes)
{
    struct roost_error err;
    struct roost_plan *plan =
        plan_of("1x4", TOGETHER(1, "0-3") SIZES(4, 2), ROOST_MODE_MODEL_PARALLEL, &err);
    const struct roost_model_parallel *sizes = roost_plan_model_parallel(plan);
    assert_string_equal(roost_plan_mode_word(roost_plan_mode(plan)), "collocated");
    assert_int_equal(sizes->actor_world_size, 4);
    assert_int_equal(sizes->actor_tp_size, 4);
    assert_int_equal(sizes->actor_dp_size, 1);
    assert_int_equal(sizes->rollout_world_size, 4);
    assert_int_equal(sizes->rollout_dp_size, 2);
    assert_false(sizes->has_dedicated_inference);
    assert_int_equal(roost_plan_find(plan, "actor")->strategy, ROOST_STRATEGY_PACKED);
    assert_int_equal(roost_plan_find(plan, "actor")->world_size, 4);
    roost_plan_free(plan);
}

#define LOGPROBS "algorithm: {recompute_logprobs: true}\n"

TEST(disaggregated_components_have_accelerators_of_their_own)
{
    static const char apart[] =
        CONFIG(1, "actor: 0-1, rollout: 2-5, inference: 6-7, reward: 2-5") LOGPROBS SIZES(1, 2);
    struct roost_error err;
    check_model("1x8", apart, "0 node0:2,3\n1 node0:4,5\n");
    struct roost_plan *plan = plan_of("1x8", apart, ROOST_MODE_MODEL_PARALLEL, &err);
    assert_int_equal(roost_plan_mode(plan), ROOST_PLAN_DISAGGREGATED);
    assert_true(roost_plan_model_parallel(plan)->has_dedicated_inference);
    roost_plan_free(plan);
    check_model("1x8", CONFIG(1, "actor: 0-3, rollout: 2-5, reward: 0"), "neither collocated");
    check_model("1x8", CONFIG(1, "actor: 0-1, rollout: 2-5, inference: 6-7, reward: 0"),
                "recompute_logprobs");
    check_model("1x8",
                CONFIG(1, "actor: 0-1, rollout: 2-5, inference: 6-7, reward: 0") LOGPROBS
                "inference: {model: {tensor_model_parallel_size: 4}}\n",
                "Inference TP size");
    check_model("1x8", CONFIG(1, "actor: 0-1, rollout: 2-7, reward: 0") SIZES(1, 4),
                "not a multiple");
    check_model("1x8", CONFIG(1, "actor: 0-1, rollout: 2-5, critic: 1, reward: 0"),
                "share some accelerators");
}

TEST(roles_that_are_missing_or_scattered_are_refused)
{
    check_model("1x8", CONFIG(1, "rollout: 0, reward: 0"), "Actor GPUs");
    check_model("1x8", CONFIG(1, "actor: 0, reward: 0"), "Rollout GPUs");
    check_model("1x8", CONFIG(1, "actor: 0, rollout: 0"), "Reward GPUs");
    check_model("1x8", CONFIG(1, "actor: \"0,2\", rollout: 4-7, reward: 0"), "rank: ");
    check_model("1x8", CONFIG(1, "actor: 0-3, rollout: 4-7, reward: \"0,2\""), "rank: ");
    check_model("1x4", TOGETHER(1, "0-3") SIZES(8, 1), "tensor parallel size of 'actor' is 8");
}

TEST(auto_gives_the_actor_the_whole_cluster)
{
    static const char head[] =
        "cluster: {num_nodes: 1, auto_scheduler: true, component_placement: {actor: 0-3, rollout: "
        "4-7, inference: 8-9, reward: 0}}\n" LOGPROBS SIZES(1, 2);
    static const char both[] =
        "cluster: {num_nodes: 1, auto_scheduler: true, use_pre_process_policy: true, "
        "component_placement: {actor: 0-3, rollout: 4-7, inference: 8-9, reward: 0}}\n" LOGPROBS
            SIZES(1, 2);
    struct roost_error err;
    check_model("1x10", head, "0 node0:4,5\n1 node0:6,7\n");
    check_model("1x10", both, "0 node0:0,1\n1 node0:2,3\n2 node0:4,5\n3 node0:6,7\n");
    check_model("1x12", head, "the last of them must end at the cluster's last accelerator");
    struct roost_plan *plan = plan_of("1x10", head, ROOST_MODE_MODEL_PARALLEL, &err);
    assert_int_equal(roost_plan_mode(plan), ROOST_PLAN_AUTO);
    assert_int_equal(roost_plan_find(plan, "actor")->world_size, 10);
    roost_plan_free(plan);
}

TEST(model_parallel_honours_node_groups_and_written_processes)
{
    static const char apart[] =
        "cluster: {num_nodes: 2, node_groups: [{label: a, node_ranks: 0}, {label: b, node_ranks: "
        "1}],"
        " component_placement: {actor: {node_group: a, placement: 0-3}, rollout: {node_group: b, "
        "placement: 0-3}, reward: {node_group: a, placement: 0}}}\n";
    struct roost_error err;
    struct roost_plan *plan = plan_of("2x4", apart, ROOST_MODE_MODEL_PARALLEL, &err);
    assert_non_null(plan);
    assert_int_equal(roost_plan_mode(plan), ROOST_PLAN_DISAGGREGATED);
    roost_plan_free(plan);
    check_model("2x4", apart, "0 node1:0\n1 node1:1\n2 node1:2\n3 node1:3\n");
    check_plan("1x8", CONFIG(1, "actor: \"0-7:0-3\", rollout: all, reward: 0"), "actor",
               ROOST_MODE_MODEL_PARALLEL, "0 node0:0,1\n1 node0:2,3\n2 node0:4,5\n3 node0:6,7\n");
}

TEST(model_parallel_needs_a_config_that_was_read_for_it)
{
    static const char yaml[] = TOGETHER(1, "0-3");
    struct roost_config_options reading = {.path = "x", .text = yaml, .text_len = sizeof yaml - 1};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    struct roost_cluster_options options = {.text = "1x4", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
    struct roost_plan_options wanted = {.mode = ROOST_MODE_MODEL_PARALLEL};
    assert_null(roost_plan_new(config, cluster, &wanted, NULL, &err));
    assert_int_equal(err.code, ROOST_ERR_USAGE);
    roost_cluster_free(cluster);
    roost_config_free(config);
}

/* --- rendering --- */

/* Refuses from call number `left` on. */
static bool refuse_at(void *ctx, const char *bytes, size_t len)
{
    int *left = ctx;
    (void)bytes;
    (void)len;
    return (*left)-- > 0;
}

TEST(a_refused_write_is_an_io_failure_of_every_rendering)
{
    struct roost_cluster *cluster = cluster_of("1000x8", NULL);
    struct roost_packed packed = {0, 7999, 1, 1};
    struct roost_plan *plan = roost_plan_new_packed(cluster, NULL, &packed, NULL);
    struct roost_report *report = roost_report_new();
    for (int calls = 0; calls < 3; calls++) {
        int left = calls;
        assert_int_equal(roost_render_plan_json(plan, cluster, NULL, refuse_at, &left),
                         ROOST_ERR_IO);
        assert_int_equal(left, -1); /* and nobody asked again */
    }
    int left = 0;
    assert_int_equal(roost_render_plan_text(plan, cluster, NULL, NULL, refuse_at, &left),
                     ROOST_ERR_IO);
    left = 0;
    assert_int_equal(roost_render_report_json(report, refuse_at, &left), ROOST_ERR_IO);
    roost_report_free(report);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
}

RUN_TESTS(cmocka_unit_test(a_text_fills_a_node_before_opening_the_next),
          cmocka_unit_test(texts_map_resources_to_processes),
          cmocka_unit_test(processes_spread_over_nodes_evenly_or_with_one_more_on_the_first),
          cmocka_unit_test(groups_that_count_different_things_count_nodes_together),
          cmocka_unit_test(a_component_named_in_a_list_of_groups_uses_all_of_them),
          cmocka_unit_test(a_plan_is_read_after_config_and_cluster_are_gone),
          cmocka_unit_test(sharing_accelerators_is_asked_of_the_whole_plan),
          cmocka_unit_test(faults_of_all_components_are_reported_at_once),
          cmocka_unit_test(advice_names_idle_accelerators_and_unreached_environments),
          cmocka_unit_test(fewer_nodes_than_wanted_do_not_fit_and_more_are_left_out),
          cmocka_unit_test(collocated_rollout_strides_over_the_actors_tensor_groups),
          cmocka_unit_test(a_collocated_plan_knows_its_sizes),
          cmocka_unit_test(disaggregated_components_have_accelerators_of_their_own),
          cmocka_unit_test(roles_that_are_missing_or_scattered_are_refused),
          cmocka_unit_test(auto_gives_the_actor_the_whole_cluster),
          cmocka_unit_test(model_parallel_honours_node_groups_and_written_processes),
          cmocka_unit_test(model_parallel_needs_a_config_that_was_read_for_it),
          cmocka_unit_test(a_refused_write_is_an_io_failure_of_every_rendering))
