/* node_group_env.c - env_configs of a node group: variables and interpreter for some of its nodes. */
#include <stdlib.h>

#include "config/sections.h"
#include "config/variables.h"
#include "config/yaml11.h"

static bool read_variable(struct reader *reader, const struct node *item, struct env_config *env)
{
    if (item->kind != NODE_MAPPING) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(item),
                   "Each node env_var must be a dict, such as '- NAME: value'");
        diag_hint(reader->diag, "put a ':' and a blank between the name and the value");
        return false;
    }
    if (item->count != 1) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(item),
                   "each entry of env_vars holds exactly one key-value pair, not %d",
                   (int)item->count);
        diag_hint(reader->diag, "write every variable as an entry of its own: '- NAME: value'");
        return false;
    }
    const struct node *key = item->pairs[0].key;
    struct env_var var = {.name = {.text = key->text, .at = node_place(key)}};
    const struct node *value = read_value(reader, item->pairs[0].value);
    bool is_good = value && read_process_word(reader, value, "the value of a variable", &var.value);
    if (!is_variable_name(key->text)) {
        diag_error(reader->diag, ROOST_ERR_NAME, var.name.at,
                   "'%s' cannot be the name of an environment variable", quote(key->text).text);
        diag_hint(reader->diag, "use letters, digits and _, with no digit at the start");
        return false;
    }
    for (int32_t i = 0; i < env->var_count; i++) {
        if (sv_equal(env->vars[i].name.text, key->text)) {
            diag_error(reader->diag, ROOST_ERR_NAME, var.name.at,
                       "variable '%s' is listed twice for the same nodes; the first is at %s",
                       quote(key->text).text, place_name(env->vars[i].name.at).text);
            diag_hint(reader->diag, "keep one of the two");
            return false;
        }
    }
    if (!is_good)
        return false;
    yaml11_warn(value, reader->diag);
    if (is_roost_variable(key->text))
        diag_warn(reader->diag, ROOST_WARN_OVERRIDDEN, var.name.at,
                  "'%s' is set by roost for every process; this value is not used",
                  quote(key->text).text);
    env->vars[env->var_count++] = var;
    return true;
}

static void read_variables(struct reader *reader, const struct node *list, struct env_config *env)
{
    enum { VARS_MAX = 1024 };
    if (!want_sequence(reader, list, "'env_vars'"))
        return;
    if (list->count > VARS_MAX) {
        diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(list), "more than %d variables",
                   VARS_MAX);
        diag_hint(reader->diag, "remove %d of them, or set them in the program itself",
                  (int)list->count - VARS_MAX);
        return;
    }
    env->vars = read_array(reader, struct env_var, list->count);
    for (int32_t i = 0; env->vars && i < list->count; i++) {
        const struct node *item = read_value(reader, list->items[i]);
        if (item)
            read_variable(reader, item, env);
    }
}

/* The first rank of `ranks` that the group is known not to have, or -1. */
static int32_t find_stranger(const struct rankset *ranks, const struct node_group_config *group,
                             int32_t num_nodes)
{
    const struct rankset *own = &group->node_ranks;
    if (!group->has_ranks)
        return -1;
    int32_t k = 0; /* the group's range that may hold `at`; both lists rise */
    for (int32_t i = 0; i < ranks->count; i++) {
        struct rank_range range = ranks->ranges[i];
        if (own->is_all) {
            if (num_nodes > 0 && range.last >= num_nodes)
                return range.last;
            continue;
        }
        for (int64_t at = range.first; at <= range.last; at = (int64_t)own->ranges[k].last + 1) {
            while (k < own->count && own->ranges[k].last < at)
                k++;
            if (k == own->count || own->ranges[k].first > at)
                return (int32_t)at;
        }
    }
    return -1;
}

static void read_env_config(struct reader *reader, const struct node *item,
                            struct node_group_config *group, struct env_config *env)
{
    if (!want_mapping(reader, item, "each entry of 'env_configs'"))
        return;
    env->at = node_place(item);
    want_keys(reader, item, KEYS("node_ranks", "env_vars", "python_interpreter_path"),
              "env_configs");
    const struct node *vars = read_key(reader, item, "env_vars");
    if (vars)
        read_variables(reader, vars, env);
    const struct node *interpreter = read_key(reader, item, "python_interpreter_path");
    if (interpreter)
        read_word(reader, interpreter, "'python_interpreter_path'", &env->interpreter);
    const struct node *ranks = read_key(reader, item, "node_ranks");
    if (!ranks) {
        say_missing(reader, item, "node_ranks", "env_configs");
        return;
    }
    env->at = node_place(ranks);
    if (!read_ranks(reader, ranks, "'node_ranks'", &env->node_ranks))
        return;
    int32_t stranger = find_stranger(&env->node_ranks, group, reader->config->num_nodes);
    if (stranger >= 0) {
        diag_error(reader->diag, ROOST_ERR_FIT, env->at,
                   "Error parsing node_ranks of env_configs: node %d is not in node group '%s'",
                   (int)stranger, group->label ? group->label : "?");
        diag_hint(reader->diag, "name nodes of the group only, or write 'all'");
    }
}

/* A range of nodes and the env_config that claims it. */
struct claim {
    struct rank_range range;
    int32_t owner;
};

static int by_first(const void *a, const void *b)
{
    const struct claim *left = a, *right = b;
    if (left->range.first != right->range.first)
        return left->range.first < right->range.first ? -1 : 1;
    return (left->owner > right->owner) - (left->owner < right->owner);
}

/* No node may stand in two env_configs of a group. */
static void check_apart(struct reader *reader, const struct node_group_config *group)
{
    size_t count = 0;
    const struct rankset *own = &group->node_ranks;
    for (int32_t i = 0; i < group->env_config_count; i++)
        count += (size_t)group->env_configs[i].node_ranks.count + (size_t)own->count + 1;
    struct claim *claims = read_array(reader, struct claim, count);
    if (!claims)
        return;
    count = 0;
    for (int32_t i = 0; i < group->env_config_count; i++) {
        const struct rankset *ranks = &group->env_configs[i].node_ranks;
        if (ranks->is_all && own->is_all)
            claims[count++] = (struct claim){{0, ROOST_RANK_MAX}, i};
        for (int32_t k = 0; ranks->is_all && k < own->count; k++)
            claims[count++] = (struct claim){own->ranges[k], i};
        for (int32_t k = 0; k < ranks->count; k++)
            claims[count++] = (struct claim){ranks->ranges[k], i};
    }
    qsort(claims, count, sizeof *claims, by_first);
    struct claim widest = {{0, -1}, -1};
    for (size_t i = 0; i < count; i++) {
        if (claims[i].range.first <= widest.range.last && claims[i].owner != widest.owner) {
            int32_t late = claims[i].owner > widest.owner ? claims[i].owner : widest.owner;
            diag_error(reader->diag, ROOST_ERR_SCHEMA, group->env_configs[late].at,
                       "node %d of node group '%s' stands in two env_configs",
                       (int)claims[i].range.first, group->label ? group->label : "?");
            diag_hint(reader->diag, "put all variables of a node into one entry");
            return;
        }
        if (claims[i].range.last > widest.range.last)
            widest = claims[i];
    }
}

void node_group_env_configs(struct reader *reader, struct node_group_config *group,
                            const struct node *list)
{
    if (!want_sequence(reader, list, "'env_configs'"))
        return;
    group->env_configs = read_array(reader, struct env_config, list->count);
    for (int32_t i = 0; group->env_configs && i < list->count; i++) {
        const struct node *item = read_value(reader, list->items[i]);
        if (item)
            read_env_config(reader, item, group, &group->env_configs[group->env_config_count++]);
    }
    if (group->env_configs)
        check_apart(reader, group);
}
