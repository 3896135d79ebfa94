/* order.c - bundles in a stable order: nodes -> keys -> sort. Reads the probes' answers, knows nothing about
 * layouts.
 *
 * Keeps: the order is total and the same for every order of the input; the bundles of a node stay
 * together. */
#include <stdlib.h>

#include "base/diag.h"
#include "bundle/gpu_id.h"
#include "bundle/node_table.h"

struct roost_order {
    struct arena arena;
    size_t count;
    int32_t *indices, *nodes, *gpus; /* by slot */
    struct roost_resolved *resolved;
    size_t resolved_count;
};

/* What bundles are sorted by, small: what only the text of an id tells is read again when it is
 * needed, which is seldom. */
struct key {
    uint64_t value; /* of the gpu_key */
    enum gpu_kind kind;
    int32_t node; /* first its number in the table, then its ordinal */
    int32_t index;
    uint32_t from; /* which bundle */
};

static struct gpu_key gpu_of(const struct roost_bundle *bundle)
{
    return gpu_key_read(sv_from(bundle->gpu_id), sv_from(bundle->visible));
}

/* Two bundles of one node. */
static int compare(const struct key *a, const struct key *b, const struct roost_bundle *bundles)
{
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    struct gpu_key left = gpu_of(&bundles[a->from]), right = gpu_of(&bundles[b->from]);
    int order = gpu_key_compare(&left, &right);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

static int by_gpu(const void *a, const void *b, void *bundles)
{
    return compare(a, b, bundles);
}

static enum roost_code refuse(struct diag *diag, const struct roost_bundle *bundle,
                              const char *fault, const char *cure)
{
    struct strview node = sv_from(bundle->address ? bundle->address : bundle->node_id);
    enum roost_code code = diag_error(
        diag, ROOST_ERR_SCHEMA, NOWHERE, "bundle %d on node '%s' with GPU id '%s': %s",
        (int)bundle->index, quote(node).text, quote(sv_from(bundle->gpu_id)).text, fault);
    diag_hint(diag, "%s", cure);
    return code;
}

static bool check_bundle(struct diag *diag, const struct roost_bundle *bundle)
{
    bool has_node =
        (bundle->node_id && bundle->node_id[0]) || (bundle->address && bundle->address[0]);
    if (bundle->index < 0)
        refuse(diag, bundle, "a bundle's index cannot be negative", "number bundles from 0");
    else if (!has_node)
        refuse(diag, bundle, "the probe told neither the node's id nor its address",
               "let the probe tell the id of its node");
    else if (!bundle->gpu_id || !bundle->gpu_id[0])
        refuse(diag, bundle, "the probe told no GPU id", "probe with a whole GPU in every bundle");
    else
        return true;
    return false;
}

static int by_number(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;
    return (left > right) - (left < right);
}

/* Every index once. They are nearly always 0, 1, 2, ... in this order. */
static bool check_indices(struct diag *diag, const struct roost_bundle *bundles, size_t count,
                          struct arena *scratch)
{
    bool is_rising = true;
    for (size_t i = 1; i < count && is_rising; i++)
        is_rising = bundles[i].index > bundles[i - 1].index;
    if (is_rising)
        return true;
    int32_t *sorted = arena_array(scratch, int32_t, count);
    if (!sorted) {
        diag_nomem(diag);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = bundles[i].index;
    qsort(sorted, count, sizeof *sorted, by_number);
    for (size_t i = 1; i < count; i++) {
        if (sorted[i] != sorted[i - 1])
            continue;
        size_t at = count;
        while (bundles[--at].index != sorted[i])
            continue;
        refuse(diag, &bundles[at], "another bundle has this index",
               "number bundles from 0, each once");
        return false;
    }
    return true;
}

/* Finds every bundle's node and GPU; `keys` come out in the order of the bundles. */
static bool read_keys(struct roost_order *order, const struct roost_bundle *bundles,
                      struct node_table *table, struct key *keys, struct diag *diag)
{
    for (size_t i = 0; i < order->count; i++) {
        const struct roost_bundle *it = &bundles[i];
        if (!check_bundle(diag, it))
            return false;
        struct gpu_key gpu = gpu_of(it);
        keys[i] = (struct key){
            .value = gpu.value,
            .kind = gpu.kind,
            .node = node_table_find(table, it->node_id, it->address),
            .index = it->index,
            .from = (uint32_t)i,
        };
        if (keys[i].node < 0) {
            diag_nomem(diag);
            return false;
        }
    }
    return true;
}

/* The bundles of one node. */
static void sort_node(struct key *keys, size_t count, const struct roost_bundle *bundles)
{
    enum { FEW = 16 }; /* a machine has that many GPUs: no call is worth it */
    if (count > FEW) {
        qsort_r(keys, count, sizeof *keys, by_gpu, (void *)(uintptr_t)bundles);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        struct key key = keys[i];
        size_t at = i;
        for (; at > 0 && compare(&key, &keys[at - 1], bundles) < 0; at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* Nodes are in order by now: their bundles are counted into place, then sorted node by node. */
static bool sort_keys(struct roost_order *order, const struct roost_bundle *bundles,
                      struct node_table *table, const struct key *keys)
{
    struct key *sorted = arena_array(&table->scratch, struct key, order->count + 1);
    size_t *first = arena_zeroed(&table->scratch, size_t, table->count + 2);
    if (!sorted || !first)
        return false;
    for (size_t i = 0; i < order->count; i++)
        first[table->ordinals[keys[i].node] + 2]++;
    for (size_t n = 2; n <= table->count + 1; n++)
        first[n] += first[n - 1];
    for (size_t i = 0; i < order->count; i++) {
        int32_t node = table->ordinals[keys[i].node];
        struct key *out = &sorted[first[node + 1]++];
        *out = keys[i];
        out->node = node;
    }
    /* Now first[n] is where node n starts. */
    for (size_t n = 0; n < table->count; n++)
        sort_node(sorted + first[n], first[n + 1] - first[n], bundles);
    for (size_t i = 0; i < order->count; i++) {
        order->indices[i] = sorted[i].index;
        order->nodes[i] = sorted[i].node;
        order->gpus[i] = sorted[i].kind == GPU_NUMBER && sorted[i].value <= INT32_MAX
                             ? (int32_t)sorted[i].value
                             : -1;
    }
    return true;
}

static bool sort(struct roost_order *order, const struct roost_bundle *bundles,
                 const struct roost_order_options *options, struct node_table *table,
                 struct diag *diag)
{
    struct key *keys = arena_array(&table->scratch, struct key, order->count + 1);
    order->indices = arena_array(&order->arena, int32_t, order->count + 1);
    order->nodes = arena_array(&order->arena, int32_t, order->count + 1);
    order->gpus = arena_array(&order->arena, int32_t, order->count + 1);
    if (!keys || !order->indices || !order->nodes || !order->gpus) {
        diag_nomem(diag);
        return false;
    }
    if (!read_keys(order, bundles, table, keys, diag) ||
        !check_indices(diag, bundles, order->count, &table->scratch))
        return false;
    bool asks = options && options->resolve;
    if ((asks && !node_table_resolve(table, options, &order->resolved, &order->resolved_count)) ||
        !node_table_sort(table) || !sort_keys(order, bundles, table, keys)) {
        diag_nomem(diag);
        return false;
    }
    return true;
}

struct roost_order *roost_order_new(const struct roost_bundle *bundles, size_t count,
                                    const struct roost_order_options *options,
                                    struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct roost_order *order = calloc(1, sizeof *order);
    struct node_table table = {0};
    if (order && count < ROOST_RANK_MAX)
        order->count = count;
    bool is_good = order && order->count == count;
    if (is_good)
        table = node_table_start(&order->arena);
    else
        diag_nomem(&diag);
    is_good = is_good && sort(order, bundles, options, &table, &diag);
    node_table_release(&table);
    if (is_good)
        return order;
    roost_order_free(order);
    return NULL;
}

void roost_order_free(struct roost_order *order)
{
    if (!order)
        return;
    arena_release(&order->arena);
    free(order);
}

size_t roost_order_count(const struct roost_order *order)
{
    return order->count;
}

const int32_t *roost_order_indices(const struct roost_order *order)
{
    return order->indices;
}

const int32_t *roost_order_nodes(const struct roost_order *order)
{
    return order->nodes;
}

const int32_t *roost_order_gpus(const struct roost_order *order)
{
    return order->gpus;
}

size_t roost_order_resolved_count(const struct roost_order *order)
{
    return order->resolved_count;
}

bool roost_order_resolved(const struct roost_order *order, size_t index, struct roost_resolved *out)
{
    if (index >= order->resolved_count)
        return false;
    *out = order->resolved[index];
    return true;
}
