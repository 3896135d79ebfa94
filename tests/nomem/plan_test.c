/* plan_test.c - strategies, and what a program describes, without memory. */
#include <roost/engine/cluster.h>

#include "tests/nomem/nomem.h"

/* The three strategies on one cluster, without a config. */
static struct result run_strategies(const struct scenario *unused)
{
    static const int32_t first[] = {0, 2, 3}, ranks[] = {5, 4, 0}, nodes[] = {1, 0, 1};
    static const char *const labels[] = {"cluster"};
    const struct roost_scope scope = {.labels = labels, .label_count = 1};
    const struct roost_packed packed = {0, 7, 2, 2};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_cluster_options wanted = {.text = "2x4"};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, NULL, &err);
    if (!cluster)
        return (struct result){.code = err.code};
    for (int i = 0; i < 4; i++) {
        struct roost_plan *plan =
            i == 0   ? roost_plan_new_packed(cluster, &scope, &packed, &err)
            : i == 1 ? roost_plan_new_flexible(cluster, NULL, first, ranks, 2, &err)
            : i == 2 ? roost_plan_new_node(cluster, &scope, nodes, 3, &err)
                     : roost_plan_new_node(cluster, NULL, nodes, 0, &err);
        if (i < 3)
            result.code = first_of(result.code, err.code);
        if (plan)
            result.code = first_of(result.code, render_plan(plan, cluster, &result.plan));
        roost_plan_free(plan);
    }
    roost_cluster_free(cluster);
    return result;
}

/* A cluster from parts, strategies placed again from a plan's numbers, and the checks. */
static struct result run_parts(const struct scenario *unused)
{
    static const char *const arms[] = {"Franka", "Franka"};
    static const struct roost_node_description nodes[] = {{ROOST_ACCELERATOR_NVIDIA, 4, NULL, 0, 0},
                                                          {ROOST_ACCELERATOR_AMD, 2, arms, 2, 0}};
    static const int32_t both[] = {0, 1};
    static const struct roost_node_group_description parts[] = {
        {"both", NULL, both, 2, true},
        {"arms", "Franka", both + 1, 1, false},
        {"node", NULL, both, 2, false}};
    static const char *const labels[] = {"both"};
    const struct roost_scope scope = {.labels = labels, .label_count = 1};
    const struct roost_packed packed = {0, 3, 2, 1};
    int32_t first[] = {0, 2, 4}, ranks[4], node_rank, local_rank;
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_cluster *cluster = roost_cluster_new_described(
        &(struct roost_cluster_description){nodes, 2, parts, ROWS(parts)}, &err);
    if (!cluster)
        return (struct result){.code = err.code};
    result.code = first_of(roost_packed_check(&packed, &err), roost_node_check(both, 2, &err));
    struct roost_plan *plan = roost_plan_new_packed(cluster, &scope, &packed, &err);
    result.code = first_of(result.code, err.code);
    if (plan && roost_component_ranks(roost_plan_component(plan, 0), cluster, ranks) &&
        roost_cluster_locate(cluster, 0, ranks[3], &node_rank, &local_rank)) {
        result.code = first_of(result.code, roost_flexible_check(first, ranks, 2, &err));
        struct roost_plan *again = roost_plan_new_flexible(cluster, &scope, first, ranks, 2, &err);
        result.code = first_of(result.code, err.code);
        if (again)
            result.code = first_of(result.code, render_plan(again, cluster, &result.plan));
        roost_plan_free(again);
    }
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    return result;
}

/* A program's text with keys for its lines; a name twice makes an error that says one. */
static struct result run_keyed(const struct scenario *unused)
{
    static const char text[] =
        "{cluster: {num_nodes: 1,\ncomponent_placement: {a: 0,\n\"b,a\": 1}}}";
    static const char *const keys[] = {"cluster", "cluster.a", "cluster.b"};
    struct roost_config_options reading = {.path = "config",
                                           .text = text,
                                           .text_len = sizeof text - 1,
                                           .line_keys = keys,
                                           .line_key_count = ROWS(keys)};
    struct roost_error err;
    struct result result = {0};
    (void)unused;
    struct roost_report *report = roost_report_new();
    if (!report)
        return (struct result){.code = ROOST_ERR_MEMORY};
    struct roost_config *config = roost_config_load(&reading, report, &err);
    roost_config_free(config);
    result.code = err.code;
    result.code = first_of(result.code, finish_report(report, &result));
    return result;
}

/* What managers tell of a cluster and of a config with something put over it. */
static struct result run_view(const struct scenario *unused)
{
    static const char text[] = "{cluster: {num_nodes: 1, component_placement: {a: 0}}}";
    static const char *const overrides[] = {"+other.note='long enough for a buffer to grow: "
                                            "1234567890123456789012345678901234567890'"};
    struct roost_config_options reading = {.path = "config",
                                           .text = text,
                                           .text_len = sizeof text - 1,
                                           .overrides = overrides,
                                           .override_count = 1};
    struct roost_error err = {0};
    struct result result = {0};
    (void)unused;
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    if (!config)
        return (struct result){.code = err.code};
    struct roost_cluster_options wanted = {.text = "1x4", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, NULL, &err);
    result.code =
        cluster ? roost_render_cluster_view(cluster, config, hash_bytes, &result.plan) : err.code;
    roost_cluster_free(cluster);
    roost_config_free(config);
    return result;
}

TEST(any_allocation_may_fail_while_a_view_is_made)
{
    check_scenario("view", run_view, NULL);
}

TEST(any_allocation_may_fail_while_a_strategy_is_placed)
{
    check_scenario("strategies", run_strategies, NULL);
}

TEST(any_allocation_may_fail_while_a_program_describes)
{
    check_scenario("parts", run_parts, NULL);
    check_scenario("keys of lines", run_keyed, NULL);
}

RUN_TESTS(cmocka_unit_test(any_allocation_may_fail_while_a_strategy_is_placed),
          cmocka_unit_test(any_allocation_may_fail_while_a_program_describes),
          cmocka_unit_test(any_allocation_may_fail_while_a_view_is_made))
