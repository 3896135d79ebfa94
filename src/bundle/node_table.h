/* node_table.h - the nodes that bundles are on: found by who they are, ordered by where they are.
 *
 * A node is its id; where a probe tells none, its address. Its key is computed once, however many
 * bundles it has. */
#ifndef BUNDLE_NODE_TABLE_H
#define BUNDLE_NODE_TABLE_H

#include <roost/bundle.h>

#include "base/address.h"
#include "base/arena.h"

struct table_node {
    struct strview id;      /* empty = the address is who it is */
    struct address address; /* the first in order of those that were told */
    struct strview name;    /* the name that was told, of nodes whose address is one */
};

struct node_table {
    struct arena *arena; /* of what outlives the table */
    struct arena scratch;
    struct table_node *nodes;
    size_t count, room;
    int32_t
        *ordinals; /* of each node its place among them; equal for one node written in two ways */
    struct table_slot {
        uint32_t hash;
        uint32_t number; /* of the node, + 1; 0 = free */
        const char
            *who; /* its id and its first address, each with its NUL: all that a look needs */
    } *slots;
    size_t slot_count; /* a power of two */
};

/* An empty table; what is to outlive it goes into `arena`. */
struct node_table node_table_start(struct arena *arena);
void node_table_release(struct node_table *table);

/* The number of the bundle's node, which is added when it is new; -1 without memory. Texts may be NULL,
 * and are copied: side by side they are found much faster than all over what probes answered. */
int32_t node_table_find(struct node_table *table, const char *id, const char *address);

/* Asks for every distinct name once. *out and *out_count get names and answers, in the arena; false
 * without memory. */
bool node_table_resolve(struct node_table *table, const struct roost_order_options *options,
                        struct roost_resolved **out, size_t *out_count);

/* Sets the ordinals; false without memory. */
bool node_table_sort(struct node_table *table);

#endif
