/* cmd_plan.c - roost plan: where every process goes. */
#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "render/commands_view.h"
#include "render/plan_json.h"
#include "render/stream.h"

/* Refuses --component when it names one that is not placed. Returns 0 or an exit status. */
static int check_components(const struct roost_plan *plan, const struct invocation *invocation,
                            const char *const *wanted)
{
    size_t count = roost_plan_component_count(plan);
    for (; *wanted && roost_plan_find(plan, *wanted); wanted++)
        continue;
    if (!*wanted)
        return 0;
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names && i < count; i++)
        names[i] = roost_plan_component(plan, i)->name;
    const char *near = names ? nearest_word(sv_from(*wanted), names) : NULL;
    int status = output_refuse(invocation, "this config places no component '%s'%s%s%s",
                               quote(sv_from(*wanted)).text, near ? "; did you mean '" : "",
                               near ? near : "", near ? "'?" : "");
    free(names);
    return status;
}

/* --- --commands: what would be executed, with everything that a run decides shown by its name --- */

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

static enum roost_code print_commands_json(const struct planning *planning,
                                           const struct commands *made,
                                           const struct run_values *values, const char *component)
{
    struct command_walk walk = {.commands = made, .values = values};
    struct plan_json_more more = {put_command, &walk};
    enum roost_code code = render_plan_json(planning->plan, planning->cluster, component, &more,
                                            output_write, &output_stdout);
    command_walk_release(&walk);
    return code;
}

static enum roost_code print_commands_text(const struct invocation *invocation,
                                           const struct commands *made,
                                           const struct run_values *values)
{
    struct roost_text_style style = output_style(invocation, output_stdout);
    struct stream stream;
    stream_start(&stream, output_write, &output_stdout);
    commands_put_text(&stream.text, made, values, style.width, style.has_color);
    return stream_end(&stream);
}

/* Prints the commands of the plan, or of some components: `names`, and joined in `component`. Returns the exit status. */
static int print_commands(const struct planning *planning, const struct invocation *invocation,
                          const char *component, char **names, size_t name_count)
{
    struct launch_options options = {
        .config = planning->config,
        .cluster = planning->cluster,
        .plan = planning->plan,
        .env = (const char *const *)invocation->env,
        .components = (const char *const *)names,
        .component_count = name_count,
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
                                   ? print_commands_json(planning, made, &values, component)
                                   : print_commands_text(invocation, made, &values),
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

/* --- the plan --- */

static int print_names(const struct planning *planning, const struct invocation *invocation,
                       const char *component, char **names, size_t name_count)
{
    int status =
        names ? check_components(planning->plan, invocation, (const char *const *)names) : 0;
    if (status)
        return status;
    if (option_is_on(invocation, "commands"))
        return print_commands(planning, invocation, component, names, name_count);
    if (option_is_on(invocation, "json"))
        return output_status(roost_render_plan_json(planning->plan, planning->cluster, component,
                                                    output_write, &output_stdout),
                             0);
    struct roost_text_style style = output_style(invocation, output_stdout);
    return output_status(roost_render_plan_text(planning->plan, planning->cluster, component,
                                                &style, output_write, &output_stdout),
                         0);
}

static int print(const struct planning *planning, const struct invocation *invocation)
{
    const char *component = option_value(invocation, "component");
    size_t count = 0;
    char **names = component ? split_names(component, &count) : NULL;
    if (component && !names)
        return output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
    int status = print_names(planning, invocation, component, names, count);
    free(names);
    return status;
}

static int refuse_without_cluster(const struct planning *planning,
                                  const struct invocation *invocation)
{
    bool is_ray = strcmp(planning_engine(invocation, planning->config), "ray") == 0;
    return output_refuse(invocation,
                         "no cluster to plan against: pass %s--cluster 2x8, a snapshot, or local",
                         is_ray ? "--engine ray for the live one, or " : "");
}

static int run(const struct invocation *invocation)
{
    struct planning planning;
    int status = planning_start(&planning, invocation, &(struct planning_options){0});
    if (status == 0) {
        status = roost_report_exit(planning.report);
        bool has_faults = status != 0;
        if (has_faults ||
            (roost_report_count(planning.report) && !option_is_on(invocation, "json")))
            output_report(invocation, planning.report);
        if (!has_faults && !planning.has_cluster)
            status = refuse_without_cluster(&planning, invocation);
        else if (!has_faults)
            status = print(&planning, invocation);
    }
    planning_end(&planning);
    return status;
}

static const struct cli_option options[] = {
    PLANNING_OPTIONS,
    {"engine", "ENGINE", "ray: plan against the live Ray cluster; local (default): ask none"},
    {"wait", "SECONDS", "how long to wait for nodes of the live cluster (600)"},
    {"component", "NAMES", "show only these components (a,b)"},
    {"commands", NULL, "show the command and the variables of every process"},
    {0},
};

const struct command cmd_plan = {
    .name = "plan",
    .summary = "show where every process goes",
    .usage = "[options] CONFIG [key=value ...]",
    .details =
        "Computes the place of every process of CONFIG (- is standard input) on a cluster and\n"
        "prints a table, or JSON with every field. The cluster comes from --cluster,\n"
        "ROOST_CLUSTER or roost.cluster in the config. Nothing is started, and the cluster does\n"
        "not need to exist.",
    .exits = PLANNING_EXITS,
    .examples = "roost plan train.yaml --cluster 2x8\n"
                "roost plan train.yaml --cluster 2x8 --component actor,rollout --json\n"
                "roost plan train.yaml --engine ray --commands",
    .options = options,
    .run = run,
};
