/* config_node_groups_test.c - node groups, labels and rules of a config, as others may read them. */
#include <roost/roost.h>

#include "tests/unit.h"

static const char text[] =
    "cluster:\n"
    "  num_nodes: 4\n"
    "  component_placement:\n"
    "    actor,critic: {node_group: 'a, b', placement: all}\n"
    "    env: 61\n"
    "  node_groups:\n"
    "    - {label: a, node_ranks: '0,2', env_configs: [{node_ranks: all, env_vars: [{X: one}, {Y: "
    "2}], python_interpreter_path: /py}]}\n"
    "    - {label: b, node_ranks: 1, hardware_type: Franka}\n"
    "    - {label: c, node_ranks: all, ignore_hardware: true}\n";

static struct roost_config *load(struct roost_report *report, bool is_composed)
{
    struct roost_config_options options = {
        .path = "c", .text = text, .text_len = sizeof text - 1, .is_composed = is_composed};
    return roost_config_load(&options, report, NULL);
}

TEST(components_of_one_entry_have_one_rule)
{
    struct roost_config *config = load(NULL, false);
    assert_int_equal(roost_config_component_rule(config, 0), 0);
    assert_int_equal(roost_config_component_rule(config, 1), 0);
    assert_int_equal(roost_config_component_rule(config, 2), 1);
    assert_int_equal(roost_config_label_count(config), 2);
    assert_string_equal(roost_config_label(config, 0), "a");
    assert_string_equal(roost_config_label(config, 1), "b");
    assert_null(roost_config_label(config, 2));
    roost_config_free(config);
}

TEST(groups_are_shown_as_written)
{
    struct roost_config *config = load(NULL, false);
    struct roost_node_group_config group;
    assert_int_equal(roost_config_node_group_count(config), 3);
    assert_true(roost_config_node_group(config, 1, &group));
    assert_string_equal(group.label, "b");
    assert_memory_equal(group.hardware_type, "Franka", group.hardware_type_len);
    assert_true(roost_config_node_group(config, 2, &group));
    assert_true(group.ignores_hardware);
    assert_null(group.hardware_type);
    assert_false(roost_config_node_group(config, 3, &group));
    assert_int_equal(roost_config_node_group_node(config, 0, 1), 2);
    assert_int_equal(roost_config_node_group_node(config, 0, 3), -1);
    assert_int_equal(roost_config_node_group_node(config, 2, 3), 3);
    assert_int_equal(roost_config_node_group_node(config, 2, 4), -1);
    assert_int_equal(roost_config_node_group_node(config, 9, 0), -1);
    roost_config_free(config);
}

TEST(env_configs_are_shown_as_written)
{
    struct roost_config *config = load(NULL, false);
    struct roost_env_config env;
    struct roost_env_var var;
    assert_true(roost_config_env_config(config, 0, 0, &env));
    assert_memory_equal(env.python_interpreter_path, "/py", env.python_interpreter_path_len);
    assert_int_equal(env.var_count, 2);
    assert_true(roost_config_env_var(config, 0, 0, 1, &var));
    assert_memory_equal(var.name, "Y", var.name_len);
    assert_memory_equal(var.value, "2", var.value_len);
    assert_false(roost_config_env_var(config, 0, 0, 2, &var));
    assert_false(roost_config_env_config(config, 1, 0, &env));
    assert_int_equal(roost_config_env_node(config, 0, 0, 1), 2);
    assert_int_equal(roost_config_env_node(config, 1, 0, 0), -1);
    roost_config_free(config);
}

TEST(a_composed_number_may_have_been_in_base_60)
{
    struct roost_report *report = roost_report_new();
    roost_config_free(load(report, false));
    assert_int_equal(roost_report_warnings(report), 0);
    roost_config_free(load(report, true));
    assert_int_equal(roost_report_warnings(report), 1);
    const struct roost_diagnostic *it = roost_report_at(report, 0);
    assert_int_equal(it->warning, ROOST_WARN_READING);
    assert_non_null(strstr(it->message, "61 is what YAML readers make of 1:1"));
    roost_report_free(report);
}

RUN_TESTS(cmocka_unit_test(components_of_one_entry_have_one_rule),
          cmocka_unit_test(groups_are_shown_as_written),
          cmocka_unit_test(env_configs_are_shown_as_written),
          cmocka_unit_test(a_composed_number_may_have_been_in_base_60))
