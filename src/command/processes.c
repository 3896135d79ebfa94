/* processes.c - the public face of commands.h: one component's processes for an engine that is not in
 * this library. Decides nothing itself. */
#include <roost/engine/process.h>

#include <stdlib.h>

#include "command/commands.h"
#include "config/config.h"

struct roost_processes {
    struct commands *commands;
    struct run_values values;
};

struct roost_processes *roost_processes_new(const struct roost_processes_options *options,
                                            struct roost_report *report, struct roost_error *err)
{
    /* A program that places by strategies has no config: one that says nothing. */
    static const struct roost_config nothing = {.source = {.name = ""}};
    struct diag diag = config_diag(options->config, report, err);
    struct roost_processes *processes = calloc(1, sizeof *processes);
    if (!processes) {
        diag_nomem(&diag);
        return NULL;
    }
    struct launch_options wanted = {
        .config = options->config ? options->config : &nothing,
        .cluster = options->cluster,
        .placed = options->component,
        .name = options->name,
        .env = options->env,
        .extra_env = options->extra_env,
        .command = options->command,
        .command_count = options->command_count,
        .is_command_optional = true,
        .config_dir = options->config_dir,
    };
    processes->commands = commands_new(&wanted, &diag);
    if (processes->commands)
        return processes;
    free(processes);
    return NULL;
}

void roost_processes_free(struct roost_processes *processes)
{
    if (!processes)
        return;
    commands_free(processes->commands);
    free(processes);
}

size_t roost_processes_want_count(const struct roost_processes *processes)
{
    return processes->commands->port_count;
}

bool roost_processes_want(const struct roost_processes *processes, size_t index,
                          struct roost_process_want *out)
{
    const struct commands *commands = processes->commands;
    if (index >= commands->port_count)
        return false;
    const struct port_request *request = &commands->ports[index];
    const struct roost_component *placed = commands->components[request->component].placed;
    *out = (struct roost_process_want){.rank = request->rank,
                                       .node_rank = placed->cluster_node_rank[request->rank],
                                       .name = request->name,
                                       .count = request->count,
                                       .is_handed = request->is_handed};
    return true;
}

enum roost_code roost_processes_fill(struct roost_processes *processes,
                                     const struct roost_process_values *values,
                                     struct roost_error *err)
{
    struct diag diag = config_diag(processes->commands->options.config, NULL, err);
    processes->values = (struct run_values){.run_id = values->run_id,
                                            .name_space = values->name_space,
                                            .master_addr = values->master_addr,
                                            .ports = values->ports};
    return commands_fill(processes->commands, &processes->values, &diag) ? ROOST_OK : diag.first;
}

bool roost_processes_get(const struct roost_processes *processes, int32_t rank,
                         struct roost_process *out)
{
    const struct component_commands *component = &processes->commands->components[0];
    if (!component->processes || rank < 0 || rank >= component->process_count)
        return false;
    const struct process_command *made = &component->processes[rank];
    *out = (struct roost_process){.argv = made->argv,
                                  .env = made->env,
                                  .own_count = made->own_count,
                                  .cwd = made->cwd,
                                  .interpreter = made->interpreter};
    return true;
}
