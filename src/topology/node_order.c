/* node_order.c - which node is node 0. The same nodes in any order give the same ranks. */
#include <stdlib.h>

#include "base/address.h"
#include "topology/cluster.h"

struct sort_key {
    struct address address;
    struct strview id;
    int32_t explicit_rank;
    bool is_head;
    int32_t index; /* where the source listed it: the last resort for nodes without any identity */
};

static int by_rank(const void *a, const void *b)
{
    const struct sort_key *left = a, *right = b;
    return (left->explicit_rank > right->explicit_rank) -
           (left->explicit_rank < right->explicit_rank);
}

static int by_address(const void *a, const void *b)
{
    const struct sort_key *left = a, *right = b;
    int order = (int)right->is_head - (int)left->is_head;
    if (!order)
        order = address_compare(&left->address, &right->address);
    if (!order)
        order = natural_compare(left->id, right->id);
    return order ? order : (left->index > right->index) - (left->index < right->index);
}

/* All nodes have a rank, or none has. */
static bool check_ranks(const struct roost_cluster *cluster, const char *name, struct diag *diag,
                        bool *out_has_ranks)
{
    int32_t with = 0;
    for (int32_t n = 0; n < cluster->node_count; n++)
        with += cluster->nodes[n].explicit_rank >= 0;
    *out_has_ranks = with > 0;
    if (with == 0 || with == cluster->node_count)
        return true;
    diag_error(diag, ROOST_ERR_SCHEMA, NOWHERE, "in '%s' %d of %d nodes have a node_rank",
               quote(sv_from(name)).text, (int)with, (int)cluster->node_count);
    diag_hint(diag, "give every node its node_rank, or none");
    return false;
}

static void say_rank(const char *name, const char *what, int32_t rank, size_t count,
                     struct diag *diag)
{
    diag_error(diag, ROOST_ERR_SCHEMA, NOWHERE, "in '%s' %s node_rank %d",
               quote(sv_from(name)).text, what, (int)rank);
    diag_hint(diag, "node ranks are 0 to %d, each once", (int)count - 1);
}

/* Every rank that comes twice is reported. Only where none does one is missing by itself; the first is
 * enough then, as all behind it are too high. */
static bool check_each_once(const struct sort_key *keys, size_t count, const char *name,
                            struct diag *diag)
{
    size_t missing = 0;
    bool is_good = true;
    while (missing < count && keys[missing].explicit_rank == (int32_t)missing)
        missing++;
    for (size_t n = 1; n < count; n++) {
        if (keys[n].explicit_rank != keys[n - 1].explicit_rank ||
            (n > 1 && keys[n].explicit_rank == keys[n - 2].explicit_rank))
            continue;
        say_rank(name, "two nodes have", keys[n].explicit_rank, count, diag);
        is_good = false;
    }
    if (is_good && missing < count) {
        say_rank(name, "no node has", (int32_t)missing, count, diag);
        is_good = false;
    }
    return is_good;
}

bool topology_order_nodes(struct roost_cluster *cluster, const char *name, struct diag *diag)
{
    bool has_ranks;
    if (!check_ranks(cluster, name, diag, &has_ranks))
        return false;
    bool is_sorted = has_ranks;
    for (int32_t n = 0; n < cluster->node_count && is_sorted; n++)
        is_sorted = cluster->nodes[n].explicit_rank == n;
    if (is_sorted)
        return true;

    size_t count = (size_t)cluster->node_count;
    struct sort_key *keys = calloc(count ? count : 1, sizeof *keys);
    struct cluster_node *sorted = arena_array(&cluster->arena, struct cluster_node, count);
    if (!keys || !sorted) {
        free(keys);
        diag_nomem(diag);
        return false;
    }
    for (size_t n = 0; n < count; n++) {
        const struct cluster_node *node = &cluster->nodes[n];
        keys[n] = (struct sort_key){
            .id = sv_from(node->id),
            .explicit_rank = node->explicit_rank,
            .is_head = node->is_head,
            .index = (int32_t)n,
        };
        if (!has_ranks)
            keys[n].address = address_read(sv_from(node->address));
    }
    qsort(keys, count, sizeof *keys, has_ranks ? by_rank : by_address);
    for (size_t n = 0; n < count; n++)
        sorted[n] = cluster->nodes[keys[n].index];
    bool is_good = !has_ranks || check_each_once(keys, count, name, diag);
    cluster->nodes = sorted;
    free(keys);
    return is_good;
}
