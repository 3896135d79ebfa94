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
    int32_t ordinal;        /* its place among the nodes; equal for one node written in two ways */
};

struct node_table {
    struct arena *arena; /* of what outlives the table */
    struct arena scratch;
    struct table_node *nodes;
    size_t count, room;
    uint32_t *slots; /* a hash table of node numbers + 1 */
    size_t slot_count;
};

/* Makes room for the nodes of `bundles` bundles; false without memory. */
bool node_table_init(struct node_table *table, struct arena *arena, size_t bundles);
void node_table_release(struct node_table *table);

/* The number of the bundle's node, which is added when it is new; -1 without memory. Texts are
 * borrowed. */
int32_t node_table_find(struct node_table *table, struct strview id, struct strview address);

/* Asks for every distinct name once. *out and *out_count get names and answers, in the arena; false
 * without memory. */
bool node_table_resolve(struct node_table *table, const struct roost_order_options *options,
                        struct roost_resolved **out, size_t *out_count);

/* Sets the ordinals; false without memory. */
bool node_table_sort(struct node_table *table);

#endif
