/* resolve.h - interpolations: ${a.b.c}, ${.a}, ${..a}, ${oc.env:NAME,default}.
 *
 * A scalar that is one interpolation becomes the node it names, with that node's own place; text
 * around interpolations becomes a new scalar. Each node is resolved once and remembered, so chains
 * and repetitions cost what they are long, not what they expand to.
 *
 * What comes from a variable whose name speaks of a secret (is_secret_name) is marked on the node, and so
 * is every text that it is put into: node->secret says how the text is shown. */
#ifndef CONFIG_RESOLVE_H
#define CONFIG_RESOLVE_H

#include "config/tree.h"

enum {
    RESOLVE_DEPTH_MAX = 64,
    RESOLVE_BYTES_MAX = 1024 * 1024, /* of text made in all */
    RESOLVE_NAMES_MAX = 1024,        /* environment variables */
};

/* Names of environment variables that were looked up, in the order first asked. */
struct env_names {
    const char **names;
    size_t count, room;
};

struct resolver {
    struct arena *arena;
    struct node *root;
    const char *const *env; /* "NAME=value" entries, NULL-terminated; NULL = nothing is set */
    struct env_names *read;
    struct secrets *secrets; /* gets every value that holds one; NULL = nothing is kept back */
    /* Secret variables whose values are looked for in a text that a program wrote: it may have put them
     * there. NULL-terminated; NULL = the text is not a program's. See secret_look_for. */
    const char **hidden;
    struct diag *diag;
    int depth;
    size_t made;       /* bytes of new text */
    bool is_exhausted; /* a limit was met and reported; nothing more is to be read */
};

/* The node that `node` stands for, never an interpolation; NULL after it reported why (once a node). */
const struct node *resolve(struct resolver *resolver, struct node *node);

/* The node at a dotted path from the root, resolved; NULL when there is none or it is in error. */
const struct node *resolve_path(struct resolver *resolver, const char *path);

#endif
