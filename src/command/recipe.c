/* recipe.c - how processes of one kind (node group, env_config, vendor) fill their slots, and the filling
 * itself. Values that are the same for all processes of a kind are built once and shared. A value that
 * equals the previous process's value shares its text. */
#include <string.h>

#include "command/addresses.h"
#include "command/environment.h"
#include "command/expand.h"
#include "command/interfaces.h"
#include "command/path_merge.h"

enum slot_kind { SLOT_INHERITED, SLOT_FIXED, SLOT_WORDS, SLOT_VARIABLE, SLOT_PORT };

struct slot {
    enum slot_kind kind;
    int32_t index;        /* of the variable or port */
    struct strview words; /* the value with its %{NAME} */
    struct strview under; /* what a list of folders is put in front of */
    const char *text;     /* "NAME=value": fixed, or made last */
};

static struct strview value_of(const char *entry)
{
    const char *at = entry ? strchr(entry, '=') : NULL;
    return sv_from(at ? at + 1 : "");
}

/* Ends the scratch text as a copy of its own, or as `last` when that says the same. */
static const char *keep(struct environment_maker *maker, const char *last)
{
    struct text *scratch = maker->scratch;
    if (scratch->has_failed)
        return NULL;
    struct strview made = {scratch->bytes, scratch->len};
    if (last && sv_is(made, last))
        return last;
    return arena_copy(maker->arena, made);
}

static void start_entry(struct environment_maker *maker, int32_t index)
{
    maker->scratch->len = 0;
    text_put(maker->scratch, maker->component->environment->names[index]);
    text_char(maker->scratch, '=');
}

/* --- layers --- */

/* What the slot would be if nothing more came. */
static struct strview current(const struct environment_maker *maker, int32_t index)
{
    const struct slot *slot = &maker->slots[index];
    if (slot->kind == SLOT_INHERITED)
        return value_of(maker->component->environment->inherited[index]);
    return slot->kind == SLOT_WORDS ? slot->words : value_of(slot->text);
}

/* A variable of the config over what is there. */
static bool set_config(struct environment_maker *maker, const struct env_var *var, bool has_words)
{
    const struct environment *it = maker->component->environment;
    int32_t index = environment_slot(it, var->name.text);
    if (index < 0)
        return true; /* roost sets it itself; the config was told so */
    struct slot *slot = &maker->slots[index];
    bool is_joined = !it->is_replacing && is_path_variable(var->name.text);
    struct strview under = is_joined ? current(maker, index) : SV("");
    struct strview value = environment_word(maker, &var->value);
    if (has_words && percent_is_used(value)) {
        *slot = (struct slot){.kind = SLOT_WORDS, .words = value, .under = under};
        return true;
    }
    start_entry(maker, index);
    if (is_joined)
        path_merge(maker->scratch, value, under);
    else
        text_put(maker->scratch, value);
    *slot = (struct slot){.kind = SLOT_FIXED, .text = keep(maker, NULL)};
    return slot->text != NULL;
}

static bool set_env_config(struct environment_maker *maker)
{
    const struct env_map *map = maker->component->environment->env_of_group[maker->group];
    maker->interpreter = NULL;
    if (maker->env < 0)
        return true;
    const struct env_config *config = &map->config->env_configs[maker->env];
    for (int32_t v = 0; v < config->var_count; v++)
        if (!is_roost_variable(config->vars[v].name.text) &&
            !set_config(maker, &config->vars[v], false))
            return false;
    if (config->interpreter.text.len == 0)
        return true;
    maker->interpreter = arena_copy(maker->arena, config->interpreter.text);
    return maker->interpreter != NULL;
}

/* A program that draws without EGL wants no device of it. */
static bool wants_egl(const struct environment_maker *maker)
{
    int32_t index = environment_slot(maker->component->environment, SV("MUJOCO_GL"));
    const char *inherited = environment_find(maker->commands->options.env, "MUJOCO_GL");
    struct strview value = index >= 0 ? current(maker, index) : sv_from(inherited);
    return !sv_is_nocase(value, "osmesa") && !sv_is_nocase(value, "glx");
}

/* Whether a default gives way: to the config always, to the caller where it must not be undone. */
static bool gives_way(const struct environment_maker *maker, enum variable variable, int32_t index)
{
    if (maker->slots[index].kind != SLOT_INHERITED)
        return true;
    if (variable != VARIABLE_NCCL_CUMEM_ENABLE)
        return !wants_egl(maker);
    struct strview value = current(maker, index);
    return value.len > 0 && !sv_is(value, "0");
}

static bool set_variable(struct environment_maker *maker, enum variable variable)
{
    int32_t index =
        environment_slot(maker->component->environment, sv_from(variable_name(variable)));
    if (variable_kind(variable) == VARIABLE_DEFAULT && gives_way(maker, variable, index))
        return true;
    struct slot *slot = &maker->slots[index];
    *slot = (struct slot){.kind = SLOT_VARIABLE, .index = (int32_t)variable};
    if (!variable_is_shared(variable))
        return true;
    start_entry(maker, index);
    put_variable(maker->scratch, &maker->source, variable);
    slot->kind = SLOT_FIXED;
    slot->text = keep(maker, NULL);
    return slot->text != NULL;
}

static bool set_port(struct environment_maker *maker, int32_t index)
{
    bool is_count;
    struct slot *slot = &maker->slots[index];
    const struct launch_config *launch = maker->component->launch;
    int32_t port =
        percent_find_port(launch, maker->component->environment->names[index], &is_count);
    if (port < 0)
        return true;
    *slot = (struct slot){.kind = SLOT_PORT, .index = port};
    if (!is_count)
        return true;
    start_entry(maker, index);
    text_int(maker->scratch, launch->ports[port].count);
    slot->kind = SLOT_FIXED;
    slot->text = keep(maker, NULL);
    return slot->text != NULL;
}

/* Lists of addresses, where commands are shown: processes that run have them from base_env. */
static bool set_lists(struct environment_maker *maker)
{
    const struct component_commands *component = maker->component;
    for (int32_t i = 0; maker->words == WORDS_SHOWN && i < component->list_count; i++) {
        const struct address_list *list = &component->lists[i];
        int32_t index = environment_slot(component->environment, sv_from(list->variable));
        start_entry(maker, index);
        addresses_put_list(maker->scratch, maker->commands, maker->source.values, list);
        struct slot *slot = &maker->slots[index];
        *slot = (struct slot){.kind = SLOT_FIXED, .text = keep(maker, NULL)};
        if (!slot->text)
            return false;
    }
    return true;
}

/* What the caller wants to be so, whatever anybody else says. */
static void set_extra(struct environment_maker *maker)
{
    for (const char *const *entry = maker->commands->options.extra_env; entry && *entry; entry++) {
        struct strview name = {*entry, strcspn(*entry, "=")};
        maker->slots[environment_slot(maker->component->environment, name)] =
            (struct slot){.kind = SLOT_FIXED, .text = *entry};
    }
}

/* RLINF_COMM_NET_DEVICES, to where nothing else is set. */
static bool copy_interfaces(struct environment_maker *maker)
{
    const struct environment *it = maker->component->environment;
    int32_t from = environment_slot(it, SV(INTERFACES_SOURCE));
    struct strview devices = current(maker, from);
    for (int i = 0; devices.len && i < INTERFACES_EACH; i++) {
        const char *name = interface_variable((enum roost_accelerator)maker->type, i);
        int32_t index = name ? environment_slot(it, sv_from(name)) : -1;
        if (index < 0 || it->inherited[index] || maker->slots[index].kind != SLOT_INHERITED)
            continue;
        struct slot *slot = &maker->slots[index];
        if (maker->slots[from].kind == SLOT_WORDS) {
            *slot = maker->slots[from];
            continue;
        }
        start_entry(maker, index);
        text_put(maker->scratch, devices);
        *slot = (struct slot){.kind = SLOT_FIXED, .text = keep(maker, NULL)};
        if (!slot->text)
            return false;
    }
    return true;
}

/* The recipe for the kind of process that maker->source is. */
static bool write_recipe(struct environment_maker *maker)
{
    const struct environment *it = maker->component->environment;
    const struct launch_config *launch = maker->component->launch;
    maker->slots = arena_zeroed(maker->arena, struct slot, it->name_count);
    if (!maker->slots || !set_env_config(maker))
        return false;
    for (int32_t i = 0; launch && i < launch->env_count; i++)
        if (!set_config(maker, &launch->env[i], true))
            return false;
    for (int v = 0; v < VARIABLE_COUNT; v++)
        if (variable_types((enum variable)v) & 1U << maker->type &&
            !set_variable(maker, (enum variable)v))
            return false;
    for (int32_t i = 0; launch && launch->port_count && i < it->name_count; i++)
        if (!set_port(maker, i))
            return false;
    if (!set_lists(maker))
        return false;
    set_extra(maker);
    return !it->has_interfaces || copy_interfaces(maker);
}

/* --- processes --- */

static int32_t find_env(struct environment_maker *maker, int32_t group, int32_t node)
{
    const struct env_map *map = maker->component->environment->env_of_group[group];
    if (!map)
        return -1;
    if (group != maker->seen_group || node != maker->seen_node) {
        maker->seen_group = group;
        maker->seen_node = node;
        maker->seen_env = env_map_find(map, node);
    }
    return maker->seen_env;
}

static const char *fill(struct environment_maker *maker, int32_t index)
{
    struct slot *slot = &maker->slots[index];
    if (slot->kind == SLOT_FIXED)
        return slot->text;
    start_entry(maker, index);
    if (slot->kind == SLOT_VARIABLE) {
        put_variable(maker->scratch, &maker->source, (enum variable)slot->index);
    } else if (slot->kind == SLOT_PORT) {
        put_port(maker->scratch, &maker->source, slot->index);
    } else if (slot->under.len == 0) {
        expand_text(maker->scratch, slot->words, &maker->source);
    } else {
        struct text value = TEXT_INIT;
        expand_text(&value, slot->words, &maker->source);
        path_merge(maker->scratch, (struct strview){value.bytes, value.len}, slot->under);
        maker->scratch->has_failed |= value.has_failed;
        text_release(&value);
    }
    slot->text = keep(maker, slot->text);
    return slot->text;
}

bool environment_make(struct environment_maker *maker, int32_t rank, struct process_command *out)
{
    const struct environment *it = maker->component->environment;
    const struct roost_component *placed = maker->component->placed;
    int32_t group = placed->node_group[rank], type = placed->accelerator[rank];
    int32_t env = find_env(maker, group, placed->cluster_node_rank[rank]);
    maker->source.rank = rank;
    if (!maker->slots || group != maker->group || env != maker->env || type != maker->type) {
        maker->group = group;
        maker->env = env;
        maker->type = type;
        if (!write_recipe(maker))
            return false;
    }
    const char **list = arena_array(maker->arena, const char *, it->name_count + 1);
    if (!list)
        return false;
    int32_t count = 0;
    for (int32_t i = 0; i < it->name_count; i++) {
        if (maker->slots[i].kind == SLOT_INHERITED)
            continue;
        list[count] = fill(maker, i);
        if (!list[count++])
            return false;
    }
    out->own_count = count;
    for (int32_t i = 0; i < it->name_count; i++)
        if (maker->slots[i].kind == SLOT_INHERITED && it->inherited[i])
            list[count++] = it->inherited[i];
    list[count] = NULL;
    out->env = list;
    return true;
}
