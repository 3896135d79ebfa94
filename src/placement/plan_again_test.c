/* plan_again_test.c - what a plan asks of its cluster, and components that are placed once more from
 * the numbers they were placed with. */
#include <stdlib.h>

#include "tests/plan_unit.h"

static struct roost_config *config_of(const char *yaml, bool reads_model)
{
    struct roost_error err;
    struct roost_config_options reading = {
        .path = "c", .text = yaml, .text_len = strlen(yaml), .reads_model = reads_model};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    if (!config)
        fail_msg("'%s': %s", yaml, err.message);
    return config;
}

static struct roost_plan *place_again(const struct roost_component *it,
                                      const struct roost_cluster *cluster, int32_t *ranks,
                                      struct roost_error *err)
{
    const struct roost_scope scope = {.labels = it->node_groups,
                                      .label_count = (size_t)it->node_group_count,
                                      .shares_accelerators = !it->isolate_accelerator};
    assert_true(roost_component_ranks(it, cluster, ranks));
    switch (it->strategy) {
    case ROOST_STRATEGY_PACKED: return roost_plan_new_packed(cluster, &scope, &it->packed, err);
    case ROOST_STRATEGY_FLEXIBLE:
        return roost_plan_new_flexible(cluster, &scope, it->first_hardware, ranks, it->world_size,
                                       err);
    case ROOST_STRATEGY_NODE:
        return roost_plan_new_node(cluster, &scope, ranks, it->world_size, err);
    }
    return NULL;
}

static void check_again(const struct roost_component *it, const struct roost_cluster *cluster)
{
    struct roost_error err;
    struct text before = TEXT_INIT, after = TEXT_INIT;
    int32_t held = it->first_hardware[it->world_size];
    size_t room = (size_t)(held > it->world_size ? held : it->world_size);
    int32_t *ranks = calloc(room, sizeof *ranks);
    struct roost_plan *again = place_again(it, cluster, ranks, &err);
    if (!again)
        fail_msg("'%s': %s", it->name, err.message);
    const struct roost_component *other = roost_plan_component(again, 0);
    put_full(&before, it);
    put_full(&after, other);
    CHECK_TEXT(it->name, text_string(&after), text_string(&before));
    assert_int_equal(other->strategy, it->strategy);
    assert_int_equal(other->hardware_ranges[0].first, it->hardware_ranges[0].first);
    text_release(&before);
    text_release(&after);
    roost_plan_free(again);
    free(ranks);
}

static void check_all_again(const char *spec, const char *yaml, enum roost_mode mode)
{
    struct roost_error err;
    struct roost_config *config = config_of(yaml, mode == ROOST_MODE_MODEL_PARALLEL);
    struct roost_cluster *cluster = roost_cluster_new(
        &(struct roost_cluster_options){.text = spec, .config = config}, NULL, &err);
    struct roost_plan *plan =
        roost_plan_new(config, cluster, &(struct roost_plan_options){.mode = mode}, NULL, &err);
    if (!plan)
        fail_msg("'%s': %s", yaml, err.message);
    for (size_t c = 0; c < roost_plan_component_count(plan); c++)
        check_again(roost_plan_component(plan, c), cluster);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
}

TEST(a_component_is_placed_again_from_its_ranks)
{
    check_all_again("2x4,1x0",
                    "cluster: {num_nodes: 3, node_groups: [{label: a, node_ranks: 0}, "
                    "{label: b, node_ranks: 1}, {label: c, node_ranks: 2}, "
                    "{label: again, node_ranks: 0}], component_placement: {"
                    "actor: 2-5, shared: \"0-3:0-7\", wide: \"0-7:0-3\", "
                    "turned: {node_group: \"b,a\", placement: \"3-4\"}, "
                    "nodes: {node_group: node, placement: \"0-1:0-4,2:5\"}, "
                    "late: {node_group: b, placement: 1-2}, "
                    "boundary: {node_group: \"a,again\", placement: \"2-5:0\"}, "
                    "mixed: {node_group: \"c,a\", placement: \"0-1:0-2\"}}}",
                    ROOST_MODE_HYBRID);
    check_all_again(
        "2x8",
        "cluster: {num_nodes: 2, component_placement: {\"actor,rollout,reward\": all}}\n"
        "actor: {model: {tensor_model_parallel_size: 8}}\n"
        "rollout: {tensor_parallel_size: 4}\n",
        ROOST_MODE_MODEL_PARALLEL);
}

TEST(ranks_are_those_of_the_cluster_a_component_was_planned_on)
{
    struct roost_cluster *two = cluster_of("2x4", "[{label: a, node_ranks: 1}]");
    struct roost_cluster *one = cluster_of("1x4", NULL);
    static const char *const label = "a";
    const struct roost_scope scope = {.labels = &label, .label_count = 1};
    const struct roost_packed packed = {0, 3, 2, 2};
    struct roost_plan *plan = roost_plan_new_packed(two, &scope, &packed, NULL);
    int32_t ranks[4];
    assert_true(roost_component_ranks(roost_plan_component(plan, 0), two, ranks));
    static const int32_t expected[] = {0, 2, 1, 3};
    assert_memory_equal(ranks, expected, sizeof ranks);
    assert_false(roost_component_ranks(roost_plan_component(plan, 0), one, ranks));
    roost_plan_free(plan);
    roost_cluster_free(two);
    roost_cluster_free(one);
}

/* What is reported of a config on a cluster that was made without it. */
static void check_refused(const char *yaml, const char *spec, const char *message, const char *hint)
{
    struct roost_error err;
    struct roost_config *config = config_of(yaml, false);
    struct roost_cluster *cluster = cluster_of(spec, NULL);
    assert_null(roost_plan_new(config, cluster, NULL, NULL, &err));
    CHECK_TEXT(yaml, err.message, message);
    CHECK_TEXT(yaml, err.hint, hint);
    roost_cluster_free(cluster);
    roost_config_free(config);
}

TEST(config_and_cluster_of_a_plan_belong_together)
{
    check_refused("cluster: {num_nodes: 2, component_placement: {a: 0}}", "3x8",
                  "num_nodes is 2, but the cluster to place on has 3",
                  "set num_nodes to 3, or make the cluster with this config");
    check_refused("cluster: {num_nodes: 1, node_groups: [{label: gpu, node_ranks: 0}], "
                  "component_placement: {a: {node_group: gpu, placement: 0}}}",
                  "1x8",
                  "the config declares node group 'gpu', but there is no node group 'gpu' in the "
                  "cluster",
                  "make the cluster with this config: pass it to Cluster as cluster_cfg");
}

TEST(the_actors_inference_has_two_names_beside_the_critics)
{
    static const char yaml[] =
        "cluster: {num_nodes: 1, component_placement: {actor: 0-1, rollout: 2-3, inference: 4-5, "
        "critic: 6, critic_inference: 7, reward: 0-1}}\nalgorithm: {recompute_logprobs: true}\n";
    struct roost_error err;
    struct roost_plan *plan = plan_of("1x8", yaml, ROOST_MODE_MODEL_PARALLEL, &err);
    assert_non_null(plan);
    assert_ptr_equal(roost_plan_find(plan, "actor_inference"), roost_plan_find(plan, "inference"));
    assert_non_null(roost_plan_find(plan, "inference"));
    roost_plan_free(plan);
    plan = plan_of("1x8", yaml, ROOST_MODE_HYBRID, &err);
    assert_null(roost_plan_find(plan, "actor_inference"));
    roost_plan_free(plan);
}

RUN_TESTS(cmocka_unit_test(a_component_is_placed_again_from_its_ranks),
          cmocka_unit_test(ranks_are_those_of_the_cluster_a_component_was_planned_on),
          cmocka_unit_test(config_and_cluster_of_a_plan_belong_together),
          cmocka_unit_test(the_actors_inference_has_two_names_beside_the_critics))
