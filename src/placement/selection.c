/* selection.c - node groups, in the order a component names them, as one row of resources. A single
 * group is used as it is; several are joined. */
#include <string.h>

#include "base/search.h"
#include "config/hardware.h"
#include "placement/plan.h"

static const char *unit_word(const struct node_group *group)
{
    return !group->hardware_type   ? "nodes"
           : group->is_accelerator ? "accelerators"
                                   : group->hardware_type;
}

void say_unknown_node_group(const struct word *label, const char *const *known, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_REFERENCE, label->at, "there is no node group '%s'",
               quote(label->text).text);
    const char *near = diag_wants_hint(diag) ? nearest_word(label->text, known) : NULL;
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "define it under cluster.node_groups, or use 'cluster' or 'node'");
}

void say_node_group_twice(const struct word *label, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_NAME, label->at, "node group '%s' is named twice",
               quote(label->text).text);
    diag_hint(diag, "name it once");
}

static void say_unknown(const struct roost_cluster *cluster, const struct word *label,
                        struct diag *diag)
{
    struct arena scratch = ARENA_INIT;
    const char **known = arena_zeroed(&scratch, const char *, cluster->node_group_count + 1);
    for (int32_t g = 0; known && g < cluster->node_group_count; g++)
        known[g] = cluster->node_groups[g].label;
    if (known)
        say_unknown_node_group(label, known, diag);
    else
        diag_nomem(diag);
    arena_release(&scratch);
}

static bool find_groups(struct selection *selection, struct arena *arena,
                        const struct roost_cluster *cluster, const struct word *labels,
                        int32_t count, struct diag *diag)
{
    const struct word all = {.text = SV("cluster")};
    if (count == 0) {
        labels = &all;
        count = 1;
    }
    selection->groups = arena_array(arena, const struct node_group *, count);
    if (!selection->groups) {
        diag_nomem(diag);
        return false;
    }
    bool is_good = true;
    for (int32_t i = 0; i < count; i++) {
        const struct node_group *group = cluster_find_node_group(cluster, labels[i].text);
        selection->groups[selection->group_count++] = group;
        if (!group)
            say_unknown(cluster, &labels[i], diag);
        is_good = is_good && group && !group->is_broken;
        if (!group && !diag_wants_hint(diag))
            return false; /* nobody would see what is reported of the others */
        for (int32_t k = 0; group && k < i; k++) {
            if (selection->groups[k] != group)
                continue;
            say_node_group_twice(&labels[i], diag);
            is_good = false;
            break;
        }
    }
    return is_good;
}

/* A group with a hardware type but none of it, or without a single node: only a config whose
 * num_nodes is wrong can have that. */
static bool check_units(const struct selection *selection, const struct word *labels,
                        int32_t label_count, struct diag *diag)
{
    for (int32_t i = 0; i < selection->group_count; i++) {
        const struct node_group *group = selection->groups[i];
        if (selection->is_node ? group->member_count > 0 : node_group_size(group) > 0)
            continue;
        struct place at = label_count ? labels[i].at : NOWHERE;
        if (selection->is_node) {
            diag_error(diag, ROOST_ERR_FIT, at, "node group '%s' has no node of this cluster",
                       group->label);
            diag_hint(diag, "name nodes that are there in its node_ranks");
            return false;
        }
        diag_error(diag, ROOST_ERR_HARDWARE, at, "node group '%s' has no %s", group->label,
                   unit_word(group));
        const char *near = group->is_accelerator
                               ? NULL
                               : nearest_word(sv_from(group->hardware_type), hardware_type_names);
        if (near && strcmp(near, group->hardware_type) != 0)
            diag_hint(diag, "did you mean hardware_type '%s'?", near);
        else
            diag_hint(diag, group->is_accelerator
                                ? "plan against nodes that have some, or use the "
                                  "node group 'node'"
                                : "declare it under 'hardware' of a node group; for "
                                  "accelerators leave hardware_type out");
        return false;
    }
    return true;
}

/* Ranks that count nodes name each node once. */
static bool check_disjoint(const struct selection *selection, const struct word *labels,
                           struct diag *diag)
{
    for (int32_t i = 1; i < selection->group_count; i++) {
        for (int32_t k = 0; k < i; k++) {
            const struct node_group *late = selection->groups[i], *early = selection->groups[k];
            int32_t a = 0, b = 0;
            while (a < late->member_count && b < early->member_count &&
                   late->node_of_member[a] != early->node_of_member[b]) {
                if (late->node_of_member[a] < early->node_of_member[b])
                    a++;
                else
                    b++;
            }
            if (a == late->member_count || b == early->member_count)
                continue;
            diag_error(
                diag, ROOST_ERR_RANK, labels[i].at,
                "node groups '%s' and '%s' share node %d, so ranks that count nodes would name "
                "it twice",
                early->label, late->label, (int)late->node_of_member[a]);
            diag_hint(diag, "use groups without common nodes, or the node group 'node'");
            return false;
        }
    }
    return true;
}

static void warn_mixed(const struct selection *selection, const struct word *labels,
                       struct diag *diag)
{
    for (int32_t i = 0; selection->is_node && i < selection->group_count; i++) {
        if (!selection->groups[i]->hardware_type)
            continue;
        diag_warn(
            diag, ROOST_WARN_MIXED, labels[i].at,
            "node group '%s' counts %s, but beside a group that counts nodes its ranks are nodes "
            "too",
            selection->groups[i]->label, unit_word(selection->groups[i]));
        return;
    }
}

static bool join(struct selection *selection, struct arena *arena, struct diag *diag)
{
    for (int32_t i = 0; i < selection->group_count; i++)
        selection->member_count += selection->groups[i]->member_count;
    size_t count = (size_t)selection->member_count;
    int32_t *node = arena_array(arena, int32_t, count);
    int32_t *first = arena_array(arena, int32_t, count + 1);
    int32_t *owner = arena_array(arena, int32_t, count);
    if (!node || !first || !owner) {
        diag_nomem(diag);
        return false;
    }
    int32_t at = 0, next = 0;
    for (int32_t i = 0; i < selection->group_count; i++) {
        const struct node_group *group = selection->groups[i];
        for (int32_t m = 0; m < group->member_count; m++, at++) {
            node[at] = group->node_of_member[m];
            owner[at] = i;
            first[at] = next;
            next += selection->is_node
                        ? 1
                        : group->first_hw_of_member[m + 1] - group->first_hw_of_member[m];
        }
    }
    first[at] = next;
    selection->node_of_member = node;
    selection->first_hw_of_member = first;
    selection->group_of_member = owner;
    return true;
}

bool selection_init(struct selection *selection, struct arena *arena,
                    const struct roost_cluster *cluster, const struct word *labels,
                    int32_t label_count, struct diag *diag)
{
    *selection = (struct selection){0};
    if (!find_groups(selection, arena, cluster, labels, label_count, diag))
        return false;
    const struct node_group *only = selection->groups[0];
    selection->no_accelerator_hint = cluster->no_accelerator_hint;
    for (int32_t i = 0; i < selection->group_count; i++)
        selection->is_node |= !selection->groups[i]->hardware_type;
    selection->unit = selection->is_node ? "nodes" : unit_word(only);
    if (!check_units(selection, labels, label_count, diag))
        return false;
    if (selection->group_count > 1) {
        if (selection->is_node && !check_disjoint(selection, labels, diag))
            return false;
        warn_mixed(selection, labels, diag);
        return join(selection, arena, diag);
    }
    selection->member_count = only->member_count;
    selection->node_of_member = only->node_of_member;
    selection->first_hw_of_member = only->first_hw_of_member;
    return true;
}

bool selection_by_node(struct selection *selection, struct arena *arena, struct diag *diag)
{
    struct word *labels = arena_zeroed(arena, struct word, selection->group_count);
    int32_t *first = arena_array(arena, int32_t, (size_t)selection->member_count + 1);
    if (!labels || !first) {
        diag_nomem(diag);
        return false;
    }
    for (int32_t m = 0; m <= selection->member_count; m++)
        first[m] = m;
    selection->is_node = true;
    selection->unit = "nodes";
    selection->first_hw_of_member = first;
    return check_disjoint(selection, labels, diag);
}

int32_t selection_member(const struct selection *selection, int32_t rank, int32_t near)
{
    const int32_t *first = selection->first_hw_of_member;
    if (first[near] <= rank && rank < first[near + 1])
        return near;
    if (first[near + 1] <= rank && near + 2 <= selection->member_count && rank < first[near + 2])
        return near + 1;
    return SEARCH(selection->member_count - 1, at, first[at + 1] <= rank);
}
