/* roles.c - which components are actor, rollout, reward and so on, and what they hold. */
#include <string.h>

#include "placement/model_parallel_internal.h"

static int32_t find_component(const struct roost_config *config, const char *name)
{
    for (int32_t c = 0; c < config->component_count; c++)
        if (strcmp(config->components[c].name, name) == 0)
            return c;
    return -1;
}

/* Roles that are there, and those that must be. */
bool roles_find(struct model_parallel *mp, const struct bound_rule *rules)
{
    static const char *const names[] = {"actor",     "rollout", "reward",
                                        "inference", "critic",  "critic_inference"};
    static const char *const needed[] = {"Actor", "Rollout", "Reward"};
    bool is_good = true;
    for (int id = 0; id < ROLE_COUNT; id++) {
        struct role *role = &mp->roles[id];
        mp->names[id] = names[id];
        role->component = find_component(mp->config, names[id]);
        if (id == INFERENCE && role->component < 0) {
            role->component = find_component(mp->config, "actor_inference");
            mp->names[id] = role->component < 0 ? names[id] : "actor_inference";
        }
        if (role->component >= 0) {
            role->rule = &rules[mp->config->components[role->component].rule];
            is_good = is_good && role->rule->is_good;
            continue;
        }
        if (id > REWARD)
            continue;
        is_good = false;
        struct place at = mp->config->component_count ? mp->config->components[0].at : NOWHERE;
        diag_error(mp->diag, ROOST_ERR_SCHEMA, at,
                   "%s GPUs must be specified: model-parallel placement needs a component '%s'",
                   needed[id], names[id]);
        diag_hint(mp->diag, "place '%s', or plan with --mode hybrid", names[id]);
    }
    return is_good;
}

static bool check_units(struct model_parallel *mp, enum role_id id)
{
    const struct selection *selection = &mp->roles[id].rule->selection;
    bool is_accelerator = !selection->is_node;
    for (int32_t g = 0; g < selection->group_count; g++)
        is_accelerator = is_accelerator && selection->groups[g]->is_accelerator;
    if (is_accelerator)
        return true;
    diag_error(mp->diag, ROOST_ERR_HARDWARE, role_place(mp, id),
               "model-parallel placement puts '%s' on accelerators, but its ranks count %s",
               mp->names[id], selection->unit);
    const char *label = selection->groups[0]->label;
    if (strcmp(label, "cluster") == 0)
        diag_hint(mp->diag, "plan against a cluster with accelerators, or with --mode hybrid");
    else
        diag_hint(mp->diag, "leave 'node_group: %s' out for it, or plan with --mode hybrid", label);
    return false;
}

static bool check_contiguous(struct model_parallel *mp, enum role_id id)
{
    struct role *role = &mp->roles[id];
    const struct rank_text *text = &role->rule->text;
    for (int32_t i = 1; i < text->count; i++) {
        if (text->entries[i].resources.first == text->entries[i - 1].resources.last + 1)
            continue;
        diag_error(
            mp->diag, ROOST_ERR_RANK, text->entries[i].at,
            "ranks of '%s' must be contiguous in model-parallel placement, but '%s' leaves a gap",
            mp->names[id], quote(text->source.text).text);
        diag_hint(mp->diag, "use one range, such as %d-%d", (int)text->entries[0].resources.first,
                  (int)text->entries[text->count - 1].resources.last);
        return false;
    }
    role->ranks = (struct rank_range){text->entries[0].resources.first,
                                      text->entries[text->count - 1].resources.last};
    role->count = (int32_t)range_size(role->ranks);
    return true;
}

static bool find_physical(struct model_parallel *mp, enum role_id id)
{
    struct role *role = &mp->roles[id];
    const struct selection *selection = &role->rule->selection;
    const struct node_group *all = cluster_find_group(mp->cluster, SV("cluster"));
    role->physical = arena_array(&mp->scratch, int32_t, role->count);
    if (!role->physical) {
        diag_nomem(mp->diag);
        return false;
    }
    int32_t member = 0;
    for (int32_t i = 0; i < role->count; i++) {
        int32_t rank = role->ranks.first + i;
        member = selection_member(selection, rank, member);
        role->physical[i] = all->first_hw_of_member[selection->node_of_member[member]] + rank -
                            selection->first_hw_of_member[member];
    }
    return true;
}

bool roles_measure(struct model_parallel *mp)
{
    bool is_good = true;
    for (enum role_id id = 0; id < ROLE_COUNT; id++)
        if (has(mp, id))
            is_good =
                check_units(mp, id) && check_contiguous(mp, id) && find_physical(mp, id) && is_good;
    return is_good;
}

bool roles_overlap(struct model_parallel *mp, enum role_id *out_a, enum role_id *out_b,
                   bool *out_failed)
{
    int64_t total = mp->cluster->accelerator_count;
    uint8_t *owner = arena_zeroed(&mp->scratch, uint8_t, total);
    *out_failed = !owner;
    if (!owner) {
        diag_nomem(mp->diag);
        return true;
    }
    for (enum role_id id = 0; id < ROLE_COUNT; id++) {
        if (!has(mp, id) || id == REWARD)
            continue;
        for (int32_t i = 0; i < mp->roles[id].count; i++) {
            uint8_t *mark = &owner[mp->roles[id].physical[i]];
            if (*mark && *mark != id + 1) {
                *out_a = (enum role_id)(*mark - 1);
                *out_b = id;
                return true;
            }
            *mark = (uint8_t)(id + 1);
        }
    }
    return false;
}

bool role_equals(const struct role *a, const struct role *b)
{
    return a->count == b->count &&
           memcmp(a->physical, b->physical, (size_t)a->count * sizeof *a->physical) == 0;
}
