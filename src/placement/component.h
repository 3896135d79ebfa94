/* component.h - places one component of a config by its own placement text. */
#ifndef PLACEMENT_COMPONENT_H
#define PLACEMENT_COMPONENT_H

#include "placement/plan.h"
#include "placement/rank_text.h"

/* A component's rule, bound to the cluster. */
struct bound_rule {
    const struct placement_rule *rule;
    struct selection selection;
    struct rank_text text;
    bool is_good;       /* false: an error was reported, do not place it */
    bool is_bound;      /* the text was bound to its groups, even if errors were reported */
    struct arena arena; /* of selection and text; empty unless is_bound */
};

/* Reads the rule's text and binds it to the cluster. */
bool rule_bind(struct bound_rule *out, const struct placement_rule *rule,
               const struct roost_cluster *cluster, struct diag *diag);
void rule_release(struct bound_rule *rule);

/* For a rule that is bound but not good: reports the entries that are correct by themselves but cannot be
 * placed. */
void component_check(const struct row_context *context, const struct bound_rule *rule);

/* Places the component as its text says: flexible, or by nodes. */
bool component_place(struct row_context *context, const struct bound_rule *rule,
                     struct roost_component *out);

#endif
