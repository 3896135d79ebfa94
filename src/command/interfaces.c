/* interfaces.c - the names, and the warning. The copying itself is one layer of recipe.c. */
#include "command/interfaces.h"

#include <string.h>

#include "command/environment.h"
#include "config/config.h"

const char *interface_variable(enum roost_accelerator type, int index)
{
    static const char *const of_type[] = {[ROOST_ACCELERATOR_NVIDIA] = "NCCL_SOCKET_IFNAME",
                                          [ROOST_ACCELERATOR_AMD] = "NCCL_SOCKET_IFNAME",
                                          [ROOST_ACCELERATOR_ASCEND] = "HCCL_SOCKET_IFNAME",
                                          [ROOST_ACCELERATOR_INTEL] = "CCL_MNIC_NAME",
                                          [ROOST_ACCELERATOR_MUSA] = "MCCL_SOCKET_IFNAME",
                                          [ROOST_ACCELERATOR_KUNLUN] = "BKCL_SOCKET_IFNAME"};
    if (index == 0)
        return "GLOO_SOCKET_IFNAME";
    return (size_t)type < sizeof of_type / sizeof *of_type ? of_type[type] : NULL;
}

/* --- what is set to something else --- */

/* Where the processes of one kind have their variables from. */
struct layers {
    const struct launch_options *options;
    const struct launch_config *launch;  /* may be NULL */
    const struct env_config *env_config; /* may be NULL */
};

static const struct word *find_in(const struct env_var *vars, int32_t count, const char *name)
{
    for (int32_t i = count - 1; i >= 0; i--)
        if (sv_is(vars[i].name.text, name))
            return &vars[i].value;
    return NULL;
}

/* The value that a variable has before anything is copied; false = none. */
static bool find_value(const struct layers *layers, const char *name, struct word *out)
{
    const struct launch_config *launch = layers->launch;
    const struct env_config *config = layers->env_config;
    const char *text = environment_find(layers->options->extra_env, name);
    const struct word *word = NULL;
    if (!text && launch)
        word = find_in(launch->env, launch->env_count, name);
    if (!text && !word && config)
        word = find_in(config->vars, config->var_count, name);
    if (!text && !word)
        text = environment_find(layers->options->env, name);
    *out = word ? *word : (struct word){.text = sv_from(text)};
    return word || text;
}

static void check(const struct layers *layers, const char *component, const char *name,
                  uint32_t *told, uint32_t bit, struct diag *diag)
{
    struct word devices, own;
    if (*told & bit || !find_value(layers, INTERFACES_SOURCE, &devices) || !devices.text.len ||
        !find_value(layers, name, &own) || sv_equal(devices.text, own.text))
        return;
    *told |= bit;
    diag_warn(diag, ROOST_WARN_INTERFACES, own.at,
              "%s of component '%s' is '%s' and stays so: RLINF_COMM_NET_DEVICES is '%s'", name,
              component, quote(own.text).text, quote(devices.text).text);
    diag_hint(diag, "leave one of the two out, or give them the same value");
}

static void check_kind(const struct layers *layers, const struct component_commands *it,
                       uint32_t *told, struct diag *diag)
{
    check(layers, it->name, interface_variable(ROOST_ACCELERATOR_NONE, 0), told, 1, diag);
    for (int type = 0; type < ROOST_ACCELERATOR_COUNT; type++) {
        const char *name = interface_variable((enum roost_accelerator)type, 1);
        if (name && it->environment->types & 1U << type)
            check(layers, it->name, name, told, 2U << type, diag);
    }
}

void interfaces_check(const struct commands *commands, struct diag *diag)
{
    uint32_t told = 0;
    for (int32_t c = 0; c < commands->component_count; c++) {
        const struct component_commands *it = &commands->components[c];
        struct layers layers = {.options = &commands->options, .launch = it->launch};
        if (it->environment->has_interfaces)
            check_kind(&layers, it, &told, diag);
        for (int32_t g = 0; it->environment->has_interfaces && g < it->placed->node_group_count;
             g++) {
            const struct env_map *map = it->environment->env_of_group[g];
            for (int32_t e = 0; map && e < map->config->env_config_count; e++) {
                layers.env_config = &map->config->env_configs[e];
                check_kind(&layers, it, &told, diag);
            }
        }
    }
}
