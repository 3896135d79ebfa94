/* model_parallel.h - places actor, rollout, reward, inference and critics by the sizes of their models:
 * collocated, disaggregated or auto. */
#ifndef PLACEMENT_MODEL_PARALLEL_H
#define PLACEMENT_MODEL_PARALLEL_H

#include "placement/component.h"

/* Decides the plan's mode, places the components that have a role in it and marks them in `is_placed`. All
 * others are placed by their own texts. Reports faults. */
void model_parallel_place(struct roost_plan *plan, const struct roost_config *config,
                          const struct roost_cluster *cluster, const struct bound_rule *rules,
                          bool *is_placed, struct diag *diag);

/* Reports the components that a model-parallel placement needs and the config does not name. Needs no
 * cluster. */
void roles_check_named(const struct roost_config *config, struct diag *diag);

#endif
