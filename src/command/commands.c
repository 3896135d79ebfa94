/* commands.c - chooses the components, numbers the ports, builds argv. Reads config, cluster and plan;
 * touches nothing else. Keeps: the port requests of a component are contiguous, rank by rank, so that the
 * number of any port is found by arithmetic. */
#include "command/commands.h"

#include <roost/engine/process.h>
#include <stdlib.h>
#include <string.h>

#include "command/addresses.h"
#include "command/commands_internal.h"
#include "command/environment.h"
#include "command/expand.h"
#include "command/interfaces.h"
#include "command/worker_address.h"
#include "config/variables.h"

/* --- which components --- */

static bool is_chosen(const struct launch_options *options, const char *name)
{
    for (size_t i = 0; i < options->component_count; i++)
        if (strcmp(options->components[i], name) == 0)
            return true;
    return options->component_count == 0;
}

/* Those of the plan, or of the config while there is none. */
static size_t count_placed(const struct launch_options *options)
{
    return options->plan ? roost_plan_component_count(options->plan)
                         : (size_t)options->config->component_count;
}

static const char *name_placed(const struct launch_options *options, size_t index)
{
    return options->plan ? roost_plan_component(options->plan, index)->name
                         : options->config->components[index].name;
}

static bool is_placed(const struct launch_options *options, const char *name)
{
    for (size_t i = 0; i < count_placed(options); i++)
        if (strcmp(name_placed(options, i), name) == 0)
            return true;
    return false;
}

static void say_unknown(const struct launch_options *options, const char *name, struct diag *diag)
{
    size_t count = count_placed(options);
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "this config places no component '%s'",
               quote(sv_from(name)).text);
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names && i < count; i++)
        names[i] = name_placed(options, i);
    const char *near = names ? nearest_word(sv_from(name), names) : NULL;
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "'roost plan' lists the components of the config");
    free(names);
}

static bool choose_components(struct commands *commands, struct diag *diag)
{
    const struct launch_options *options = &commands->options;
    size_t count = count_placed(options);
    for (size_t i = 0; i < options->component_count; i++)
        if (!is_placed(options, options->components[i]))
            say_unknown(options, options->components[i], diag);
    commands->components = arena_zeroed(&commands->arena, struct component_commands, count);
    if (!commands->components) {
        diag_nomem(diag);
        return false;
    }
    for (size_t c = 0; c < count; c++) {
        const struct roost_component *placed =
            options->plan ? roost_plan_component(options->plan, c) : NULL;
        const char *name = name_placed(options, c);
        if (!is_chosen(options, name))
            continue;
        commands->components[commands->component_count++] = (struct component_commands){
            .name = name,
            .placed = placed,
            .launch = config_find_launch(options->config, name),
            .process_count = placed ? placed->world_size : 0,
        };
    }
    return true;
}

/* One component of its own, which the config does not launch. Its name becomes a folder, a label and text in
 * JSON, as those of a config do: it is checked here for whoever starts it, from C or Python, on any engine. */
static bool take_component(struct commands *commands, struct diag *diag)
{
    const struct launch_options *options = &commands->options;
    if (!group_name_check(sv_from(options->name), diag))
        return false;
    commands->components = arena_zeroed(&commands->arena, struct component_commands, 1);
    if (!commands->components) {
        diag_nomem(diag);
        return false;
    }
    commands->components[commands->component_count++] =
        (struct component_commands){.name = options->name,
                                    .placed = options->placed,
                                    .process_count = options->placed->world_size};
    return true;
}

/* --- their commands --- */

static bool has_command(const struct component_commands *component)
{
    return component->launch && component->launch->command_count > 0;
}

static struct place place_of(const struct roost_config *config, const char *name)
{
    for (int32_t c = 0; c < config->component_count; c++)
        if (strcmp(config->components[c].name, name) == 0)
            return config->components[c].at;
    return NOWHERE;
}

/* Without `-- COMMAND...` every chosen component needs a command of its own. */
static void want_commands(const struct commands *commands, struct diag *diag)
{
    for (int32_t c = 0; c < commands->component_count; c++) {
        const struct component_commands *it = &commands->components[c];
        if (has_command(it))
            continue;
        diag_error(diag, ROOST_ERR_SCHEMA, place_of(commands->options.config, it->name),
                   "component '%s' has no command", it->name);
        diag_hint(diag, "add roost.launch.%s.command, or leave the component out", it->name);
    }
}

/* With one, it is for exactly one. */
static void share_command(const struct commands *commands, struct diag *diag)
{
    const struct component_commands *found = NULL;
    for (int32_t c = 0; c < commands->component_count; c++) {
        const struct component_commands *it = &commands->components[c];
        if (has_command(it))
            continue;
        if (found) {
            diag_error(diag, ROOST_ERR_USAGE, place_of(commands->options.config, it->name),
                       "the command behind '--' is for one component, but '%s' and '%s' have none",
                       found->name, it->name);
            diag_hint(diag, "run one of them alone, or give roost.launch.%s a command", it->name);
            return;
        }
        found = it;
    }
    if (found)
        return;
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
               "the command behind '--' is for a component without one, but each has its own");
    diag_hint(diag, "leave it out, or override one: roost.launch.NAME.command='[./train]'");
}

struct command_words command_words_of(const struct commands *commands,
                                      const struct component_commands *component)
{
    if (has_command(component))
        return (struct command_words){.own = component->launch->command,
                                      .count = component->launch->command_count};
    return (struct command_words){.given = commands->options.command,
                                  .count = (int32_t)commands->options.command_count};
}

struct word command_word(const struct command_words *words, int32_t index)
{
    if (words->own)
        return words->own[index];
    return (struct word){.text = sv_from(words->given ? words->given[index] : NULL)};
}

static void check_words(const struct commands *commands, struct diag *diag)
{
    for (int32_t c = 0; c < commands->component_count; c++) {
        const struct component_commands *it = &commands->components[c];
        const struct launch_config *launch = it->launch;
        struct command_words words = command_words_of(commands, it);
        uint32_t types = it->environment->types;
        for (int32_t i = 0; i < words.count; i++) {
            struct word word = command_word(&words, i);
            if (!words.own)
                percent_check(commands->options.config, launch, &word, diag);
            expand_check(commands, &word, it->name, types, diag);
        }
        for (int32_t i = 0; launch && i < launch->env_count; i++)
            expand_check(commands, &launch->env[i].value, it->name, types, diag);
        if (launch && (launch->ready == READY_FILE || launch->ready == READY_LINE))
            expand_check(commands, &launch->ready_what, it->name, types, diag);
    }
}

/* --- their ports --- */

static int64_t count_requests(const struct component_commands *component)
{
    int64_t each = component->launch ? component->launch->port_count : 0;
    return 1 + each * component->process_count;
}

static bool number_ports(struct commands *commands, struct diag *diag)
{
    int64_t total = 0;
    for (int32_t c = 0; c < commands->component_count; c++) {
        total += count_requests(&commands->components[c]);
        if (total > ROOST_RANK_MAX) {
            diag_error(diag, ROOST_ERR_LIMIT, commands->components[c].launch->at,
                       "component '%s' asks for more ports than roost can number",
                       commands->components[c].name);
            diag_hint(diag, "one machine has fewer than 65536 ports: ask for fewer");
            return false;
        }
    }
    commands->ports = arena_array(&commands->arena, struct port_request, total);
    if (!commands->ports) {
        diag_nomem(diag);
        return false;
    }
    for (int32_t c = 0; c < commands->component_count; c++) {
        struct component_commands *it = &commands->components[c];
        const struct launch_config *launch = it->launch;
        it->first_port = (int32_t)commands->port_count;
        commands->ports[commands->port_count++] = (struct port_request){.component = c, .count = 1};
        for (int32_t p = 0; launch && p < it->process_count; p++)
            for (int32_t k = 0; k < launch->port_count; k++)
                commands->ports[commands->port_count++] =
                    (struct port_request){.component = c,
                                          .rank = p,
                                          .name = launch->ports[k].name,
                                          .count = launch->ports[k].count,
                                          .is_handed = launch->ports[k].is_handed};
    }
    return true;
}

/* --- variables by hand --- */

static bool check_variable(struct strview name, struct diag *diag)
{
    if (!is_variable_name(name)) {
        diag_error(diag, ROOST_ERR_NAME, NOWHERE,
                   "'%s' cannot be the name of an environment variable", quote(name).text);
        diag_hint(diag, "use letters, digits and _, with no digit at the start");
        return false;
    }
    if (!is_own_variable(name))
        return true;
    diag_error(diag, ROOST_ERR_NAME, NOWHERE, "'%s' is roost's own and cannot be set by hand",
               quote(name).text);
    diag_hint(diag, "choose another name; roost finds its processes by this one");
    return false;
}

enum roost_code roost_variable_check(const char *name, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    (void)check_variable(sv_from(name), &diag);
    return diag.first;
}

static void check_extra(const struct launch_options *options, struct diag *diag)
{
    for (const char *const *entry = options->extra_env; entry && *entry; entry++)
        (void)check_variable((struct strview){*entry, strcspn(*entry, "=")}, diag);
}

/* --- the whole --- */

static bool find_environments(struct commands *commands, struct diag *diag)
{
    int32_t map_count = 0;
    struct env_map *maps = env_maps_new(&commands->arena, &commands->options, &map_count);
    bool is_good = maps != NULL;
    for (int32_t c = 0; is_good && c < commands->component_count; c++) {
        struct component_commands *it = &commands->components[c];
        it->environment =
            environment_new(&commands->arena, &commands->options, it, maps, map_count);
        is_good = it->environment != NULL;
        if (is_good)
            it->base_env = it->environment->base_env;
    }
    if (!is_good)
        diag_nomem(diag);
    return is_good;
}

static void check_commands(const struct commands *commands, struct diag *diag)
{
    if (commands->options.command_count > 0)
        share_command(commands, diag);
    else if (!commands->options.is_command_optional)
        want_commands(commands, diag);
}

bool commands_check(const struct launch_options *options, struct diag *diag)
{
    size_t errors = diag->errors;
    struct commands commands = {.arena = ARENA_INIT, .options = *options};
    if (choose_components(&commands, diag) && diag->errors == errors)
        check_commands(&commands, diag);
    arena_release(&commands.arena);
    return diag->errors == errors;
}

struct commands *commands_new(const struct launch_options *options, struct diag *diag)
{
    size_t errors = diag->errors;
    struct commands *commands = calloc(1, sizeof *commands);
    if (!commands) {
        diag_nomem(diag);
        return NULL;
    }
    commands->options = *options;
    check_extra(options, diag);
    bool is_chosen_well =
        options->placed ? take_component(commands, diag) : choose_components(commands, diag);
    bool is_good =
        is_chosen_well && addresses_find(commands, diag) && find_environments(commands, diag);
    if (is_good && diag->errors == errors) {
        check_commands(commands, diag);
        check_words(commands, diag);
        interfaces_check(commands, diag);
    }
    is_good = is_good && number_ports(commands, diag) && diag->errors == errors;
    if (is_good)
        return commands;
    commands_free(commands);
    return NULL;
}

void commands_free(struct commands *commands)
{
    if (!commands)
        return;
    arena_release(&commands->arena);
    free(commands);
}

bool commands_fill(struct commands *commands, const struct run_values *values, struct diag *diag)
{
    if (!addresses_fill(commands, values, diag))
        return false;
    for (int32_t c = 0; c < commands->component_count; c++) {
        struct component_commands *it = &commands->components[c];
        struct process_command *list =
            arena_zeroed(&commands->arena, struct process_command, it->process_count);
        struct command_maker *maker =
            list ? command_maker_new(commands, c, values, WORDS_REAL, &commands->arena) : NULL;
        bool is_good = maker != NULL;
        for (int32_t p = 0; is_good && p < it->process_count; p++)
            if (!values->only_node || it->placed->cluster_node_rank[p] == *values->only_node)
                is_good = command_maker_make(maker, p, &list[p]);
        command_maker_free(maker);
        if (!is_good) {
            diag_nomem(diag);
            return false;
        }
        it->processes = list;
    }
    return true;
}
