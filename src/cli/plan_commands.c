/* plan_commands.c - roost plan --commands: what would be executed, with everything that a run decides
 * shown by its name. */
#include "cli/plan_commands.h"

#include "cli/output.h"
#include "render/commands_view.h"
#include "render/plan_json.h"
#include "render/stream.h"

static void put_command(void *ctx, struct json_writer *json,
                        const struct roost_component *component, int32_t rank)
{
    struct command_walk *walk = ctx;
    const struct commands *made = walk->commands;
    struct process_command process;
    int32_t index = 0;
    while (index < made->component_count && made->components[index].placed != component)
        index++;
    if (!command_walk_to(walk, index, rank, &process))
        json->out->has_failed = true;
    else
        command_put_json(json, &process);
}

static enum roost_code print_json(const struct planning *planning, const struct commands *made,
                                  const struct run_values *values, const char *component)
{
    struct command_walk walk = {.commands = made, .values = values};
    struct plan_json_more more = {put_command, &walk};
    enum roost_code code = render_plan_json(planning->plan, planning->cluster, component, &more,
                                            output_write, &output_stdout);
    command_walk_release(&walk);
    return code;
}

static enum roost_code print_text(const struct invocation *invocation, const struct commands *made,
                                  const struct run_values *values)
{
    struct roost_text_style style = output_style(invocation, output_stdout);
    struct stream stream;
    stream_start(&stream, output_write, &output_stdout);
    commands_put_text(&stream.text, made, values, style.width, style.has_color);
    return stream_end(&stream);
}

int plan_commands(const struct planning *planning, const struct invocation *invocation,
                  const char *component)
{
    struct launch_options options = {
        .config = planning->config,
        .cluster = planning->cluster,
        .plan = planning->plan,
        .env = (const char *const *)invocation->env,
        .components = &component,
        .component_count = component ? 1 : 0,
        .is_command_optional = true,
    };
    /* The local engine is always here; where Ray puts rank 0 is not known before. */
    bool is_local = strcmp(planning_engine(invocation, planning->config), "local") == 0;
    struct run_values values = {.run_id = "<run id>",
                                .name_space = "<namespace>",
                                .master_addr = is_local ? "127.0.0.1" : "<address>"};
    /* A report of its own: what planning had to say is on the screen already. */
    struct roost_report *report = roost_report_new();
    struct diag diag = config_diag(planning->config, report, NULL);
    struct commands *made = report ? commands_new(&options, &diag) : NULL;
    int status;
    if (made)
        status = output_status(option_is_on(invocation, "json")
                                   ? print_json(planning, made, &values, component)
                                   : print_text(invocation, made, &values),
                               0);
    else if (report)
        status = roost_report_exit(report);
    else
        status = output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
    if (report && (!made || (roost_report_count(report) && !option_is_on(invocation, "json"))))
        output_report(invocation, report);
    commands_free(made);
    roost_report_free(report);
    return status;
}
