/* planning.c - options -> library calls. Decides nothing about placement. */
#include "cli/planning.h"

#include <stdlib.h>
#include <string.h>

#include "base/strview.h"
#include "cli/output.h"
#include "cli/ray_cluster.h"
#include "cli/seconds_option.h"

static int check_words(const struct invocation *invocation, struct roost_plan_options *options)
{
    const char *mode = option_value(invocation, "mode");
    const char *color = option_value(invocation, "color");
    if (invocation->operand_count == 0)
        return output_refuse(invocation, "'roost %s' needs a config file; see 'roost %s --help'",
                             invocation->command->name, invocation->command->name);
    if (mode && strcmp(mode, "model-parallel") == 0)
        options->mode = ROOST_MODE_MODEL_PARALLEL;
    else if (mode && strcmp(mode, "hybrid") != 0)
        return output_refuse(invocation, "--mode is hybrid or model-parallel, not '%s'",
                             quote(sv_from(mode)).text);
    if (color && strcmp(color, "auto") != 0 && strcmp(color, "always") != 0 &&
        strcmp(color, "never") != 0)
        return output_refuse(invocation, "--color is auto, always or never, not '%s'",
                             quote(sv_from(color)).text);
    const char *engine = option_value(invocation, "engine");
    if (engine && strcmp(engine, "local") != 0 && strcmp(engine, "ray") != 0)
        return output_refuse(invocation, "--engine is local or ray, not '%s'",
                             quote(sv_from(engine)).text);
    const char *wanted = invocation_env(invocation, "ROOST_ENGINE");
    if (invocation->command == &cmd_run && !engine && wanted && *wanted &&
        strcmp(wanted, "local") != 0 && strcmp(wanted, "ray") != 0)
        return output_refuse(invocation, "ROOST_ENGINE is local or ray, not '%s'",
                             quote(sv_from(wanted)).text);
    int32_t wait;
    int status = seconds_option(invocation, "wait", &wait);
    if (status)
        return status;
    options->shares_accelerators = option_is_on(invocation, "no-isolate");
    return 0;
}

/* Reads the config and finds the text of its cluster. False when there is no config. */
static bool read_config(struct planning *planning, const struct invocation *invocation,
                        struct roost_config_options wanted, const char **out_cluster)
{
    wanted.path = invocation->operands[0];
    wanted.overrides = invocation->operands + 1;
    wanted.override_count = invocation->operand_count - 1;
    wanted.env = (const char *const *)invocation->env;
    wanted.follow_defaults = option_is_on(invocation, "hydra");
    planning->config = roost_config_load_lenient(&wanted, planning->report, NULL);
    if (!planning->config)
        return false;
    *out_cluster = option_value(invocation, "cluster");
    if (!*out_cluster)
        *out_cluster = invocation_env(invocation, "ROOST_CLUSTER");
    planning->has_cluster = *out_cluster || roost_config_cluster(planning->config);
    return true;
}

static void find_cluster(struct planning *planning, const char *text)
{
    struct roost_cluster_options wanted = {.text = text, .config = planning->config};
    if (planning->has_cluster)
        planning->cluster = roost_cluster_new(&wanted, planning->report, NULL);
}

/* The live cluster; what is wrong with it is in the report. */
static void find_ray_cluster(struct planning *planning, const struct invocation *invocation)
{
    char *snapshot = ray_cluster_ask(invocation, planning->config, planning->report);
    struct roost_cluster_options wanted = {
        .text = "the Ray cluster", .snapshot = snapshot, .config = planning->config};
    planning->has_cluster = true;
    if (snapshot)
        planning->cluster = roost_cluster_new(&wanted, planning->report, NULL);
    free(snapshot);
}

const char *planning_engine(const struct invocation *invocation, const struct roost_config *config)
{
    const char *engine = option_value(invocation, "engine");
    if (!engine)
        engine = invocation_env(invocation, "ROOST_ENGINE");
    if (!engine || !*engine)
        engine = roost_config_engine(config);
    return engine && *engine ? engine : "local";
}

/* The engine is Ray and there is no other cluster to plan against. A plan asks no engine unless that is
 * asked for. */
static bool wants_ray(const struct invocation *invocation, const struct roost_config *config,
                      const char *cluster)
{
    return !cluster && (invocation->command == &cmd_run || option_value(invocation, "engine")) &&
           strcmp(planning_engine(invocation, config), "ray") == 0;
}

static int start(struct planning *planning, const struct invocation *invocation,
                 struct roost_plan_options *options)
{
    *planning = (struct planning){0};
    int status = check_words(invocation, options);
    if (status)
        return status;
    planning->report = roost_report_new();
    return planning->report ? 0 : output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
}

int planning_start(struct planning *planning, const struct invocation *invocation,
                   const char *otherwise,
                   void (*check)(const struct planning *planning,
                                 const struct invocation *invocation))
{
    struct roost_plan_options options = {0};
    const char *cluster = NULL;
    int status = start(planning, invocation, &options);
    if (status)
        return status;
    struct roost_config_options wanted = {
        .reads_model = options.mode == ROOST_MODE_MODEL_PARALLEL,
        .takes_groups_alone = invocation->command == &cmd_check, /* a plan places components */
    };
    if (!read_config(planning, invocation, wanted, &cluster))
        return 0;
    if (wants_ray(invocation, planning->config, cluster)) {
        /* Nodes may take minutes to come: nobody waits for them with a config that is wrong anyway. */
        if (check && roost_report_exit(planning->report) == 0)
            check(planning, invocation);
        if (roost_report_exit(planning->report) == 0 &&
            roost_plan_check_texts(planning->config, NULL, NULL) == ROOST_OK)
            find_ray_cluster(planning, invocation);
    } else {
        if (!planning->has_cluster && otherwise) {
            cluster = otherwise;
            planning->has_cluster = true;
        }
        find_cluster(planning, cluster);
    }
    if (planning->cluster) {
        planning->plan =
            roost_plan_new(planning->config, planning->cluster, &options, planning->report, NULL);
    } else {
        /* Without a cluster the texts can still be wrong, and users want to know all at once. */
        enum roost_code code = roost_plan_check_texts(planning->config, planning->report, NULL);
        (void)code;
    }
    return 0;
}

int planning_start_groups(struct planning *planning, const struct invocation *invocation)
{
    struct roost_plan_options options = {0};
    const char *cluster = NULL;
    int status = start(planning, invocation, &options);
    if (status)
        return status;
    struct roost_config_options wanted = {.takes_groups_alone = true};
    if (read_config(planning, invocation, wanted, &cluster))
        find_cluster(planning, cluster);
    return 0;
}

void planning_end(struct planning *planning)
{
    roost_plan_free(planning->plan);
    roost_cluster_free(planning->cluster);
    roost_config_free(planning->config);
    roost_report_free(planning->report);
}
