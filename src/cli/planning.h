/* planning.h - what check and plan have in common: config, cluster, plan, in this order. */
#ifndef CLI_PLANNING_H
#define CLI_PLANNING_H

#include "cli/command.h"

/* Options that every planning command takes. */
#define PLANNING_OPTIONS                                                                           \
    {"cluster", "X", "plan against X: a spec (2x8), a snapshot file, or local"},                   \
        {"mode", "MODE", "hybrid (default) or model-parallel"},                                    \
        {"no-isolate", NULL, "let every process see all accelerators of its node"},                \
        {"hydra", NULL, "follow the config's defaults list, from files beside it"},                \
        {"json", NULL, "print JSON"}, {"color", "WHEN", "auto (default), always or never"}

struct planning {
    struct roost_report *report;
    struct roost_config *config;   /* NULL = could not be read */
    struct roost_cluster *cluster; /* NULL = there is none, or it could not be read */
    struct roost_plan *plan;       /* NULL = was not made */
    bool has_cluster;              /* one was asked for */
};

/* "local" or "ray", as the config is run: the option, else ROOST_ENGINE, else what the config says. */
const char *planning_engine(const struct invocation *invocation, const struct roost_config *config);

/* Reads the config and, when one is named, the cluster, and plans. When none is named, `otherwise`
 * (NULL = nothing) is planned against. `check` (NULL = none) tells the report what else is wrong with
 * the config, before the nodes of a live cluster are waited for. All faults are in the report. Returns
 * 0, or an exit status after saying why nothing could be tried. */
int planning_start(struct planning *planning, const struct invocation *invocation,
                   const char *otherwise,
                   void (*check)(const struct planning *planning,
                                 const struct invocation *invocation));

/* The same for placement groups: no component is placed, and a file without a `cluster` section will
 * do. */
int planning_start_groups(struct planning *planning, const struct invocation *invocation);
void planning_end(struct planning *planning);

#endif
