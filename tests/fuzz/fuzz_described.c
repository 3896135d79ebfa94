/* fuzz_described.c - any bytes, as a cluster that a program describes and strategies on it.
 * A byte a number: nodes with their units, groups with their nodes, then packed, flexible and node
 * ranks. What is built is numbered without a gap; what is placed has rows that are right; what a
 * check refuses, the placement refuses too. */
#include <roost/engine/cluster.h>

#include "tests/fuzz/check.h"

enum { NODES_MAX = 8, GROUPS_MAX = 3, RANKS_MAX = 16 };

struct bytes {
    const uint8_t *at, *end;
};

/* The next byte as a number from -2 to 253, 0 at the end. */
static int32_t next(struct bytes *bytes)
{
    return bytes->at < bytes->end ? *bytes->at++ - 2 : 0;
}

static int32_t next_below(struct bytes *bytes, int32_t limit)
{
    int32_t number = next(bytes);
    return (number < 0 ? -number : number) % limit;
}

/* Every rank of every group is on a node of the group, in rising order. */
static void check_numbering(const struct roost_cluster *cluster)
{
    struct roost_node_group group;
    for (size_t g = 0; roost_cluster_node_group(cluster, g, &group); g++) {
        int32_t node = -1, local = -1, before_node = -1, before_local = -1;
        for (int32_t rank = 0; rank < group.resource_count && rank < 1000; rank++) {
            CHECK(roost_cluster_locate(cluster, g, rank, &node, &local));
            CHECK(node > before_node ? local == 0
                                     : node == before_node && local == before_local + 1);
            before_node = node;
            before_local = local;
        }
        CHECK(!roost_cluster_locate(cluster, g, -1, &node, &local));
        if (group.resource_count < INT32_MAX)
            CHECK(!roost_cluster_locate(cluster, g, (int32_t)group.resource_count, &node, &local));
    }
}

static void check_plan(struct roost_plan *plan, enum roost_code checked,
                       const struct roost_error *err, const struct roost_cluster *cluster)
{
    CHECK((plan == NULL) == (err->code != ROOST_OK) && (checked == ROOST_OK || !plan));
    if (!plan) {
        check_words(err->message);
        CHECK(err->hint[0]);
        return;
    }
    const struct roost_component *it = roost_plan_component(plan, 0);
    CHECK(roost_plan_component_count(plan) == 1 && it->world_size > 0);
    check_component(it, cluster);
    check_again(it, cluster);
    roost_plan_free(plan);
}

static void place(struct bytes *bytes, const struct roost_cluster *cluster)
{
    static const char *const names[] = {"cluster", "node", "a", "b", "c", "zzz"};
    const char *labels[2] = {names[next_below(bytes, 6)], names[next_below(bytes, 6)]};
    const struct roost_scope scope = {.labels = labels,
                                      .label_count = (size_t)next_below(bytes, 3),
                                      .shares_accelerators = next_below(bytes, 2)};
    struct roost_packed packed = {next(bytes), next(bytes), next(bytes), next(bytes)};
    int32_t first[RANKS_MAX + 1] = {0}, ranks[RANKS_MAX], held = 0, lists = 0;
    for (; lists < RANKS_MAX && bytes->at < bytes->end && held < RANKS_MAX; lists++) {
        int32_t count = next_below(bytes, 4);
        for (int32_t i = 0; i < count && held < RANKS_MAX; i++)
            ranks[held++] = next(bytes);
        first[lists + 1] = held;
    }
    struct roost_error err;
    enum roost_code code = roost_packed_check(&packed, &err);
    check_plan(roost_plan_new_packed(cluster, &scope, &packed, &err), code, &err, cluster);
    code = roost_flexible_check(first, ranks, lists, &err);
    check_plan(roost_plan_new_flexible(cluster, &scope, first, ranks, lists, &err), code, &err,
               cluster);
    code = roost_node_check(ranks, held, &err);
    check_plan(roost_plan_new_node(cluster, &scope, ranks, held, &err), code, &err, cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const units[] = {"Franka", "Turtle2", "Franka"};
    static const char *const labels[] = {"a", "b", "node", "cluster", "c"};
    static const char *const types[] = {NULL, "Accelerator", "Franka", "Turtle2"};
    struct bytes bytes = {data, data + size};
    struct roost_node_description nodes[NODES_MAX];
    struct roost_node_group_description groups[GROUPS_MAX];
    int32_t ranks[GROUPS_MAX][NODES_MAX];
    int32_t node_count = next_below(&bytes, NODES_MAX + 1);
    size_t group_count = (size_t)next_below(&bytes, GROUPS_MAX + 1);
    for (int32_t n = 0; n < node_count; n++)
        nodes[n] = (struct roost_node_description){
            (enum roost_accelerator)next_below(&bytes, ROOST_ACCELERATOR_COUNT), next(&bytes),
            units, (size_t)next_below(&bytes, 4), 0};
    for (size_t g = 0; g < group_count; g++) {
        int32_t count = next_below(&bytes, NODES_MAX + 1);
        for (int32_t i = 0; i < count; i++)
            ranks[g][i] = next(&bytes);
        groups[g] = (struct roost_node_group_description){
            labels[(g + (size_t)next_below(&bytes, 2)) % 5], types[next_below(&bytes, 4)], ranks[g],
            count, next_below(&bytes, 2)};
    }
    struct roost_error err;
    struct roost_cluster *cluster = roost_cluster_new_described(
        &(struct roost_cluster_description){nodes, node_count, groups, group_count}, &err);
    CHECK((cluster == NULL) == (err.code != ROOST_OK) && (cluster || err.hint[0]));
    if (cluster) {
        check_numbering(cluster);
        place(&bytes, cluster);
    }
    roost_cluster_free(cluster);
    return 0;
}
