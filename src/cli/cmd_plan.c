/* cmd_plan.c - roost plan: where every process goes. */
#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "cli/output.h"
#include "cli/plan_commands.h"

static int refuse_component(const struct roost_plan *plan, const struct invocation *invocation,
                            const char *name)
{
    size_t count = roost_plan_component_count(plan);
    const char **names = calloc(count + 1, sizeof *names);
    for (size_t i = 0; names && i < count; i++)
        names[i] = roost_plan_component(plan, i)->name;
    const char *near = names ? nearest_word(sv_from(name), names) : NULL;
    int status = output_refuse(invocation, "this config places no component '%s'%s%s%s",
                               quote(sv_from(name)).text, near ? "; did you mean '" : "",
                               near ? near : "", near ? "'?" : "");
    free(names);
    return status;
}

static int print(const struct planning *planning, const struct invocation *invocation)
{
    const char *component = option_value(invocation, "component");
    if (component && !roost_plan_find(planning->plan, component))
        return refuse_component(planning->plan, invocation, component);
    if (option_is_on(invocation, "commands"))
        return plan_commands(planning, invocation, component);
    if (option_is_on(invocation, "json"))
        return output_status(roost_render_plan_json(planning->plan, planning->cluster, component,
                                                    output_write, &output_stdout),
                             0);
    struct roost_text_style style = output_style(invocation, output_stdout);
    return output_status(roost_render_plan_text(planning->plan, planning->cluster, component,
                                                &style, output_write, &output_stdout),
                         0);
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
    int status = planning_start(&planning, invocation, NULL, NULL);
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

static const struct option_spec options[] = {
    PLANNING_OPTIONS,
    {"engine", "ENGINE", "ray plans against the live Ray cluster; local (default) asks none"},
    {"wait", "SECONDS", "time for the nodes of the live cluster to come (600)"},
    {"component", "NAME", "show only this component"},
    {"commands", NULL, "show the command and the variables of every process"},
    {0},
};

const struct command cmd_plan = {
    .name = "plan",
    .summary = "show where every process goes",
    .usage = "[options] CONFIG [key=value ...]",
    .details =
        "Computes the place of every process of CONFIG (- is standard input) on a cluster and "
        "prints\n"
        "it as a table, or as JSON with every field. The cluster comes from --cluster, "
        "ROOST_CLUSTER\n"
        "or roost.cluster in the config; nothing is started and no cluster needs to be there.",
    .options = options,
    .run = run,
};
