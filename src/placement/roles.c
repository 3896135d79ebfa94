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

static const char *const role_names[] = {"actor",     "rollout", "reward",
                                         "inference", "critic",  "critic_inference"};

void roles_check_named(const struct roost_config *config, struct diag *diag)
{
    static const char *const needed[] = {"Actor", "Rollout", "Reward"};
    for (int id = ACTOR; id <= REWARD; id++) {
        if (find_component(config, role_names[id]) >= 0)
            continue;
        diag_error(diag, ROOST_ERR_SCHEMA,
                   config->component_count ? config->components[0].at : NOWHERE,
                   "%s GPUs must be specified: model-parallel placement needs a component '%s'",
                   needed[id], role_names[id]);
        diag_hint(diag, "place '%s', or plan with --mode hybrid", role_names[id]);
    }
}

/* Roles that are there, and those that must be. */
void roles_find(struct model_parallel *mp, const struct bound_rule *rules)
{
    const char *const *names = role_names;
    roles_check_named(mp->config, mp->diag);
    for (int id = 0; id < ROLE_COUNT; id++) {
        struct role *role = &mp->roles[id];
        mp->names[id] = names[id];
        role->component = find_component(mp->config, names[id]);
        if (id == INFERENCE && role->component < 0) {
            role->component = find_component(mp->config, "actor_inference");
            mp->names[id] = role->component < 0 ? names[id] : "actor_inference";
        }
        if (role->component >= 0)
            role->rule = &rules[mp->config->components[role->component].rule];
    }
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
    return true;
}

static void find_physical(struct model_parallel *mp, enum role_id id)
{
    struct role *role = &mp->roles[id];
    const struct selection *selection = &role->rule->selection;
    const struct node_group *all = cluster_find_node_group(mp->cluster, SV("cluster"));
    role->physical = arena_array(&mp->scratch, int32_t, range_size(role->ranks));
    if (!role->physical) {
        diag_nomem(mp->diag);
        return;
    }
    role->count = (int32_t)range_size(role->ranks);
    int32_t member = 0;
    for (int32_t i = 0; i < role->count; i++) {
        int32_t rank = role->ranks.first + i;
        member = selection_member(selection, rank, member);
        role->physical[i] = all->first_hw_of_member[selection->node_of_member[member]] + rank -
                            selection->first_hw_of_member[member];
    }
}

void roles_measure(struct model_parallel *mp)
{
    for (enum role_id id = 0; id < ROLE_COUNT; id++)
        if (has(mp, id) && mp->roles[id].rule->is_good && check_units(mp, id) &&
            check_contiguous(mp, id))
            find_physical(mp, id);
}

bool roles_overlap(struct model_parallel *mp, uint8_t out_shared[ROLE_COUNT])
{
    uint8_t *owners = arena_zeroed(&mp->scratch, uint8_t, mp->cluster->accelerator_count);
    memset(out_shared, 0, ROLE_COUNT);
    if (!owners) {
        diag_nomem(mp->diag);
        return false;
    }
    for (enum role_id id = 0; id < ROLE_COUNT; id++) {
        uint8_t met = 0;
        for (int32_t i = 0; id != REWARD && i < mp->roles[id].count; i++) {
            uint8_t *mark = &owners[mp->roles[id].physical[i]];
            met |= *mark;
            *mark = (uint8_t)(*mark | 1u << id);
        }
        for (enum role_id a = 0; a < id; a++)
            if (met & 1u << a)
                out_shared[a] = (uint8_t)(out_shared[a] | 1u << id);
    }
    return true;
}

bool role_equals(const struct role *a, const struct role *b)
{
    return a->count == b->count &&
           memcmp(a->physical, b->physical, (size_t)a->count * sizeof *a->physical) == 0;
}
