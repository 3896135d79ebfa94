/* fuzz_spec.c - any text, as the spec of a cluster. Texts that are not one would be opened as files,
 * so they end here. */
#include "tests/fuzz/check.h"

static void check_cluster(const struct roost_cluster *cluster)
{
    int32_t nodes = roost_cluster_node_count(cluster);
    int64_t total = 0;
    struct roost_node_group all;
    CHECK(nodes > 0 && roost_cluster_node_group_count(cluster) == 2);
    CHECK(roost_cluster_node_group(cluster, 0, &all) && all.node_count == nodes);
    for (int32_t n = 0; n < nodes; n++) {
        struct roost_node node;
        CHECK(roost_cluster_node(cluster, n, &node) && all.node_ranks[n] == n);
        CHECK((node.accelerator == ROOST_ACCELERATOR_NONE) == (node.num_accelerators == 0));
        total += node.num_accelerators;
    }
    CHECK(total == roost_cluster_accelerator_count(cluster));
    CHECK(all.resource_count == (all.hardware_type ? total : nodes));
    if (total == 0 || total > 10000)
        return;
    struct roost_packed packed = {0, (int32_t)total - 1, 1, 1};
    struct roost_plan *plan = roost_plan_new_packed(cluster, NULL, &packed, NULL);
    CHECK(plan && roost_plan_component(plan, 0)->world_size == total);
    check_component(roost_plan_component(plan, 0), cluster);
    roost_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct roost_error err;
    CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (roost_cluster_is_spec(text)) {
        struct roost_cluster_options options = {.text = text};
        struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
        CHECK((cluster != NULL) == (err.code == ROOST_OK));
        if (cluster)
            check_cluster(cluster);
        else
            check_words(err.message);
        CHECK(cluster || err.code == ROOST_ERR_USAGE || err.code == ROOST_ERR_LIMIT);
        roost_cluster_free(cluster);
    }
    free(text);
    return 0;
}
