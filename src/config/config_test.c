/* config_test.c - loading: the file or text it comes from, its size, what it read and refused. */
#include "config/config.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/unit.h"

#define GOOD "cluster: {num_nodes: 1, component_placement: {actor: 0}}\n"

static struct roost_config *load(const char *yaml, struct roost_report *report,
                                 struct roost_error *err)
{
    struct roost_config_options options = {
        .path = "c.yaml", .text = yaml, .text_len = strlen(yaml)};
    return roost_config_load(&options, report, err);
}

TEST(a_config_says_its_nodes_components_and_cluster)
{
    struct roost_error err;
    struct roost_config *config =
        load("cluster: {num_nodes: 007, component_placement: {\"a, b\": 0, 4090: 1}}\n"
             "roost: {cluster: 2x8}\nanything: [else]\n",
             NULL, &err);
    assert_non_null(config);
    assert_int_equal(roost_config_num_nodes(config), 7);
    assert_string_equal(roost_config_cluster(config), "2x8");
    assert_int_equal(roost_config_component_count(config), 3);
    assert_string_equal(roost_config_component(config, 0), "a");
    assert_string_equal(roost_config_component(config, 1), "b");
    assert_string_equal(roost_config_component(config, 2), "4090");
    assert_null(roost_config_component(config, 3));
    assert_int_equal(roost_config_env_count(config), 0);
    assert_null(roost_config_env(config, 0));
    roost_config_free(config);
    roost_config_free(NULL);
}

TEST(a_text_is_copied_and_may_change_afterwards)
{
    char yaml[] = GOOD;
    struct roost_config_options options = {.path = "x", .text = yaml, .text_len = strlen(yaml)};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&options, NULL, &err);
    memset(yaml, '#', sizeof yaml);
    assert_string_equal(roost_config_component(config, 0), "actor");
    assert_null(roost_config_cluster(config));
    roost_config_free(config);
}

TEST(variables_that_were_read_are_known_by_name)
{
    static const char yaml[] = "cluster: {num_nodes: \"${oc.env:N}\", component_placement: {a: "
                               "\"${oc.env:P,0-1}\"}}\n";
    static const char *const env[] = {"N=3", "OTHER=1", NULL};
    struct roost_config_options options = {
        .path = "x", .text = yaml, .text_len = sizeof yaml - 1, .env = env};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&options, NULL, &err);
    assert_non_null(config);
    assert_int_equal(roost_config_num_nodes(config), 3);
    assert_int_equal(roost_config_env_count(config), 2);
    assert_string_equal(roost_config_env(config, 0), "N");
    assert_string_equal(roost_config_env(config, 1), "P");
    roost_config_free(config);
    options.env = NULL;
    assert_null(roost_config_load(&options, NULL, &err));
    CHECK_SAYS("env", err.message, "environment variable 'N' is not set");
}

TEST(overrides_are_part_of_the_config)
{
    static const char *const overrides[] = {"cluster.num_nodes=5",
                                            "+cluster.component_placement.env=0-3"};
    struct roost_config_options options = {.path = "x",
                                           .text = GOOD,
                                           .text_len = sizeof GOOD - 1,
                                           .overrides = overrides,
                                           .override_count = 2};
    struct roost_error err;
    struct roost_config *config = roost_config_load(&options, NULL, &err);
    assert_int_equal(roost_config_num_nodes(config), 5);
    assert_string_equal(roost_config_component(config, 1), "env");
    roost_config_free(config);
}

/* A good config of exactly `size` bytes, the rest a comment. */
static void fill(struct text *out, size_t size)
{
    text_puts(out, GOOD "#");
    while (out->len < size)
        text_append(out, "xxxxxxxxxxxxxxxx", size - out->len < 16 ? size - out->len : 16);
}

static bool loads_size(size_t size, bool is_file)
{
    struct text yaml = TEXT_INIT;
    struct roost_error err;
    char path[64] = "x";
    int fd = -1;
    fill(&yaml, size);
    struct roost_config_options options = {.path = path, .text = yaml.bytes, .text_len = yaml.len};
    if (is_file) {
        fd = memfd_create("config", MFD_CLOEXEC);
        assert_int_equal(write(fd, yaml.bytes, yaml.len), yaml.len);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        options.text = NULL;
    }
    struct roost_config *config = roost_config_load(&options, NULL, &err);
    bool is_good = config != NULL;
    if (!is_good) {
        assert_int_equal(err.code, ROOST_ERR_LIMIT);
        CHECK_SAYS("size", err.message, "is larger than 1048576 bytes");
    }
    roost_config_free(config);
    text_release(&yaml);
    if (is_file)
        close(fd);
    return is_good;
}

TEST(a_mebibyte_is_read_and_one_byte_more_is_not)
{
    for (int is_file = 0; is_file < 2; is_file++) {
        assert_true(loads_size((1 << 20) - 1, is_file));
        assert_true(loads_size(1 << 20, is_file));
        assert_false(loads_size((1 << 20) + 1, is_file));
    }
}

TEST(a_pipe_is_read_to_its_end)
{
    int ends[2];
    char path[64];
    struct roost_error err;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], GOOD, sizeof GOOD - 1), sizeof GOOD - 1);
    close(ends[1]);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    struct roost_config_options options = {.path = path};
    struct roost_config *config = roost_config_load(&options, NULL, &err);
    assert_non_null(config);
    roost_config_free(config);
    close(ends[0]);
}

TEST(a_file_that_cannot_be_read_is_said_with_the_reason)
{
    static const char *const paths[][2] = {{"/nowhere/at/all.yaml", "cannot open"},
                                           {"/", "cannot read"}};
    for (size_t i = 0; i < ROWS(paths); i++) {
        struct roost_config_options options = {.path = paths[i][0]};
        struct roost_error err;
        CHECK_FACT(paths[i][0], roost_config_load(&options, NULL, &err) == NULL);
        CHECK_FACT(paths[i][0], err.code == ROOST_ERR_IO && err.line == 0);
        CHECK_SAYS(paths[i][0], err.message, paths[i][1]);
        CHECK_TEXT(paths[i][0], err.file, paths[i][0]);
    }
}

TEST(what_is_wrong_with_a_section_is_said_with_its_code)
{
    static const struct {
        const char *yaml;
        enum roost_code code;
        const char *phrase;
    } rows[] = {
        {"[]", ROOST_ERR_SCHEMA, "a config is a mapping"},
        {"a: 1", ROOST_ERR_SCHEMA, "Missing fields '['cluster']'"},
        {"cluster: 1", ROOST_ERR_SCHEMA, "must be a mapping"},
        {"cluster: {component_placement: {a: 0}}", ROOST_ERR_SCHEMA,
         "Missing fields '['num_nodes']'"},
        {"cluster: {num_nodes: 1}", ROOST_ERR_SCHEMA, "Missing fields '['component_placement']'"},
        {"cluster: {num_nodes: 0, component_placement: {a: 0}}", ROOST_ERR_SCHEMA,
         "'num_nodes' must be a positive integer"},
        {"cluster: {num_nodes: -1, component_placement: {a: 0}}", ROOST_ERR_SCHEMA,
         "'num_nodes' must be a positive integer"},
        {"cluster: {num_nodes: \"???\", component_placement: {a: 0}}", ROOST_ERR_REFERENCE,
         "still to be set"},
        {"cluster: {num_nodes: 1, component_placement: {'a,': 0}}", ROOST_ERR_NAME,
         "empty component name"},
        {"cluster: {num_nodes: 1, component_placement: {'a,a': 0}}", ROOST_ERR_NAME,
         "multiple placements"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0}, node_group: 1}", ROOST_ERR_SCHEMA,
         "Unknown fields '{'node_group'}'"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0}, node_groups: [{label: node, "
         "node_ranks: 0}]}",
         ROOST_ERR_NAME, "reserved"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0}, node_groups: [{label: g, "
         "node_ranks: "
         "0}, {label: g, node_ranks: 0}]}",
         ROOST_ERR_NAME, "labels must be unique"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0}, node_groups: [{label: g, "
         "node_ranks: "
         "''}]}",
         ROOST_ERR_RANK, "must not be empty"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0}, node_groups: [{label: g, "
         "node_ranks: "
         "1}]}",
         ROOST_ERR_FIT, "Error parsing node_ranks"},
        {GOOD "roost: {launch: {actor: {command: ./train}}}", ROOST_ERR_SCHEMA,
         "'command' must be a list"},
        {GOOD "roost: {launch: {actor: {env: {RANK: 1}}}}", ROOST_ERR_NAME, "is set by roost"},
        {GOOD "roost: {launch: {actr: {}}}", ROOST_ERR_REFERENCE, "is not placed"},
        {GOOD "roost: {lunch: {}}", ROOST_ERR_SCHEMA, "Unknown fields '{'lunch'}'"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        CHECK_FACT(rows[i].yaml, load(rows[i].yaml, NULL, &err) == NULL);
        CHECK_SAYS(rows[i].yaml, err.message, rows[i].phrase);
        CHECK_FACT(rows[i].yaml, err.code == rows[i].code);
        CHECK_FACT(rows[i].yaml, err.line > 0);
        CHECK_TEXT(rows[i].yaml, err.file, "c.yaml");
    }
}

TEST(env_configs_claim_each_node_once)
{
    static const struct {
        const char *ranks[2];
        const char *phrase; /* NULL = fine */
    } rows[] = {
        {{"0", "1"}, NULL},
        {{"0-1", "2-3"}, NULL},
        {{"0", "0"}, "two env_configs"},
        {{"0-2", "2-3"}, "two env_configs"},
        {{"all", "3"}, "two env_configs"},
        {{"all", "all"}, "two env_configs"},
        {{"0", "4"}, "node 4 is not in node group"},
        {{"0", "5-6"}, "is not in node group"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text yaml = TEXT_INIT;
        struct roost_error err;
        text_printf(&yaml,
                    "cluster: {num_nodes: 8, component_placement: {a: 0}, node_groups: [{label: g, "
                    "node_ranks: 0-3, env_configs: [{node_ranks: %s, env_vars: [{A: x}]}, "
                    "{node_ranks: %s, env_vars: [{A: y}]}]}]}",
                    rows[i].ranks[0], rows[i].ranks[1]);
        struct roost_config *config = load(text_string(&yaml), NULL, &err);
        CHECK_FACT(yaml.bytes, (config != NULL) == (rows[i].phrase == NULL));
        if (!config)
            CHECK_SAYS(yaml.bytes, err.message, rows[i].phrase);
        roost_config_free(config);
        text_release(&yaml);
    }
}

TEST(a_lenient_load_gives_what_could_be_read)
{
    static const char yaml[] = "cluster: {num_nodes: x, component_placement: {a: 0, b: [1]}}\n";
    struct roost_config_options options = {.path = "x", .text = yaml, .text_len = sizeof yaml - 1};
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct roost_config *config = roost_config_load_lenient(&options, report, &err);
    assert_non_null(config);
    assert_int_equal(roost_report_errors(report), 2);
    assert_int_equal(roost_config_num_nodes(config), 0);
    assert_int_equal(roost_config_component_count(config), 2);
    roost_config_free(config);
    options.text = "a: [";
    options.text_len = 4;
    assert_null(roost_config_load_lenient(&options, report, &err));
    roost_report_free(report);
}

RUN_TESTS(cmocka_unit_test(a_config_says_its_nodes_components_and_cluster),
          cmocka_unit_test(a_text_is_copied_and_may_change_afterwards),
          cmocka_unit_test(variables_that_were_read_are_known_by_name),
          cmocka_unit_test(overrides_are_part_of_the_config),
          cmocka_unit_test(a_mebibyte_is_read_and_one_byte_more_is_not),
          cmocka_unit_test(a_pipe_is_read_to_its_end),
          cmocka_unit_test(a_file_that_cannot_be_read_is_said_with_the_reason),
          cmocka_unit_test(what_is_wrong_with_a_section_is_said_with_its_code),
          cmocka_unit_test(env_configs_claim_each_node_once),
          cmocka_unit_test(a_lenient_load_gives_what_could_be_read))
