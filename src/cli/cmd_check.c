/* cmd_check.c - roost check: every fault of a config at once. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/output.h"
#include "cli/planning.h"

static void put_env(struct text *out, const struct roost_config *config)
{
    for (size_t i = 0; i < roost_config_env_count(config); i++)
        text_printf(out, "%s%s",
                    i ? ", " : "read from the environment: ", roost_config_env(config, i));
    if (roost_config_env_count(config))
        text_char(out, '\n');
}

static void put_groups(struct text *out, const struct roost_layout *layout)
{
    text_printf(out, "placement group of %d GPU%s, %d engine%s", (int)layout->num_gpus,
                layout->num_gpus == 1 ? "" : "s", (int)layout->engines.engine_count,
                layout->engines.engine_count == 1 ? "" : "s");
}

static void put_components(struct text *out, const struct planning *planning)
{
    size_t components = roost_config_component_count(planning->config);
    text_printf(out, "%zu component%s", components, components == 1 ? "" : "s");
    if (planning->plan) {
        int64_t processes = 0;
        for (size_t c = 0; c < roost_plan_component_count(planning->plan); c++)
            processes += roost_plan_component(planning->plan, c)->world_size;
        text_printf(out, ", %lld process%s on %d node%s with %lld accelerator%s",
                    (long long)processes, processes == 1 ? "" : "es",
                    (int)roost_cluster_node_count(planning->cluster),
                    roost_cluster_node_count(planning->cluster) == 1 ? "" : "s",
                    (long long)roost_cluster_accelerator_count(planning->cluster),
                    roost_cluster_accelerator_count(planning->cluster) == 1 ? "" : "s");
    }
}

/* One line when all is well. */
static void put_summary(struct text *out, const struct planning *planning,
                        const struct roost_bundles *bundles, const char *path)
{
    size_t warnings = roost_report_warnings(planning->report);
    bool has_components = roost_config_component_count(planning->config) > 0 || !bundles;
    text_safe(out, sv_from(path));
    text_puts(out, ": ok: ");
    if (has_components)
        put_components(out, planning);
    if (bundles) {
        text_puts(out, has_components ? "; " : "");
        put_groups(out, roost_bundles_layout(bundles));
    }
    if (!planning->plan)
        text_puts(out,
                  "; no cluster was named, so whether they fit was not checked (--cluster 2x8)");
    if (warnings)
        text_printf(out, "; %zu warning%s", warnings, warnings == 1 ? "" : "s");
    text_char(out, '\n');
}

/* The last line when it is not. */
static void put_count(struct text *out, const struct roost_report *report, const char *path)
{
    size_t errors = roost_report_errors(report), warnings = roost_report_warnings(report);
    text_safe(out, sv_from(path));
    text_printf(out, ": %zu error%s", errors, errors == 1 ? "" : "s");
    if (warnings)
        text_printf(out, ", %zu warning%s", warnings, warnings == 1 ? "" : "s");
    text_char(out, '\n');
}

static int print(const struct planning *planning, const struct roost_bundles *bundles,
                 const struct invocation *invocation)
{
    int status = roost_report_exit(planning->report);
    if (option_is_on(invocation, "json"))
        return output_status(
            roost_render_report_json(planning->report, output_write, &output_stdout), status);
    output_report(invocation, planning->report);
    struct text people = TEXT_INIT, data = TEXT_INIT;
    if (planning->config)
        put_env(&people, planning->config);
    if (status == 0)
        put_summary(&data, planning, bundles, invocation->operands[0]);
    else
        put_count(&people, planning->report, invocation->operands[0]);
    enum roost_code code = people.has_failed || data.has_failed ? ROOST_ERR_MEMORY : ROOST_OK;
    output_write(&output_stderr, people.bytes, people.len);
    if (code == ROOST_OK && !output_write(&output_stdout, data.bytes, data.len))
        code = ROOST_ERR_IO;
    text_release(&people);
    text_release(&data);
    return output_status(code, status);
}

static int run(const struct invocation *invocation)
{
    struct planning planning;
    struct roost_bundles *bundles = NULL;
    struct planning_options planning_options = {.takes_placement_groups_alone = true};
    int status = planning_start(&planning, invocation, &planning_options);
    if (status == 0) {
        bool has_placement_groups =
            planning.config && roost_config_has_placement_groups(planning.config);
        if (has_placement_groups && (planning.cluster || !planning.has_cluster))
            bundles =
                roost_bundles_new(planning.config, planning.cluster, NULL, planning.report, NULL);
        /* Beside errors it would only be noise: what they concern was not placed. */
        bool has_components = planning.config && roost_config_component_count(planning.config) > 0;
        if (planning.plan && (has_components || !has_placement_groups) &&
            roost_report_errors(planning.report) == 0)
            roost_plan_advise(planning.plan, planning.config, planning.cluster, planning.report);
        status = print(&planning, bundles, invocation);
    }
    roost_bundles_free(bundles);
    planning_end(&planning);
    return status;
}

static const struct cli_option options[] = {PLANNING_OPTIONS, {0}};

const struct command cmd_check = {
    .name = "check",
    .summary = "find every error of a config at once",
    .usage = "[options] CONFIG [key=value ...]",
    .details =
        "Reads CONFIG (- is standard input) and reports every error in it, with its place and a\n"
        "suggested fix. With a cluster (--cluster, ROOST_CLUSTER or roost.cluster in the config)\n"
        "it also checks that every component fits. The exit status is 0, 3 for an invalid config,\n"
        "or 4 for a config that does not fit the cluster. Warnings do not change it.",
    .exits = PLANNING_EXITS,
    .examples = "roost check train.yaml\n"
                "roost check train.yaml --cluster 2x8 cluster.num_nodes=2",
    .options = options,
    .run = run,
};
