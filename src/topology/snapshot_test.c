/* snapshot_test.c - clusters from snapshot files, and what a snapshot must not say. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/plan_unit.h"
#include "topology/cluster.h"

/* A file in memory that can be opened by its path. */
struct memory_file {
    int fd;
    char path[64];
};

static struct memory_file memory_file(struct strview content)
{
    struct memory_file file = {.fd = memfd_create("snapshot", MFD_CLOEXEC)};
    assert_true(file.fd >= 0);
    assert_int_equal(write(file.fd, content.at, content.len), content.len);
    snprintf(file.path, sizeof file.path, "/proc/self/fd/%d", file.fd);
    return file;
}

static struct roost_cluster *read_snapshot(const char *content, struct roost_error *err)
{
    struct memory_file file = memory_file(sv_from(content));
    struct roost_cluster_options options = {.text = file.path};
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, err);
    close(file.fd);
    return cluster;
}

TEST(a_snapshot_holds_everything_of_a_node)
{
    struct roost_error err;
    struct roost_cluster *cluster = read_snapshot(
        "{\"roost\": 1, \"later\": {\"x\": [1, 2]}, \"cluster\": {\"nodes\": ["
        "{\"node_rank\": 1, \"id\": \"b\", \"address\": \"10.0.0.2\", \"num_cpus\": 64,"
        " \"accelerator_type\": \"NPU\", \"accelerator_model\": \"910B\", \"num_accelerators\": 2,"
        " \"accelerators\": [{\"id\": \"0\", \"uuid\": \"u\", \"pci\": \"p\", \"numa\": 1},"
        "  {\"id\": null, \"new\": []}],"
        " \"hardware\": [{\"type\": \"Franka\", \"config\": {\"node_rank\": 1, \"l\": [true, "
        "null]}},"
        "  {\"type\": \"Turtle2\"}], \"unknown\": {\"a\": {}}},"
        "{\"node_rank\": 0, \"id\": null, \"address\": null, \"num_accelerators\": 0}],"
        " \"node_groups\": []}}\n",
        &err);
    struct roost_node node;
    assert_non_null(cluster);
    assert_int_equal(roost_cluster_node_count(cluster), 2);
    assert_true(roost_cluster_node(cluster, 0, &node));
    assert_null(node.id);
    assert_null(node.address);
    assert_int_equal(node.num_cpus, -1);
    assert_int_equal(node.accelerator, ROOST_ACCELERATOR_NONE);
    assert_true(roost_cluster_node(cluster, 1, &node));
    assert_string_equal(node.id, "b");
    assert_string_equal(node.address, "10.0.0.2");
    assert_int_equal(node.num_cpus, 64);
    assert_int_equal(node.accelerator, ROOST_ACCELERATOR_ASCEND);
    assert_string_equal(node.accelerator_model, "910B");
    assert_int_equal(node.num_accelerators, 2);
    assert_int_equal(node.num_hardware, 2);
    const struct cluster_node *inside = &cluster->nodes[1];
    assert_string_equal(inside->accelerators[0].uuid, "u");
    assert_int_equal(inside->accelerators[0].numa, 1);
    assert_null(inside->accelerators[1].id);
    assert_int_equal(inside->accelerators[1].numa, -1);
    assert_string_equal(inside->units->config, "{\"node_rank\": 1, \"l\": [true, null]}");
    assert_string_equal(inside->units->next->config, "{}");
    roost_cluster_free(cluster);
}

TEST(accelerators_may_be_counted_listed_or_both)
{
    static const struct {
        const char *node;
        int32_t count;
        enum roost_accelerator type;
    } rows[] = {
        {"\"num_accelerators\": 4", 4, ROOST_ACCELERATOR_NVIDIA},
        {"\"num_accelerators\": null, \"accelerators\": [{}, {}]", 2, ROOST_ACCELERATOR_NVIDIA},
        {"\"accelerators\": [{}]", 1, ROOST_ACCELERATOR_NVIDIA},
        {"\"accelerators\": []", 0, ROOST_ACCELERATOR_NONE},
        {"\"accelerators\": null", 0, ROOST_ACCELERATOR_NONE},
        {"\"num_accelerators\": 1, \"accelerators\": [{}]", 1, ROOST_ACCELERATOR_NVIDIA},
        {"\"accelerator_type\": \"AMD_GPU\", \"num_accelerators\": 3", 3, ROOST_ACCELERATOR_AMD},
        {"\"accelerator_type\": \"NO_ACCEL\", \"num_accelerators\": 0", 0, ROOST_ACCELERATOR_NONE},
        {"\"num_accelerators\": 1024", 1024, ROOST_ACCELERATOR_NVIDIA},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        struct roost_node node;
        struct text json = TEXT_INIT;
        text_printf(&json, "{\"cluster\": {\"nodes\": [{%s}]}}", rows[i].node);
        struct roost_cluster *cluster = read_snapshot(text_string(&json), &err);
        if (!cluster)
            fail_msg("'%s': %s", rows[i].node, err.message);
        assert_true(roost_cluster_node(cluster, 0, &node));
        CHECK_FACT(rows[i].node, node.num_accelerators == rows[i].count);
        CHECK_FACT(rows[i].node, node.accelerator == rows[i].type);
        roost_cluster_free(cluster);
        text_release(&json);
    }
}

TEST(a_wrong_snapshot_is_refused_at_its_place)
{
    static const struct {
        const char *json;
        enum roost_code code;
        int32_t column;
        const char *phrase;
    } rows[] = {
        {"", ROOST_ERR_SYNTAX, 1, ""},
        {"[]", ROOST_ERR_SCHEMA, 1, "a snapshot must be an object, not an array"},
        {"{}", ROOST_ERR_SCHEMA, 1, "a snapshot needs a 'cluster'"},
        {"{\"cluster\": 1}", ROOST_ERR_SCHEMA, 13, "cluster must be an object, not a number"},
        {"{\"cluster\": {}}", ROOST_ERR_SCHEMA, 13, "the cluster has no nodes"},
        {"{\"cluster\": {\"nodes\": []}}", ROOST_ERR_SCHEMA, 13, "the cluster has no nodes"},
        {"{\"cluster\": {\"nodes\": {}}}", ROOST_ERR_SCHEMA, 23, "nodes must be an array"},
        {"{\"cluster\": {\"nodes\": [1]}}", ROOST_ERR_SCHEMA, 24, "a node must be an object"},
        {"{\"cluster\": {\"nodes\": [{}]}} x", ROOST_ERR_SYNTAX, 30, ""},
        {"{\"cluster\": {\"nodes\": [{\"id\": 1}]}}", ROOST_ERR_SCHEMA, 31,
         "id must be a string or null"},
        {"{\"cluster\": {\"nodes\": [{\"num_cpus\": -1}]}}", ROOST_ERR_SCHEMA, 37,
         "num_cpus must be a whole number from 0"},
        {"{\"cluster\": {\"nodes\": [{\"num_accelerators\": 1025}]}}", ROOST_ERR_SCHEMA, 45,
         "num_accelerators must be a whole number from 0 to 1024"},
        {"{\"cluster\": {\"nodes\": [{\"num_accelerators\": 1.5}]}}", ROOST_ERR_SCHEMA, 45,
         "must be a whole number"},
        {"{\"cluster\": {\"nodes\": [{\"accelerator_type\": \"GPU\"}]}}", ROOST_ERR_SCHEMA, 45,
         "accelerator_type 'GPU' is not known"},
        {"{\"cluster\": {\"nodes\": [{\"accelerator_type\": null}]}}", ROOST_ERR_SCHEMA, 45,
         "accelerator_type must be a string"},
        {"{\"cluster\": {\"nodes\": [{\"num_accelerators\": 2, \"accelerators\": [{}]}]}}",
         ROOST_ERR_SCHEMA, 24, "num_accelerators is 2, but 1 accelerators are listed"},
        {"{\"cluster\": {\"nodes\": [{\"accelerator_type\": \"NO_ACCEL\", \"num_accelerators\": "
         "2}]}}",
         ROOST_ERR_SCHEMA, 24, "a node of type NO_ACCEL cannot have 2 accelerators"},
        {"{\"cluster\": {\"nodes\": [{\"accelerator_type\": \"NV_GPU\"}]}}", ROOST_ERR_SCHEMA, 24,
         "a node of type NV_GPU cannot have 0 accelerators"},
        {"{\"cluster\": {\"nodes\": [{\"accelerators\": 2}]}}", ROOST_ERR_SCHEMA, 41,
         "accelerators must be an array"},
        {"{\"cluster\": {\"nodes\": [{\"accelerators\": [2]}]}}", ROOST_ERR_SCHEMA, 42,
         "an accelerator must be an object"},
        {"{\"cluster\": {\"nodes\": [{\"hardware\": [{}]}]}}", ROOST_ERR_SCHEMA, 38,
         "a hardware entry needs a 'type'"},
        {"{\"cluster\": {\"nodes\": [{\"hardware\": [{\"config\": []}]}]}}", ROOST_ERR_SCHEMA, 49,
         "the config of a hardware entry must be an object"},
        {"{\"cluster\": {\"nodes\": [{\"node_rank\": 0}, {\"node_rank\": 0}]}}", ROOST_ERR_SCHEMA,
         0, "two nodes have node_rank 0"},
        {"{\"cluster\": {\"nodes\": [{\"node_rank\": 0}, {}]}}", ROOST_ERR_SCHEMA, 0,
         "1 of 2 nodes have a node_rank"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        CHECK_FACT(rows[i].json, read_snapshot(rows[i].json, &err) == NULL);
        CHECK_SAYS(rows[i].json, err.message, rows[i].phrase);
        CHECK_FACT(rows[i].json, err.code == rows[i].code);
        CHECK_FACT(rows[i].json, err.column == rows[i].column);
    }
}

TEST(a_snapshot_that_cannot_be_opened_is_said)
{
    struct roost_error err;
    struct roost_cluster_options options = {.text = "/nowhere/at/all.json"};
    assert_null(roost_cluster_new(&options, NULL, &err));
    assert_int_equal(err.code, ROOST_ERR_IO);
    CHECK_SAYS("missing", err.message, "cannot open cluster '/nowhere/at/all.json'");
    options.text = "/";
    assert_null(roost_cluster_new(&options, NULL, &err));
    assert_int_equal(err.code, ROOST_ERR_IO);
}

/* Keeps what is rendered. */
static bool keep(void *ctx, const char *bytes, size_t len)
{
    text_append(ctx, bytes, len);
    return true;
}

TEST(a_plan_document_is_a_snapshot_of_its_cluster)
{
    struct roost_error err;
    struct text first = TEXT_INIT, second = TEXT_INIT;
    static const int32_t nodes[] = {0, 1, 2};
    struct roost_cluster *cluster = cluster_of(
        "1x2 A800,1x0,1x4 AMD", "[{label: arms, node_ranks: 1, hardware: {type: Franka, configs: "
                                "[{node_rank: 1, robot_ip: 10.0.0.1, disable_validate: yes}]}}]");
    struct roost_plan *plan = roost_plan_new_node(cluster, NULL, nodes, 3, &err);
    assert_int_equal(roost_render_plan_json(plan, cluster, NULL, keep, &first), ROOST_OK);
    roost_plan_free(plan);
    roost_cluster_free(cluster);

    cluster = read_snapshot(text_string(&first), &err);
    assert_non_null(cluster);
    plan = roost_plan_new_node(cluster, NULL, nodes, 3, &err);
    assert_int_equal(roost_render_plan_json(plan, cluster, NULL, keep, &second), ROOST_OK);
    const char *from = strstr(text_string(&first), "\"nodes\"");
    const char *again = strstr(text_string(&second), "\"nodes\"");
    size_t len = (size_t)(strstr(from, "\"node_groups\"") - from);
    assert_memory_equal(from, again, len);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    text_release(&first);
    text_release(&second);
}

TEST(robots_of_the_config_replace_those_a_snapshot_saw)
{
    static const char yaml[] =
        "cluster: {num_nodes: 1, component_placement: {a: {node_group: g, placement: all}}, "
        "node_groups: [{label: g, node_ranks: 0, hardware: {type: Franka, configs: [{node_rank: "
        "0}, "
        "{node_rank: 0, robot_ip: 10.0.0.1}]}}]}";
    struct memory_file file = memory_file(
        SV("{\"cluster\": {\"nodes\": [{\"hardware\": [{\"type\": \"Franka\"}, {\"type\": "
           "\"Other\"}, {\"type\": \"Franka\"}, {\"type\": \"Franka\"}]}]}}"));
    struct roost_error err;
    struct roost_plan *plan = plan_of(file.path, yaml, ROOST_MODE_HYBRID, &err);
    struct text got = TEXT_INIT;
    assert_non_null(plan);
    put_full(&got, roost_plan_find(plan, "a"));
    assert_string_equal(text_string(&got), "r0 n0 p0 lar-1 lr0/2 vis hw[0] g=g\n"
                                           "r1 n0 p0 lar-1 lr1/2 vis hw[1] g=g\n");
    text_release(&got);
    roost_plan_free(plan);
    close(file.fd);
}

RUN_TESTS(cmocka_unit_test(a_snapshot_holds_everything_of_a_node),
          cmocka_unit_test(accelerators_may_be_counted_listed_or_both),
          cmocka_unit_test(a_wrong_snapshot_is_refused_at_its_place),
          cmocka_unit_test(a_snapshot_that_cannot_be_opened_is_said),
          cmocka_unit_test(a_plan_document_is_a_snapshot_of_its_cluster),
          cmocka_unit_test(robots_of_the_config_replace_those_a_snapshot_saw))
