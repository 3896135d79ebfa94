/* planning.h - what planning commands have in common: config, cluster, plan, in this order. */
#ifndef CLI_PLANNING_H
#define CLI_PLANNING_H

#include "cli/command.h"

/* Options that every planning command takes. */
#define PLANNING_OPTIONS                                                                           \
    {"cluster", "X", "plan against X: a spec (2x8), a snapshot file, or local"},                   \
        {"mode", "MODE", "hybrid or model-parallel; default: roost.mode, or hybrid"},              \
        {"no-isolate", NULL, "let every process see all accelerators of its node"},                \
        {"hydra", NULL, "follow the config's defaults list, from files beside it"},                \
        {"json", NULL, "print JSON"}, {"color", "WHEN", "auto (default), always or never"}

struct planning {
    struct roost_report *report;
    struct roost_config *config;   /* NULL = could not be read */
    struct roost_cluster *cluster; /* NULL = none was named, or it could not be read */
    struct roost_plan *plan;       /* NULL = it was not made */
    bool has_cluster;              /* one was named */
};

/* The engine that runs the config, "local" or "ray": the option, else ROOST_ENGINE, else the config's. */
const char *planning_engine(const struct invocation *invocation, const struct roost_config *config);

/* The nodes of the live Ray cluster as a snapshot, which the caller frees. Waits until there are as many
 * as the config (may be NULL) wants. With `is_for_run` it leaves out the warnings that the run's bridge
 * gives itself. NULL after it added the reason to the report. */
char *planning_ask_ray(const struct invocation *invocation, const struct roost_config *config,
                       bool is_for_run, struct roost_report *report);

/* In what a command differs from `roost plan`, which is all zero. */
struct planning_options {
    /* Plan against this cluster when the user names none. */
    const char *default_cluster;
    /* The plan will be run: without --engine, the engine that runs it decides whether to plan against
     * the live Ray cluster. Otherwise only --engine does. */
    bool is_for_run;
    /* A config that has placement groups needs no `cluster` section. */
    bool takes_placement_groups_alone;
    /* Adds what else is wrong with the config to planning->report. Called before planning waits for
     * the nodes of a live cluster, which may take minutes. */
    void (*check)(const struct planning *planning, const struct invocation *invocation);
};

/* Reads the config and the cluster, if there is one, and makes the plan. All faults go to
 * planning->report. Returns 0; or, after it printed why it could not begin, an exit status. */
int planning_start(struct planning *planning, const struct invocation *invocation,
                   const struct planning_options *options);

/* The same for placement groups: places no component. The config needs no `cluster` section. */
int planning_start_placement_groups(struct planning *planning, const struct invocation *invocation);
void planning_end(struct planning *planning);

#endif
