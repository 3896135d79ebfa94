/* config_node_groups.c - node groups and their env_configs, as others may read them. */
#include "config/config.h"
#include "config/variables.h"

size_t roost_config_label_count(const struct roost_config *config)
{
    size_t count = 0;
    for (int32_t r = 0; r < config->rule_count; r++)
        count += (size_t)config->rules[r].label_count;
    return count;
}

const char *roost_config_label(const struct roost_config *config, size_t index)
{
    for (int32_t r = 0; r < config->rule_count; r++) {
        const struct placement_rule *rule = &config->rules[r];
        if (index < (size_t)rule->label_count)
            return rule->labels[index].text.at; /* a copy that ends with NUL */
        index -= (size_t)rule->label_count;
    }
    return NULL;
}

size_t roost_config_node_group_count(const struct roost_config *config)
{
    return (size_t)config->node_group_count;
}

bool roost_config_node_group(const struct roost_config *config, size_t index,
                             struct roost_node_group_config *out)
{
    if (index >= (size_t)config->node_group_count)
        return false;
    const struct node_group_config *group = &config->node_groups[index];
    struct strview type = group->hardware_type.text;
    *out = (struct roost_node_group_config){
        .label = group->label,
        .hardware_type = type.len ? type.at : NULL,
        .hardware_type_len = type.len,
        .ignores_hardware = group->ignores_hardware,
        .env_count = (size_t)group->env_config_count,
    };
    return true;
}

/* As rankset_next, "all" being every node of the config. */
static int32_t next_node(const struct roost_config *config, const struct rankset *ranks,
                         int32_t from)
{
    if (!ranks->is_all)
        return rankset_next(ranks, from);
    return from < config->num_nodes ? from : -1;
}

int32_t roost_config_node_group_node(const struct roost_config *config, size_t index, int32_t from)
{
    return index < (size_t)config->node_group_count
               ? next_node(config, &config->node_groups[index].node_ranks, from)
               : -1;
}

static const struct env_config *find_env(const struct roost_config *config, size_t group,
                                         size_t env)
{
    return group < (size_t)config->node_group_count &&
                   env < (size_t)config->node_groups[group].env_config_count
               ? &config->node_groups[group].env_configs[env]
               : NULL;
}

bool roost_config_env_config(const struct roost_config *config, size_t group, size_t env,
                             struct roost_env_config *out)
{
    const struct env_config *it = find_env(config, group, env);
    if (!it)
        return false;
    struct strview path = it->interpreter.text;
    *out = (struct roost_env_config){path.len ? path.at : NULL, path.len, (size_t)it->var_count};
    return true;
}

int32_t roost_config_env_node(const struct roost_config *config, size_t group, size_t env,
                              int32_t from)
{
    const struct env_config *it = find_env(config, group, env);
    if (!it)
        return -1;
    return it->node_ranks.is_all ? roost_config_node_group_node(config, group, from)
                                 : rankset_next(&it->node_ranks, from);
}

bool roost_config_env_var(const struct roost_config *config, size_t group, size_t env, size_t var,
                          struct roost_env_var *out)
{
    const struct env_config *it = find_env(config, group, env);
    if (!it || var >= (size_t)it->var_count)
        return false;
    struct strview name = it->vars[var].name.text, value = it->vars[var].value.text;
    *out = (struct roost_env_var){.name = name.at,
                                  .value = value.at,
                                  .name_len = name.len,
                                  .value_len = value.len,
                                  .is_secret = is_secret_name(name) || it->vars[var].value.secret};
    return true;
}
