/* planning.c - options -> library calls. Decides nothing about placement. */
#include "cli/planning.h"

#include <roost/engine/driver.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/ray_ask.h"
#include "base/strview.h"
#include "cli/output.h"
#include "cli/slime_flags.h"
#include "config/config.h"

static int check_words(const struct invocation *invocation, bool is_for_run,
                       struct roost_plan_options *options)
{
    const char *mode = option_value(invocation, "mode");
    const char *color = option_value(invocation, "color");
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
    if (engine && !roost_engine_is_known(engine))
        return output_refuse(invocation, "--engine is local or ray, not '%s'",
                             quote(sv_from(engine)).text);
    const char *wanted = invocation_env(invocation, "ROOST_ENGINE");
    if (is_for_run && !engine && wanted && !roost_engine_is_known(wanted))
        return output_refuse(invocation, "ROOST_ENGINE is local or ray, not '%s'",
                             quote(sv_from(wanted)).text);
    int32_t wait;
    int status = option_seconds(invocation, "wait", &wait);
    if (status)
        return status;
    options->shares_accelerators = option_is_on(invocation, "no-isolate");
    return 0;
}

/* Reads the config and finds the text of its cluster. False when there is no config. */
static bool read_config(struct planning *planning, const struct invocation *invocation,
                        struct roost_config_options wanted, const char **out_cluster)
{
    if (!wanted.text) {
        wanted.path = invocation->operands[0];
        wanted.overrides = invocation->operands + 1;
        wanted.override_count = invocation->operand_count - 1;
    }
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

char *planning_ask_ray(const struct invocation *invocation, const struct roost_config *config,
                       bool is_for_run, struct roost_report *report)
{
    struct diag diag = config_diag(config, report, NULL);
    char count[16] = "0";
    const char *address = config ? roost_config_ray_address(config) : NULL;
    if (config)
        snprintf(count, sizeof count, "%d", (int)roost_config_num_nodes(config));
    const char *words[8] = {"--num-nodes", count};
    size_t used = 2;
    int32_t wait;
    char seconds[24];
    if (option_seconds(invocation, "wait", &wait) == 0 && wait >= 0) {
        snprintf(seconds, sizeof seconds, "%d.%03d", wait / 1000, wait % 1000);
        words[used++] = "--timeout";
        words[used++] = seconds;
    }
    if (address) {
        words[used++] = "--address";
        words[used++] = address;
    }
    if (is_for_run)
        words[used++] = "--for-run";
    struct ray_question question = {.python = invocation_env(invocation, "ROOST_PYTHON"),
                                    .module = "roost._ray.probe",
                                    .words = words,
                                    .env = (const char *const *)invocation->env};
    return ray_ask(&question, &diag);
}

/* The live cluster; what is wrong with it is in the report. */
static void find_ray_cluster(struct planning *planning, const struct invocation *invocation,
                             bool is_for_run)
{
    char *snapshot = planning_ask_ray(invocation, planning->config, is_for_run, planning->report);
    struct roost_cluster_options wanted = {
        .text = "the Ray cluster", .snapshot = snapshot, .config = planning->config};
    planning->has_cluster = true;
    if (snapshot)
        planning->cluster = roost_cluster_new(&wanted, planning->report, NULL);
    free(snapshot);
}

const char *planning_engine(const struct invocation *invocation, const struct roost_config *config)
{
    return roost_engine_choose(option_value(invocation, "engine"),
                               invocation_env(invocation, "ROOST_ENGINE"), config);
}

/* The engine is Ray and there is no other cluster to plan against. A plan that will not be run asks
 * Ray only when the user passes --engine. */
static bool wants_ray(const struct invocation *invocation, bool is_for_run,
                      const struct roost_config *config, const char *cluster)
{
    return !cluster && (is_for_run || option_value(invocation, "engine")) &&
           strcmp(planning_engine(invocation, config), "ray") == 0;
}

/* `has_text`: the config does not come from a file. */
static int start(struct planning *planning, const struct invocation *invocation, bool is_for_run,
                 bool has_text, struct roost_plan_options *options)
{
    *planning = (struct planning){0};
    if (invocation->operand_count == 0 && !has_text)
        return output_refuse(invocation, "'roost %s' needs a config file; see 'roost %s --help'",
                             invocation->command->name, invocation->command->name);
    int status = check_words(invocation, is_for_run, options);
    if (status)
        return status;
    planning->report = roost_report_new();
    return planning->report ? 0 : output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
}

int planning_start(struct planning *planning, const struct invocation *invocation,
                   const struct planning_options *options)
{
    struct roost_plan_options plan_options = {0};
    const char *cluster = NULL;
    int status = start(planning, invocation, options->is_for_run, false, &plan_options);
    if (status)
        return status;
    struct roost_config_options wanted = {
        .reads_model = plan_options.mode == ROOST_MODE_MODEL_PARALLEL,
        .follows_mode = !option_value(invocation, "mode"),
        .takes_placement_groups_alone = options->takes_placement_groups_alone,
    };
    if (!read_config(planning, invocation, wanted, &cluster))
        return 0;
    const char *mode = wanted.follows_mode ? roost_config_mode(planning->config) : NULL;
    if (mode && strcmp(mode, "model-parallel") == 0)
        plan_options.mode = ROOST_MODE_MODEL_PARALLEL;
    if (wants_ray(invocation, options->is_for_run, planning->config, cluster)) {
        /* Nodes may take minutes to come: do not wait for them with a config that is wrong anyway. */
        if (options->check && roost_report_exit(planning->report) == 0)
            options->check(planning, invocation);
        if (roost_report_exit(planning->report) == 0 &&
            roost_plan_check_texts(planning->config, NULL, NULL) == ROOST_OK)
            find_ray_cluster(planning, invocation, options->is_for_run);
    } else {
        if (!planning->has_cluster && options->default_cluster) {
            cluster = options->default_cluster;
            planning->has_cluster = true;
        }
        find_cluster(planning, cluster);
    }
    if (planning->cluster) {
        planning->plan = roost_plan_new(planning->config, planning->cluster, &plan_options,
                                        planning->report, NULL);
    } else {
        /* Without a cluster the texts can still be wrong, and users want to know all at once. */
        enum roost_code code = roost_plan_check_texts(planning->config, planning->report, NULL);
        (void)code;
    }
    return 0;
}

int planning_start_placement_groups(struct planning *planning, const struct invocation *invocation)
{
    struct roost_plan_options options = {0};
    const char *cluster = NULL;
    int status = start(planning, invocation, false, invocation->has_trailing, &options);
    if (status)
        return status;
    if (invocation->has_trailing && invocation->operand_count)
        return output_refuse(
            invocation, "'%s' before slime's arguments: pass CONFIG, or '--' and the arguments",
            quote(sv_from(invocation->operands[0])).text);
    struct roost_config_options wanted = {.takes_placement_groups_alone = true};
    struct text flags = TEXT_INIT;
    struct diag diag = diag_start(planning->report, NULL);
    if (invocation->has_trailing) {
        wanted.path = "slime's arguments";
        if (!slime_flags_put(invocation->trailing, invocation->trailing_count, &flags, &diag)) {
            text_release(&flags);
            return 0;
        }
        wanted.text = text_string(&flags);
        wanted.text_len = flags.len;
    }
    if (read_config(planning, invocation, wanted, &cluster))
        find_cluster(planning, cluster);
    text_release(&flags);
    return 0;
}

void planning_end(struct planning *planning)
{
    roost_plan_free(planning->plan);
    roost_cluster_free(planning->cluster);
    roost_config_free(planning->config);
    roost_report_free(planning->report);
}
