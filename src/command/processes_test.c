/* processes_test.c - what an engine outside the library gives its processes: the same as commands.h. */
#include <roost/engine/process.h>

#include "base/text.h"
#include "tests/plan_unit.h"

struct made {
    struct roost_config *config;
    struct roost_cluster *cluster;
    struct roost_plan *plan;
    struct roost_processes *processes;
};

static const char *const caller[] = {"PATH=/a", "HOME=/root", "RANK=77", NULL};

static struct made make(const char *yaml, const char *component, const char *name)
{
    static const char *const extra[] = {"CATCH_SYSTEM_FAILURE=1", NULL};
    struct made it = {0};
    struct roost_error err;
    struct roost_config_options reading = {
        .path = "train.yaml", .text = yaml, .text_len = strlen(yaml)};
    it.config = roost_config_load(&reading, NULL, &err);
    assert_non_null(it.config);
    it.cluster = roost_cluster_new(
        &(struct roost_cluster_options){.text = "2x4", .config = it.config}, NULL, &err);
    assert_non_null(it.cluster);
    it.plan = roost_plan_new(it.config, it.cluster, NULL, NULL, &err);
    assert_non_null(it.plan);
    struct roost_processes_options options = {
        .config = it.config,
        .cluster = it.cluster,
        .component = roost_plan_find(it.plan, component),
        .name = name,
        .env = caller,
        .extra_env = extra,
    };
    it.processes = roost_processes_new(&options, NULL, &err);
    assert_non_null(it.processes);
    return it;
}

static void release(struct made *it)
{
    roost_processes_free(it->processes);
    roost_plan_free(it->plan);
    roost_cluster_free(it->cluster);
    roost_config_free(it->config);
}

static const char *find(const struct roost_process *process, const char *name)
{
    size_t len = strlen(name);
    for (int32_t i = 0; i < process->own_count; i++)
        if (strncmp(process->env[i], name, len) == 0 && process->env[i][len] == '=')
            return process->env[i] + len + 1;
    return "-";
}

static const char yaml[] = "cluster:\n"
                           "  num_nodes: 2\n"
                           "  component_placement: {actor: {node_group: far, placement: 0-1}}\n"
                           "  node_groups:\n"
                           "    - label: far\n"
                           "      node_ranks: 1\n"
                           "      env_configs:\n"
                           "        - node_ranks: 1\n"
                           "          env_vars: [{PATH: /far}]\n"
                           "          python_interpreter_path: /far/python\n";

TEST(processes_have_the_plans_variables_under_the_name_they_are_given)
{
    struct made it = make(yaml, "actor", "trainer");
    struct roost_process_want want;
    struct roost_process process;
    struct roost_error err;
    assert_int_equal(roost_processes_want_count(it.processes), 1);
    assert_true(roost_processes_want(it.processes, 0, &want));
    assert_null(want.name);
    assert_int_equal(want.rank, 0);
    assert_int_equal(want.node_rank, 1);
    assert_int_equal(want.count, 1);
    assert_false(roost_processes_want(it.processes, 1, &want));
    assert_false(roost_processes_get(it.processes, 0, &process));

    static const int32_t ports[] = {23456};
    struct roost_process_values values = {"run", "space", "10.0.0.2", ports};
    assert_int_equal(roost_processes_fill(it.processes, &values, &err), ROOST_OK);
    assert_true(roost_processes_get(it.processes, 1, &process));
    assert_string_equal(find(&process, "WORKER_NAME"), "trainer:1");
    assert_string_equal(find(&process, "RANK"), "1");
    assert_string_equal(find(&process, "CUDA_VISIBLE_DEVICES"), "1");
    assert_string_equal(find(&process, "MASTER_ADDR"), "10.0.0.2");
    assert_string_equal(find(&process, "MASTER_PORT"), "23456");
    assert_string_equal(find(&process, "ROOST_RUN_ID"), "run");
    assert_string_equal(find(&process, "ROOST_NAMESPACE"), "space");
    assert_string_equal(find(&process, "CATCH_SYSTEM_FAILURE"), "1");
    assert_string_equal(find(&process, "PATH"), "/far:/a");
    assert_string_equal(find(&process, "HOME"), "-"); /* inherited, and nobody's own */
    assert_string_equal(process.interpreter, "/far/python");
    assert_null(process.argv);
    assert_false(roost_processes_get(it.processes, 2, &process));
    assert_false(roost_processes_get(it.processes, -1, &process));
    release(&it);
}

TEST(processes_without_a_config_are_those_of_a_strategy)
{
    struct roost_error err;
    struct roost_cluster *cluster =
        roost_cluster_new(&(struct roost_cluster_options){.text = "1x2"}, NULL, &err);
    struct roost_packed packed = {0, 1, 1, 1};
    struct roost_plan *plan = roost_plan_new_packed(cluster, NULL, &packed, &err);
    assert_non_null(plan);
    struct roost_processes_options options = {
        .cluster = cluster, .component = roost_plan_component(plan, 0), .name = "workers"};
    struct roost_processes *processes = roost_processes_new(&options, NULL, &err);
    assert_non_null(processes);
    struct roost_process_values values = {"run", "space", "127.0.0.1", (const int32_t[]){1}};
    struct roost_process process;
    assert_int_equal(roost_processes_fill(processes, &values, &err), ROOST_OK);
    assert_true(roost_processes_get(processes, 0, &process));
    assert_string_equal(find(&process, "GROUP_NAME"), "workers");
    assert_null(process.interpreter);
    assert_null(process.cwd);
    roost_processes_free(processes);
    roost_processes_free(NULL);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
}

RUN_TESTS(cmocka_unit_test(processes_have_the_plans_variables_under_the_name_they_are_given),
          cmocka_unit_test(processes_without_a_config_are_those_of_a_strategy))
