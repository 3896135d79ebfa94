/* cmd_probe.c - roost probe: what there is to place processes on, here or in a Ray cluster. */
#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "cli/output.h"
#include "cli/planning.h"

static int print(const struct roost_cluster *cluster, const struct invocation *invocation)
{
    if (option_is_on(invocation, "json"))
        return output_status(roost_render_cluster_json(cluster, output_write, &output_stdout), 0);
    return output_status(roost_render_cluster_text(cluster, output_write, &output_stdout), 0);
}

static int run(const struct invocation *invocation)
{
    const char *engine = option_value(invocation, "engine");
    if (engine && strcmp(engine, "local") != 0 && strcmp(engine, "ray") != 0)
        return output_refuse(invocation, "--engine is local or ray, not '%s'",
                             quote(sv_from(engine)).text);
    if (invocation->operand_count)
        return output_refuse(invocation, "'roost probe' takes no file: '%s'",
                             quote(sv_from(invocation->operands[0])).text);
    struct roost_report *report = roost_report_new();
    if (!report)
        return output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
    struct roost_cluster_options wanted = {.text = "local"};
    char *snapshot = NULL;
    bool is_ray = engine && strcmp(engine, "ray") == 0;
    if (is_ray && (snapshot = planning_ask_ray(invocation, NULL, false, report)))
        wanted = (struct roost_cluster_options){.text = "the Ray cluster", .snapshot = snapshot};
    struct roost_cluster *cluster =
        !is_ray || snapshot ? roost_cluster_new(&wanted, report, NULL) : NULL;
    int status = cluster ? print(cluster, invocation) : roost_report_exit(report);
    if (roost_report_count(report))
        output_report(invocation, report);
    roost_cluster_free(cluster);
    free(snapshot);
    roost_report_free(report);
    return status;
}

static const struct cli_option options[] = {
    {"engine", "ENGINE", "local (default): this machine; ray: the live Ray cluster"},
    {"json", NULL, "print a snapshot that --cluster takes"},
    {"color", "WHEN", "auto (default), always or never"},
    {0},
};

const struct command cmd_probe = {
    .name = "probe",
    .summary = "show what hardware there is",
    .usage = "[options]",
    .details =
        "Shows the nodes of this machine or of a Ray cluster with their accelerators, in node\n"
        "order. With --json it prints a snapshot: save it in a file, and --cluster FILE plans\n"
        "against it on any machine. RAY_ADDRESS selects the Ray cluster; the default is the one\n"
        "that this user runs here. roost asks Ray through ROOST_PYTHON, or through the Python\n"
        "beside the program.",
    .examples = "roost probe\n"
                "roost probe --engine ray --json > cluster.json",
    .options = options,
    .run = run,
};
