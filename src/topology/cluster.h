/* cluster.h - the cluster behind struct roost_cluster, as placement and render read it. */
#ifndef TOPOLOGY_CLUSTER_H
#define TOPOLOGY_CLUSTER_H

#include <roost/engine/cluster.h>

#include "base/search.h"
#include "config/config.h"

enum {
    CLUSTER_NODES_MAX = 1 << 20,
    CLUSTER_ACCELERATORS_MAX = 1 << 10, /* on one node */
    CLUSTER_TOTAL_MAX = 1 << 26,        /* in all */
};

struct accelerator {
    const char *id, *uuid, *pci; /* NULL = not known */
    int32_t numa;                /* -1 = not known */
};

/* A robot, or any other hardware of a node that the config counts. */
struct unit {
    const char *type;
    const char *config; /* JSON text of an object */
    struct unit *next;  /* on the same node */
};

struct cluster_node {
    const char *id, *address, *model; /* NULL = not known */
    int32_t num_cpus;                 /* -1 = not known */
    int32_t explicit_rank;            /* -1 = none was given */
    int32_t accelerator_count;
    enum roost_accelerator accelerator;
    struct accelerator *accelerators; /* NULL = only their number is known */
    struct unit *units, *last_unit;
    bool is_head; /* of a Ray cluster */
};

/* The nodes of a group, and the units that its ranks count. */
struct node_group {
    const char *label;
    const char *hardware_type; /* NULL = ranks are nodes */
    int32_t member_count;
    int32_t *node_of_member;     /* [member_count], node ranks rising */
    int32_t *first_hw_of_member; /* [member_count + 1]: ranks of member m are
                                    first_hw_of_member[m] .. first_hw_of_member[m + 1] - 1 */
    bool is_accelerator;         /* its units are accelerators */
    bool is_broken;              /* the config's group has an error: report nothing more about it */
};

struct roost_cluster {
    struct arena arena;
    struct cluster_node *nodes;
    int32_t node_count;
    int64_t accelerator_count;
    const char *no_accelerator_hint; /* how to get some; NULL = the cluster has accelerators */
    struct node_group *node_groups;  /* configured ones, then `cluster` and `node` */
    int32_t node_group_count;
    int64_t member_count; /* of all groups */
    bool is_here;         /* it is this machine */
    bool is_described;    /* described by a program: there may be more nodes than were described */
};

/* How many ranks a group has. */
static inline int32_t node_group_size(const struct node_group *group)
{
    return group->first_hw_of_member[group->member_count];
}

/* The first member on this node or a later one; member_count when there is none. */
static inline int32_t node_group_member_from(const struct node_group *group, int32_t node_rank)
{
    return SEARCH(group->member_count, at, group->node_of_member[at] < node_rank);
}

/* The group with this label, or NULL. */
const struct node_group *cluster_find_node_group(const struct roost_cluster *cluster,
                                                 struct strview label);

/* Units of a hardware type on a node. */
int32_t node_count_units(const struct cluster_node *node, struct strview type);

/* --- the sources of nodes: each fills cluster->nodes and node_count, in any order --- */

bool topology_from_spec(struct roost_cluster *cluster, struct strview text, struct place at,
                        struct diag *diag);
/* `is_named`: a config names the file, at `at`. */
bool topology_from_snapshot(struct roost_cluster *cluster, const char *path, struct place at,
                            bool is_named, struct diag *diag);
/* The same for a snapshot in memory; errors call it `name`. */
bool topology_from_snapshot_text(struct roost_cluster *cluster, const char *name, const char *text,
                                 struct diag *diag);
bool topology_from_local(struct roost_cluster *cluster, struct diag *diag);

bool topology_from_description(struct roost_cluster *cluster,
                               const struct roost_cluster_description *description,
                               struct diag *diag);

/* --- the steps of roost_cluster_new --- */

/* Puts nodes in node order: by explicit rank, else a head first and then by address. */
bool topology_order_nodes(struct roost_cluster *cluster, const char *name, struct diag *diag);

/* Adds the robots of the config to their nodes. */
bool topology_add_robots(struct roost_cluster *cluster, const struct roost_config *config,
                         struct diag *diag);

/* Builds the groups of the config (may be NULL) and the built-in ones. */
bool topology_add_node_groups(struct roost_cluster *cluster, const struct roost_config *config,
                              struct diag *diag);

/* Adds one group; cluster->node_groups has room for it. */
bool topology_add_node_group(struct roost_cluster *cluster, const struct node_group_config *config,
                             struct diag *diag);

/* Builds the described groups, and the built-in groups that the description leaves out. */
bool topology_add_described(struct roost_cluster *cluster,
                            const struct roost_cluster_description *description, struct diag *diag);

#endif
