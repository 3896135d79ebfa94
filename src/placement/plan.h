/* plan.h - the plan behind struct roost_plan, and the steps of placing: a selection says what ranks mean,
 * holdings say which ranks each process has, and rows turn both into the columns of the plan. */
#ifndef PLACEMENT_PLAN_H
#define PLACEMENT_PLAN_H

#include <roost/plan.h>

#include "placement/rank_text.h"
#include "topology/cluster.h"

struct roost_plan {
    struct arena arena;
    enum roost_plan_mode mode;
    struct roost_component *components;
    int32_t component_count;
    struct roost_model_parallel *model_parallel; /* NULL unless model-parallel */
};

/* The node groups a component uses, as one numbering of resources. */
struct selection {
    const struct node_group **groups;
    int32_t group_count;
    bool is_node;                    /* a resource is a node */
    const char *no_accelerator_hint; /* of the cluster, where it has none */
    const char *unit;                /* what a resource is, for messages */
    int32_t member_count;
    const int32_t *node_of_member;     /* node rank */
    const int32_t *first_hw_of_member; /* [member_count + 1] */
    const int32_t *group_of_member;    /* index into groups; NULL = all 0 */
};

static inline int32_t selection_size(const struct selection *selection)
{
    return selection->first_hw_of_member[selection->member_count];
}

/* Finds the groups and numbers their resources, in memory of `arena`. Reports, at the label's place, unknown
 * labels, groups without a unit of their type and groups that overlap. A broken group makes it fail without
 * a report, because its error was reported before. */
bool selection_init(struct selection *selection, struct arena *arena,
                    const struct roost_cluster *cluster, const struct word *labels,
                    int32_t label_count, struct diag *diag);

/* Gives the hint for a strategy that needs hardware, on a selection that counts nodes. */
void hint_hardware(const struct selection *selection, struct diag *diag);

/* Reports "there is no node group", with the nearest name of `known` (NULL-terminated) as the hint. */
void say_unknown_node_group(const struct word *label, const char *const *known, struct diag *diag);

/* Reports a node group that is named twice. */
void say_node_group_twice(const struct word *label, struct diag *diag);

/* Makes the ranks of the selection count its nodes, whatever hardware they have. */
bool selection_by_node(struct selection *selection, struct arena *arena, struct diag *diag);

/* The member that has resource rank `rank`. `near` is any member: the search is fast from a close one. */
int32_t selection_member(const struct selection *selection, int32_t rank, int32_t near);

/* Which resources each process holds, in process order. */
struct holdings {
    int32_t process_count;
    int32_t *first; /* [process_count + 1] */
    int32_t *ranks; /* resource ranks of the selection; rows_fill turns them into local ones */
};

/* Makes room for `process_count` processes with `total` resources; false without memory. */
bool holdings_init(struct holdings *holdings, struct arena *arena, int32_t process_count,
                   int64_t total, struct diag *diag);

struct row_context {
    const struct roost_cluster *cluster;
    const struct selection *selection;
    struct arena *arena; /* of the plan */
    struct diag *diag;
    struct place at;              /* of the placement text, or nowhere */
    const char *name;             /* of the component, "" for none */
    const struct rank_text *text; /* its entries made the processes; NULL = use `at` for all */
    int32_t first_process;        /* the number of the first process in messages */
};

/* Fills the columns of `component`, whose labels, ranges, strategy and isolation are set. Takes the
 * holdings' memory. Checks that each process stays on one node, has one kind of hardware and no unit twice.
 * Reports the first process of every entry that breaks this. */
bool rows_fill(struct row_context *context, struct holdings *holdings,
               struct roost_component *component);

/* Does only the checks of rows_fill; the holdings cannot be used afterwards. */
bool rows_check(struct row_context *context, struct holdings *holdings);

/* Labels of the selection as the component shows them; false without memory. */
bool component_set_labels(struct roost_component *component, struct arena *arena,
                          const struct selection *selection, struct diag *diag);

/* The range of ranks that the component asked for; false without memory. */
bool component_set_range(struct roost_component *component, struct arena *arena,
                         struct rank_range range, struct diag *diag);

/* Computes a packed placement into `out` by its closed form; reports broken rules. */
bool packed_hold(const struct roost_packed *packed, const struct selection *selection,
                 struct arena *arena, struct place at, struct diag *diag, struct holdings *out);

#endif
