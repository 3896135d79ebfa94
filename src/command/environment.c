/* environment.c - the layers of variables. environment_new finds once the names that a component's processes
 * can set. A recipe (recipe.c) then fills them for processes of one kind. Keeps: every name once, sorted; the
 * same input gives the same bytes. */
#include "command/environment.h"

#include <stdlib.h>
#include <string.h>

#include "command/expand.h"
#include "command/interfaces.h"
#include "command/path_merge.h"

/* --- what the caller has --- */

static struct strview name_of(const char *entry)
{
    return (struct strview){entry, strcspn(entry, "=")};
}

static struct strview value_of(const char *entry)
{
    const char *at = entry ? strchr(entry, '=') : NULL;
    return sv_from(at ? at + 1 : "");
}

const char *environment_find(const char *const *env, const char *name)
{
    for (; env && *env; env++)
        if (sv_is(name_of(*env), name))
            return value_of(*env).at;
    return NULL;
}

/* Ports and addresses of another run, and descriptors that the caller was handed, are not for our
 * processes; what is not NAME=value is nothing anybody could read. */
static bool is_inheritable(const char *entry)
{
    struct strview name = name_of(entry);
    return name.len > 0 && entry[name.len] == '=' && !sv_starts(name, "ROOST_PORT_") &&
           !sv_starts(name, "ROOST_ADDRESSES_") && !sv_is(name, "LISTEN_FDS") &&
           !sv_is(name, "LISTEN_PID") && !sv_is(name, "LISTEN_FDNAMES");
}

/* --- env_configs by node --- */

int32_t env_map_find(const struct env_map *map, int32_t node)
{
    int32_t member = node_group_member_from(map->group, node);
    bool is_there = member < map->group->member_count && map->group->node_of_member[member] == node;
    return is_there ? map->env_of_member[member] : -1;
}

static bool map_fill(struct env_map *map, struct arena *arena)
{
    const struct node_group *group = map->group;
    map->env_of_member = arena_array(arena, int32_t, group->member_count);
    if (!map->env_of_member)
        return false;
    for (int32_t m = 0; m < group->member_count; m++)
        map->env_of_member[m] = -1;
    for (int32_t e = 0; e < map->config->env_config_count; e++) {
        const struct rankset *ranks = &map->config->env_configs[e].node_ranks;
        for (int32_t m = 0; ranks->is_all && m < group->member_count; m++)
            map->env_of_member[m] = e;
        for (int32_t r = 0; r < ranks->count; r++)
            for (int32_t m = node_group_member_from(group, ranks->ranges[r].first);
                 m < group->member_count && group->node_of_member[m] <= ranks->ranges[r].last; m++)
                map->env_of_member[m] = e;
    }
    return true;
}

struct env_map *env_maps_new(struct arena *arena, const struct launch_options *options,
                             int32_t *out_count)
{
    const struct roost_config *config = options->config;
    struct env_map *maps = arena_array(arena, struct env_map, config->node_group_count + 1);
    int32_t count = 0;
    for (int32_t g = 0; maps && g < config->node_group_count; g++) {
        const struct node_group_config *group = &config->node_groups[g];
        if (group->env_config_count == 0)
            continue;
        maps[count] = (struct env_map){
            .config = group,
            .group = cluster_find_node_group(options->cluster, sv_from(group->label))};
        if (!maps[count].group)
            continue;
        if (!map_fill(&maps[count++], arena))
            return NULL;
    }
    *out_count = count;
    return maps;
}

/* --- the names of a component --- */

static int by_text(const void *a, const void *b)
{
    return sv_compare(*(const struct strview *)a, *(const struct strview *)b);
}

int32_t environment_slot(const struct environment *it, struct strview name)
{
    const struct strview *found =
        it->name_count ? bsearch(&name, it->names, (size_t)it->name_count, sizeof name, by_text)
                       : NULL;
    return found ? (int32_t)(found - it->names) : -1;
}

static size_t count_names(const struct environment *it, const struct component_commands *component,
                          const char *const *extra)
{
    const struct launch_config *launch = component->launch;
    size_t count = VARIABLE_COUNT + INTERFACES_EACH * ROOST_ACCELERATOR_COUNT + 1;
    while (extra && *extra++)
        count++;
    if (launch)
        count += (size_t)launch->env_count + 2 * (size_t)launch->port_count;
    count += (size_t)component->list_count;
    for (int32_t g = 0; g < component->placed->node_group_count; g++)
        for (int32_t e = 0;
             it->env_of_group[g] && e < it->env_of_group[g]->config->env_config_count; e++)
            count += (size_t)it->env_of_group[g]->config->env_configs[e].var_count;
    return count;
}

static void add_name(struct environment *it, struct strview name)
{
    it->names[it->name_count++] = name;
}

static bool add_ports(struct environment *it, const struct launch_config *launch,
                      struct arena *arena)
{
    for (int32_t i = 0; i < 2 * launch->port_count; i++) {
        const char *name =
            percent_port_variable(arena, sv_from(launch->ports[i / 2].name), i % 2 == 1);
        if (!name)
            return false;
        add_name(it, sv_from(name));
    }
    return true;
}

static void add_env_configs(struct environment *it, int32_t groups)
{
    for (int32_t g = 0; g < groups; g++) {
        const struct node_group_config *config =
            it->env_of_group[g] ? it->env_of_group[g]->config : NULL;
        for (int32_t e = 0; config && e < config->env_config_count; e++)
            for (int32_t v = 0; v < config->env_configs[e].var_count; v++)
                if (!is_roost_variable(config->env_configs[e].vars[v].name.text))
                    add_name(it, config->env_configs[e].vars[v].name.text);
    }
}

/* Where RLINF_COMM_NET_DEVICES is copied to; it stands among the names itself then. */
static void add_interfaces(struct environment *it, const char *const *env)
{
    bool has_any = environment_find(env, INTERFACES_SOURCE) != NULL;
    for (int32_t i = 0; !has_any && i < it->name_count; i++)
        has_any = sv_is(it->names[i], INTERFACES_SOURCE);
    it->has_interfaces = has_any;
    if (!has_any)
        return;
    add_name(it, SV(INTERFACES_SOURCE));
    for (int type = 0; type < ROOST_ACCELERATOR_COUNT; type++)
        for (int i = 0; it->types & 1U << type && i < INTERFACES_EACH; i++) {
            const char *name = interface_variable((enum roost_accelerator)type, i);
            if (name)
                add_name(it, sv_from(name));
        }
}

static void settle_names(struct environment *it)
{
    qsort(it->names, (size_t)it->name_count, sizeof *it->names, by_text);
    int32_t kept = 0;
    for (int32_t i = 0; i < it->name_count; i++)
        if (kept == 0 || !sv_equal(it->names[i], it->names[kept - 1]))
            it->names[kept++] = it->names[i];
    it->name_count = kept;
}

static bool find_names(struct environment *it, const struct component_commands *component,
                       const struct launch_options *options, struct arena *arena)
{
    const struct launch_config *launch = component->launch;
    const char *const *extra = options->extra_env;
    it->names = arena_array(arena, struct strview, count_names(it, component, extra));
    if (!it->names)
        return false;
    for (; extra && *extra; extra++)
        add_name(it, name_of(*extra));
    for (int v = 0; v < VARIABLE_COUNT; v++)
        if (variable_types((enum variable)v) & it->types)
            add_name(it, sv_from(variable_name((enum variable)v)));
    for (int32_t i = 0; launch && i < launch->env_count; i++)
        add_name(it, launch->env[i].name.text);
    if (launch && !add_ports(it, launch, arena))
        return false;
    for (int32_t i = 0; i < component->list_count; i++)
        add_name(it, sv_from(component->lists[i].variable));
    add_env_configs(it, component->placed->node_group_count);
    add_interfaces(it, options->env);
    settle_names(it);
    return true;
}

/* Shares the caller's variables out: those that some process sets itself, and the rest. */
static bool inherit(struct environment *it, const char *const *env, struct arena *arena)
{
    size_t count = 0;
    while (env && env[count])
        count++;
    it->inherited = arena_zeroed(arena, const char *, it->name_count);
    it->base_env = arena_array(arena, const char *, count + 1);
    if (!it->inherited || !it->base_env)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_inheritable(env[i]))
            continue;
        int32_t slot = environment_slot(it, name_of(env[i]));
        if (slot < 0)
            it->base_env[kept++] = env[i];
        else if (!it->inherited[slot])
            it->inherited[slot] = env[i];
    }
    it->base_env[kept] = NULL;
    return true;
}

static bool find_maps(struct environment *it, const struct roost_component *placed,
                      const struct env_map *maps, int32_t map_count, struct arena *arena)
{
    it->env_of_group = arena_zeroed(arena, const struct env_map *, placed->node_group_count);
    for (int32_t g = 0; it->env_of_group && g < placed->node_group_count; g++)
        for (int32_t m = 0; m < map_count; m++)
            if (strcmp(maps[m].group->label, placed->node_groups[g]) == 0)
                it->env_of_group[g] = &maps[m];
    return it->env_of_group != NULL;
}

struct environment *environment_new(struct arena *arena, const struct launch_options *options,
                                    const struct component_commands *component,
                                    const struct env_map *maps, int32_t map_count)
{
    const struct roost_component *placed = component->placed;
    struct environment *it = arena_zeroed(arena, struct environment, 1);
    if (!it)
        return NULL;
    for (int32_t p = 0; p < placed->world_size; p++)
        it->types |= 1U << placed->accelerator[p];
    const char *mode = environment_find(options->env, "RLINF_PATH_ENV_MERGE_MODE");
    const char *catches = environment_find(options->env, "RLINF_CATCH_FAILURE");
    it->is_replacing = mode && sv_is_nocase(sv_from(mode), "override");
    it->catches_failure = catches && strcmp(catches, "1") == 0;
    bool is_good = find_maps(it, placed, maps, map_count, arena) &&
                   find_names(it, component, options, arena) && inherit(it, options->env, arena);
    return is_good ? it : NULL;
}
