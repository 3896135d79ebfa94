/* order.c - bundles in a stable order: nodes -> keys -> sort. Reads what probes answered, knows
 * nothing of layouts.
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
    int32_t *indices, *nodes; /* by slot */
    struct roost_resolved *resolved;
    size_t resolved_count;
};

/* What bundles are sorted by. */
struct key {
    struct gpu_key gpu;
    int32_t node; /* first its number in the table, then its ordinal */
    int32_t index;
};

static int by_key(const void *a, const void *b)
{
    const struct key *left = a, *right = b;
    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    int order = gpu_key_compare(&left->gpu, &right->gpu);
    return order ? order : (left->index > right->index) - (left->index < right->index);
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
        keys[i] = (struct key){
            .gpu = gpu_key_read(sv_from(it->gpu_id), sv_from(it->visible)),
            .node = node_table_find(table, sv_from(it->node_id), sv_from(it->address)),
            .index = it->index,
        };
        if (keys[i].node < 0) {
            diag_nomem(diag);
            return false;
        }
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
    if (!keys || !order->indices || !order->nodes) {
        diag_nomem(diag);
        return false;
    }
    if (!read_keys(order, bundles, table, keys, diag) ||
        !check_indices(diag, bundles, order->count, &table->scratch))
        return false;
    if ((options && options->resolve &&
         !node_table_resolve(table, options, &order->resolved, &order->resolved_count)) ||
        !node_table_sort(table)) {
        diag_nomem(diag);
        return false;
    }
    for (size_t i = 0; i < order->count; i++)
        keys[i].node = table->nodes[keys[i].node].ordinal;
    qsort(keys, order->count, sizeof *keys, by_key);
    for (size_t i = 0; i < order->count; i++) {
        order->indices[i] = keys[i].index;
        order->nodes[i] = keys[i].node;
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
    bool is_good = order && order->count == count && node_table_init(&table, &order->arena, count);
    if (!is_good)
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
