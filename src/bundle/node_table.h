/* node_table.h - the nodes of bundles: found by identity, ordered by address.
 *
 * A node is identified by its id or, if the probe reports none, by its address. Its key is computed once,
 * however many bundles it has. */
#ifndef BUNDLE_NODE_TABLE_H
#define BUNDLE_NODE_TABLE_H

#include <roost/bundle.h>

#include "base/address.h"
#include "base/arena.h"

struct table_node {
    struct strview id;      /* empty = the address identifies it */
    struct address address; /* the lowest of the reported addresses */
    struct strview name;    /* the reported name, if the address is a name */
};

struct node_table {
    struct arena *arena; /* of what outlives the table */
    struct arena scratch;
    struct table_node *nodes;
    size_t count, room;
    int32_t
        *ordinals; /* the rank of each node in the order; equal for one node written in two ways */
    struct table_slot {
        uint32_t hash;
        uint32_t number; /* of the node, + 1; 0 = free */
        const char
            *who; /* its id and its first address, each with its NUL: all that a lookup needs */
    } *slots;
    size_t slot_count; /* a power of two */
};

/* An empty table. Results that outlive it are allocated in `arena`. */
struct node_table node_table_start(struct arena *arena);
void node_table_release(struct node_table *table);

/* The number of the bundle's node, which is added if it is new; -1 without memory. Texts may be NULL. They
 * are copied, because lookups in adjacent memory are much faster than all over the probes' answers. */
int32_t node_table_find(struct node_table *table, const char *id, const char *address);

/* Resolves every distinct name once. *out and *out_count get the names and answers, allocated in the arena;
 * false without memory. */
bool node_table_resolve(struct node_table *table, const struct roost_order_options *options,
                        struct roost_resolved **out, size_t *out_count);

/* Sets the ordinals; false without memory. */
bool node_table_sort(struct node_table *table);

#endif
