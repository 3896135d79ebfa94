/* component.h - placing one component of a config by its own text. */
#ifndef PLACEMENT_COMPONENT_H
#define PLACEMENT_COMPONENT_H

#include "placement/plan.h"
#include "placement/rank_text.h"

/* What is known of a component's rule once it has met the cluster. */
struct bound_rule {
    const struct placement_rule *rule;
    struct selection selection;
    struct rank_text text;
    bool is_good;       /* false: something was reported, do not place it */
    bool is_bound;      /* the text met the groups, whatever was reported about it */
    struct arena arena; /* of selection and text; empty unless is_bound */
};

/* Reads the rule's text and binds it to the cluster. */
bool rule_bind(struct bound_rule *out, const struct placement_rule *rule,
               const struct roost_cluster *cluster, struct diag *diag);
void rule_release(struct bound_rule *rule);

/* Says which of the entries that are right by themselves could not be placed: for a rule that is
 * bound but not good. */
void component_check(const struct row_context *context, const struct bound_rule *rule);

/* Places the component as its text says: flexible, or by nodes. */
bool component_place(struct row_context *context, const struct bound_rule *rule,
                     struct roost_component *out);

#endif
