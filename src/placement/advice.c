/* advice.c - warnings about placements that are legal but look like mistakes. Reads a finished plan. */
#include <string.h>

#include "placement/occupancy.h"

static void say_idle(const struct roost_plan *plan, const struct roost_config *config,
                     const struct roost_cluster *cluster, struct diag *diag)
{
    struct occupancy occupancy;
    struct text list = TEXT_INIT;
    if (occupancy_init(&occupancy, plan, cluster) && occupancy.idle > 0) {
        occupancy_put_idle(&list, &occupancy, cluster);
        const char *where = text_string(&list);
        diag_warn(diag, ROOST_WARN_IDLE, (struct place){.source = &config->source},
                  "%d of %d accelerator%s %s idle (%s)", (int)occupancy.idle, (int)occupancy.total,
                  occupancy.total == 1 ? "" : "s", occupancy.idle == 1 ? "is" : "are",
                  where ? where : "...");
    }
    text_release(&list);
    occupancy_release(&occupancy);
}

/* The nodes an env_config is for. */
static const struct rankset *nodes_of(const struct node_group_config *group,
                                      const struct env_config *env)
{
    return env->node_ranks.is_all ? &group->node_ranks : &env->node_ranks;
}

/* before[n] = how many of the nodes before n the component is on. */
static void count_nodes(const struct roost_component *component, int32_t node_count,
                        int32_t *before)
{
    memset(before, 0, ((size_t)node_count + 1) * sizeof *before);
    for (int32_t p = 0; p < component->world_size; p++)
        before[component->cluster_node_rank[p] + 1] = 1;
    for (int32_t n = 0; n < node_count; n++)
        before[n + 1] += before[n];
}

static bool reaches(const int32_t *before, int32_t node_count, const struct rankset *nodes)
{
    if (nodes->is_all)
        return before[node_count] > 0;
    for (int32_t i = 0; i < nodes->count && nodes->ranges[i].first < node_count; i++) {
        int32_t last = nodes->ranges[i].last < node_count ? nodes->ranges[i].last : node_count - 1;
        if (before[last + 1] > before[nodes->ranges[i].first])
            return true;
    }
    return false;
}

/* The first process that comes to one of the nodes, but not through the group; -1 = none. */
static int32_t find_stranger(const struct roost_component *component, const char *label,
                             const struct rankset *nodes)
{
    for (int32_t p = 0; p < component->world_size; p++) {
        int32_t node_rank = component->cluster_node_rank[p];
        if (p > 0 && node_rank == component->cluster_node_rank[p - 1] &&
            component->node_group[p] == component->node_group[p - 1])
            continue;
        if (strcmp(component->node_groups[component->node_group[p]], label) != 0 &&
            (nodes->is_all || rankset_has(nodes, node_rank)))
            return p;
    }
    return -1;
}

/* env_configs apply to processes that come through their group; others on the same node get none.
 * Most env_configs are for nodes that a component is not on at all: those are passed over without a
 * look at its processes. */
static void say_other_labels(const struct roost_component *component, const int32_t *before,
                             int32_t node_count, struct place at, const struct roost_config *config,
                             struct diag *diag)
{
    for (int32_t g = 0; g < config->node_group_count; g++) {
        const struct node_group_config *group = &config->node_groups[g];
        for (int32_t e = 0; e < group->env_config_count; e++) {
            const struct rankset *nodes = nodes_of(group, &group->env_configs[e]);
            int32_t p = reaches(before, node_count, nodes)
                            ? find_stranger(component, group->label, nodes)
                            : -1;
            if (p < 0)
                continue;
            diag_warn(diag, ROOST_WARN_OTHER_LABEL, at,
                      "'%s' reaches node %d through '%s', so the env_configs of node group '%s' "
                      "(line %d) do not apply to it",
                      component->name, (int)component->cluster_node_rank[p],
                      component->node_groups[component->node_group[p]], group->label,
                      (int)group->env_configs[e].at.line);
            diag_hint(diag, "place it with node_group: %s to have them", group->label);
            return;
        }
    }
}

static bool has_env_configs(const struct roost_config *config)
{
    for (int32_t g = 0; g < config->node_group_count; g++)
        if (config->node_groups[g].env_config_count)
            return true;
    return false;
}

/* Without model-parallel placement nothing reads the sizes of rollout's model. A rollout whose processes
 * hold as many accelerators as a copy of it takes is what hybrid placement makes of the same wish. */
static void say_mode(const struct roost_plan *plan, const struct roost_config *config,
                     struct diag *diag)
{
    const struct roost_component *rollout = roost_plan_find(plan, "rollout");
    if (config->has_mode || config->is_mode_chosen || config->model || config->rollout_size < 2 ||
        !rollout || rollout->strategy == ROOST_STRATEGY_NODE || rollout->world_size == 0 ||
        rollout->first_hardware[1] - rollout->first_hardware[0] == config->rollout_size)
        return;
    diag_warn(
        diag, ROOST_WARN_MODE, config->rollout_at,
        "a copy of rollout's model takes %lld accelerators, but hybrid placement does not read "
        "this and gives each process %d",
        (long long)config->rollout_size,
        (int)(rollout->first_hardware[1] - rollout->first_hardware[0]));
    diag_hint(diag, "write 'mode: model-parallel' (or hybrid) below 'roost:', or pass --mode");
}

void roost_plan_advise(const struct roost_plan *plan, const struct roost_config *config,
                       const struct roost_cluster *cluster, struct roost_report *report)
{
    struct diag diag = config_diag(config, report, NULL);
    struct arena scratch = ARENA_INIT;
    int32_t *before = has_env_configs(config)
                          ? arena_array(&scratch, int32_t, (size_t)cluster->node_count + 1)
                          : NULL;
    for (int32_t c = 0; before && c < plan->component_count; c++) {
        const struct roost_component *component = &plan->components[c];
        count_nodes(component, cluster->node_count, before);
        say_other_labels(component, before, cluster->node_count, config->components[c].at, config,
                         &diag);
    }
    arena_release(&scratch);
    say_mode(plan, config, &diag);
    say_idle(plan, config, cluster, &diag);
}
