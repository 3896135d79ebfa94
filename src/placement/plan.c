/* plan.c - bind every rule -> place every component: the steps of roost_plan_new. */
#include "placement/plan.h"

#include <stdlib.h>
#include <string.h>

#include "placement/component.h"
#include "placement/model_parallel.h"
#include "placement/totals.h"

const char *roost_plan_mode_word(enum roost_plan_mode mode)
{
    static const char *const words[] = {"hybrid", "collocated", "disaggregated", "auto"};
    return words[mode];
}

const char *roost_strategy_word(enum roost_strategy strategy)
{
    static const char *const words[] = {"flexible", "packed", "node"};
    return words[strategy];
}

const char *roost_local_rank_word(enum roost_local_rank rule)
{
    static const char *const words[] = {"rlinf", "torchrun", "zero", "device"};
    return words[rule];
}

/* Names and settings; the places come later. */
static bool name_components(struct roost_plan *plan, const struct roost_config *config,
                            const struct roost_plan_options *options, struct diag *diag)
{
    plan->components = arena_zeroed(&plan->arena, struct roost_component, config->component_count);
    if (!plan->components) {
        diag_nomem(diag);
        return false;
    }
    plan->component_count = config->component_count;
    for (int32_t c = 0; c < config->component_count; c++) {
        struct roost_component *component = &plan->components[c];
        component->name = arena_copy(&plan->arena, sv_from(config->components[c].name));
        if (!component->name) {
            diag_nomem(diag);
            return false;
        }
        const struct launch_config *launch = config_find_launch(config, config->components[c].name);
        component->isolate_accelerator =
            !options->shares_accelerators && !(launch && launch->is_shared);
        if (launch)
            component->local_rank_rule = (enum roost_local_rank)launch->local_rank;
    }
    return true;
}

/* Components that share a rule have equal columns but for isolation: they are computed once. */
static const struct roost_component *find_twin(const struct roost_plan *plan,
                                               const struct roost_config *config, int32_t index)
{
    for (int32_t c = 0; c < index; c++)
        if (config->components[c].rule == config->components[index].rule &&
            plan->components[c].isolate_accelerator ==
                plan->components[index].isolate_accelerator &&
            plan->components[c].strategy != ROOST_STRATEGY_PACKED && plan->components[c].world_size)
            return &plan->components[c];
    return NULL;
}

static void copy_twin(struct roost_component *to, const struct roost_component *from)
{
    const char *name = to->name;
    enum roost_local_rank rule = to->local_rank_rule;
    *to = *from;
    to->name = name;
    to->local_rank_rule = rule;
}

static bool is_first_of_rule(const struct roost_config *config, int32_t index)
{
    for (int32_t c = 0; c < index; c++)
        if (config->components[c].rule == config->components[index].rule)
            return false;
    return true;
}

static void place_hybrid(struct roost_plan *plan, const struct roost_config *config,
                         const struct roost_cluster *cluster, const struct bound_rule *rules,
                         const bool *is_placed, struct diag *diag)
{
    for (int32_t c = 0; c < plan->component_count; c++) {
        const struct bound_rule *rule = &rules[config->components[c].rule];
        struct roost_component *component = &plan->components[c];
        struct row_context context = {
            .cluster = cluster, .arena = &plan->arena, .diag = diag, .name = component->name};
        if (!rule->is_good && rule->is_bound && is_first_of_rule(config, c))
            component_check(&context, rule);
        if (!rule->is_good || (is_placed && is_placed[c]))
            continue;
        const struct roost_component *twin = find_twin(plan, config, c);
        if (twin) {
            copy_twin(component, twin);
            continue;
        }
        component_place(&context, rule, component);
    }
}

/* Whether the cluster has the config's groups, as one that was made with it has: in their order. */
static bool has_node_groups(const struct roost_config *config, const struct roost_cluster *cluster)
{
    bool is_same = cluster->node_group_count >= config->node_group_count;
    for (int32_t g = 0; is_same && g < config->node_group_count; g++)
        is_same = config->node_groups[g].label &&
                  strcmp(config->node_groups[g].label, cluster->node_groups[g].label) == 0;
    return is_same;
}

/* A group that the config declares is missing only where the cluster was made without the config. */
static bool has_declared(const struct placement_rule *rule, const struct roost_config *config,
                         const struct roost_cluster *cluster, struct diag *diag)
{
    for (int32_t i = 0; i < rule->label_count; i++) {
        const struct word *label = &rule->labels[i];
        if (cluster_find_node_group(cluster, label->text) ||
            !config_find_node_group(config, label->text))
            continue;
        diag_error(diag, ROOST_ERR_REFERENCE, label->at,
                   "the config declares node group '%s', but there is no node group '%s' in the "
                   "cluster",
                   quote(label->text).text, quote(label->text).text);
        diag_hint(diag, "make the cluster with this config: pass it to Cluster as cluster_cfg");
        return false;
    }
    return true;
}

/* False when the rules come to more than a plan may be; what is wrong with each was reported. */
static bool bind_rules(struct bound_rule *rules, struct arena *scratch,
                       const struct roost_config *config, const struct roost_cluster *cluster,
                       struct diag *diag)
{
    struct text_size *sizes = arena_zeroed(scratch, struct text_size, config->rule_count);
    if (!sizes) {
        diag_nomem(diag);
        return false;
    }
    bool is_ours = has_node_groups(config, cluster);
    for (int32_t r = 0; r < config->rule_count; r++) {
        if (is_ours || has_declared(&config->rules[r], config, cluster, diag))
            rule_bind(&rules[r], &config->rules[r], cluster, diag);
        if (rules[r].is_bound)
            sizes[r] = text_size(&rules[r].text);
    }
    return totals_check(config, sizes, diag);
}

static void place_all(struct roost_plan *plan, const struct roost_config *config,
                      const struct roost_cluster *cluster, const struct roost_plan_options *options,
                      struct diag *diag)
{
    struct arena scratch = ARENA_INIT;
    struct bound_rule *rules = arena_zeroed(&scratch, struct bound_rule, config->rule_count);
    if (!rules || !name_components(plan, config, options, diag)) {
        if (!rules)
            diag_nomem(diag);
        arena_release(&scratch);
        return;
    }
    bool *is_placed = NULL;
    bool is_small = bind_rules(rules, &scratch, config, cluster, diag);
    bool is_model = options->mode == ROOST_MODE_MODEL_PARALLEL;
    if (is_small && is_model) {
        is_placed = arena_zeroed(&scratch, bool, config->component_count);
        if (is_placed)
            model_parallel_place(plan, config, cluster, rules, is_placed, diag);
        else
            diag_nomem(diag);
    }
    if (is_small && (!is_model || is_placed))
        place_hybrid(plan, config, cluster, rules, is_placed, diag);
    for (int32_t r = 0; r < config->rule_count; r++)
        rule_release(&rules[r]);
    arena_release(&scratch);
}

/* Only a cluster that was made without this config can have another number of nodes. */
static bool check_num_nodes(const struct roost_config *config, const struct roost_cluster *cluster,
                            struct diag *diag)
{
    if (config->num_nodes == 0 || cluster->is_described || config->num_nodes == cluster->node_count)
        return true;
    diag_error(diag, ROOST_ERR_FIT, config->num_nodes_at,
               "num_nodes is %d, but the cluster to place on has %d", (int)config->num_nodes,
               (int)cluster->node_count);
    diag_hint(diag, "set num_nodes to %d, or make the cluster with this config",
              (int)cluster->node_count);
    return false;
}

struct roost_plan *roost_plan_new(const struct roost_config *config,
                                  const struct roost_cluster *cluster,
                                  const struct roost_plan_options *options,
                                  struct roost_report *report, struct roost_error *err)
{
    static const struct roost_plan_options defaults;
    struct diag diag = config_diag(config, report, err);
    struct roost_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        diag_nomem(&diag);
        return NULL;
    }
    if (check_num_nodes(config, cluster, &diag))
        place_all(plan, config, cluster, options ? options : &defaults, &diag);
    if (diag.errors == 0)
        return plan;
    roost_plan_free(plan);
    return NULL;
}

/* What a resource is can be known without a cluster: `node`, groups that ignore hardware, robots. */
static struct rank_bounds offline_bounds(const struct roost_config *config,
                                         const struct placement_rule *rule)
{
    struct rank_bounds bounds = {.label = "", .unit = "", .total = -1};
    bool is_hardware = rule->label_count > 0;
    for (int32_t i = 0; rule->has_labels && i < rule->label_count; i++) {
        struct strview label = rule->labels[i].text;
        const struct node_group_config *group = config_find_node_group(config, label);
        bool is_typed = group && group->hardware_type.text.len > 0;
        bounds.is_node |= sv_is(label, "node") || (group && group->ignores_hardware && !is_typed);
        is_hardware = is_hardware && is_typed;
    }
    bounds.is_known = rule->has_labels && (bounds.is_node || is_hardware);
    return bounds;
}

static bool check_labels(const struct roost_config *config, const struct placement_rule *rule,
                         struct arena *arena, struct diag *diag)
{
    const char **known = arena_zeroed(arena, const char *, config->node_group_count + 3);
    if (!known) {
        diag_nomem(diag);
        return false;
    }
    for (int32_t g = 0; g < config->node_group_count; g++)
        known[g] = config->node_groups[g].label;
    known[config->node_group_count] = "cluster";
    known[config->node_group_count + 1] = "node";
    for (int32_t i = 0; i < rule->label_count; i++) {
        const char **it = known;
        while (*it && !sv_is(rule->labels[i].text, *it))
            it++;
        int32_t first = *it ? 0 : i;
        while (!sv_equal(rule->labels[first].text, rule->labels[i].text))
            first++;
        if (!*it)
            say_unknown_node_group(&rule->labels[i], known, diag);
        else if (first < i)
            say_node_group_twice(&rule->labels[i], diag);
        if (!*it && !diag_wants_hint(diag))
            break; /* nobody would see what is reported of the others */
    }
    return true;
}

/* What of a rule can be judged without a cluster; false without memory. */
static bool check_rule(const struct roost_config *config, const struct placement_rule *rule,
                       struct diag *diag, struct text_size *out_size)
{
    struct arena scratch = ARENA_INIT;
    struct rank_text text;
    bool is_known = check_labels(config, rule, &scratch, diag);
    struct rank_bounds bounds = offline_bounds(config, rule);
    if (is_known && rule->has_text) {
        rank_text_read(&scratch, rule->text, diag, &text);
        rank_text_bind(&text, &bounds, diag);
        *out_size = text_size(&text);
        out_size->resources = 0; /* whether they are there is for a cluster to say */
    }
    arena_release(&scratch);
    return is_known;
}

enum roost_code roost_plan_check_texts(const struct roost_config *config,
                                       struct roost_report *report, struct roost_error *err)
{
    struct diag diag = config_diag(config, report, err);
    struct arena scratch = ARENA_INIT;
    struct text_size *sizes = arena_zeroed(&scratch, struct text_size, config->rule_count);
    if (!sizes)
        diag_nomem(&diag);
    bool is_good = sizes != NULL;
    for (int32_t r = 0; is_good && r < config->rule_count; r++)
        is_good = check_rule(config, &config->rules[r], &diag, &sizes[r]);
    if (is_good)
        totals_check(config, sizes, &diag);
    if (config->model)
        roles_check_named(config, &diag);
    arena_release(&scratch);
    return diag.first;
}

void roost_plan_free(struct roost_plan *plan)
{
    if (!plan)
        return;
    arena_release(&plan->arena);
    free(plan);
}

enum roost_plan_mode roost_plan_mode(const struct roost_plan *plan)
{
    return plan->mode;
}

size_t roost_plan_component_count(const struct roost_plan *plan)
{
    return (size_t)plan->component_count;
}

const struct roost_component *roost_plan_component(const struct roost_plan *plan, size_t index)
{
    return index < (size_t)plan->component_count ? &plan->components[index] : NULL;
}

static const struct roost_component *find(const struct roost_plan *plan, const char *name)
{
    for (int32_t c = 0; c < plan->component_count; c++)
        if (strcmp(plan->components[c].name, name) == 0)
            return &plan->components[c];
    return NULL;
}

const struct roost_component *roost_plan_find(const struct roost_plan *plan, const char *name)
{
    const struct roost_component *found = find(plan, name);
    /* Beside the critic's inference the actor's goes by its full name too, as in RLinf. */
    if (!found && plan->model_parallel && strcmp(name, "actor_inference") == 0 &&
        find(plan, "critic_inference"))
        found = find(plan, "inference");
    return found;
}

const struct roost_model_parallel *roost_plan_model_parallel(const struct roost_plan *plan)
{
    return plan->model_parallel;
}
