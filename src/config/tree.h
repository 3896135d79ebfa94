/* tree.h - what a config file says, before anyone asks what it means.
 *
 * Every value remembers where it was written. Scalars keep their own text: what `1:0` or `yes` means
 * is decided by whoever reads the value, never by a YAML dialect. Aliases and merge keys are pointers
 * to the nodes they stand for, so a small file cannot grow into a large tree. */
#ifndef CONFIG_TREE_H
#define CONFIG_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/source.h"

enum { TREE_DEPTH_MAX = 32, TREE_NODES_MAX = 100000, TREE_SCALAR_MAX = 64 * 1024 };

enum node_kind { NODE_SCALAR, NODE_SEQUENCE, NODE_MAPPING };

enum resolve_state { RESOLVE_NOT_YET, RESOLVE_UNDER_WAY, RESOLVE_DONE, RESOLVE_FAILED };

struct pair;

struct node {
    enum node_kind kind;
    bool is_quoted;           /* a scalar written in quotes */
    bool is_plain;            /* a scalar written without quotes: other readers may type it */
    enum resolve_state state; /* see resolve.h */
    int32_t line, column;     /* of its first character, from 1 */
    uint32_t weight;          /* nodes it stands for, itself and aliases included */
    int32_t count;            /* pairs or items */
    const struct source *source;
    const struct pair *by_key;   /* the pairs sorted, of large mappings; NULL = none */
    struct node *parent;         /* the container it was written in; NULL at the root */
    const struct node *resolved; /* see resolve.h */
    const struct secret *secret; /* of a scalar that holds one: what is shown instead; else NULL */
    union {
        struct strview text; /* NODE_SCALAR */
        struct pair *pairs;  /* NODE_MAPPING, in the order written; merged ones behind */
        struct node **items; /* NODE_SEQUENCE */
    };
};

struct pair {
    struct node *key; /* always a scalar */
    struct node *value;
};

/* The place of a node; a scalar is underlined as a whole. */
struct place node_place(const struct node *node);

/* The value of a key, or NULL. */
struct node *node_get(const struct node *mapping, struct strview key);

/* Makes node_get quick in a large mapping that is complete; false without memory. */
bool node_index(struct arena *arena, struct node *mapping);

/* A plain scalar that YAML calls null: empty, ~, null. */
bool node_is_null(const struct node *node);

/* A node made by us, as if written at the place of `like`. NULL without memory. */
struct node *node_new_scalar(struct arena *arena, const struct node *like, struct strview text);
struct node *node_new_mapping(struct arena *arena, const struct node *like, int32_t room);

/* Puts `over` on `base`: mappings are merged key by key, anything else is replaced. Returns a new
 * node, or one of the two where nothing had to be merged; NULL without memory. */
struct node *node_merge(struct arena *arena, struct node *base, struct node *over);

/* Sets `key` in the mapping, which must have room for one more when the key is new. */
void node_put(struct node *mapping, struct node *key, struct node *value);

/* A mapping like `mapping` with room for one more pair; NULL without memory. */
struct node *node_copy_mapping(struct arena *arena, const struct node *mapping, int32_t more);

#endif
