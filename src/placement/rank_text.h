/* rank_text.h - the placement text of a component: entries of resources and processes.
 *
 *     placement := entry ("," entry)*
 *     entry     := resources [ ":" processes ]
 *     resources := "all" | N | N "-" N           processes := N | N "-" N
 *
 * A comma always ends an entry. Reading needs no cluster; binding gives every entry its numbers. */
#ifndef PLACEMENT_RANK_TEXT_H
#define PLACEMENT_RANK_TEXT_H

#include "base/rankset.h"
#include "config/config.h"

enum { PROCESSES_MAX = 1 << 24 };

struct rank_entry {
    struct strview text;
    struct place at;
    struct rank_range resources;
    struct rank_range processes;
    bool is_all;        /* resources are "all": their numbers are known once bound */
    bool has_processes; /* the user wrote the process side */
    bool is_bad;        /* a fault in it was reported */
};

struct rank_text {
    struct word source;
    struct rank_entry *entries;
    int32_t count;
    bool has_processes; /* in any entry */
};

/* Reads the text. Reports every malformed entry; the others can be bound all the same. */
bool rank_text_read(struct arena *arena, struct word source, struct diag *diag,
                    struct rank_text *out);

/* The resources that an entry may name. */
struct rank_bounds {
    const char *label; /* of the node group, for messages */
    const char *unit;  /* "accelerators", "nodes", "Franka" */
    int32_t total;     /* ranks are 0 .. total - 1; -1 = not known yet */
    bool is_node;      /* a resource is a node: processes spread over nodes unevenly if need be */
    bool is_known;     /* the kind of resource is known: the rules about counts can be checked */
    /* The hint for a rank out of range when ranks count nodes only because the cluster has no
     * accelerators. NULL = the ranks themselves are the hint. */
    const char *no_accelerator_hint;
};

/* Replaces "all" by its numbers, fills in the processes that the user did not write, and checks every rule.
 * With total -1 it skips the rules that need the total. Reports every independent fault, but none that only
 * follows from another. A text without entries is not bound. */
bool rank_text_bind(struct rank_text *text, const struct rank_bounds *bounds, struct diag *diag);

/* Processes in all; the text must have been bound with a known total. */
int64_t rank_text_processes(const struct rank_text *text);

#endif
