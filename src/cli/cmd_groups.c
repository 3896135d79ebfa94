/* cmd_groups.c - roost groups: placement groups, their shares, engines and ports. */
#include "cli/output.h"
#include "cli/planning.h"

static int print(const struct roost_bundles *bundles, const struct invocation *invocation)
{
    if (option_is_on(invocation, "json"))
        return output_status(roost_render_bundles_json(bundles, output_write, &output_stdout), 0);
    struct roost_text_style style = output_style(invocation, output_stdout);
    return output_status(roost_render_bundles_text(bundles, &style, output_write, &output_stdout),
                         0);
}

static int run(const struct invocation *invocation)
{
    struct planning planning;
    struct roost_bundles *bundles = NULL;
    int status = planning_start_placement_groups(&planning, invocation);
    if (status == 0) {
        /* A cluster that was named and could not be had is an error already. */
        if (planning.config && (planning.cluster || !planning.has_cluster))
            bundles =
                roost_bundles_new(planning.config, planning.cluster, NULL, planning.report, NULL);
        status = roost_report_exit(planning.report);
        if (status != 0 ||
            (roost_report_count(planning.report) && !option_is_on(invocation, "json")))
            output_report(invocation, planning.report);
        if (status == 0)
            status = print(bundles, invocation);
    }
    roost_bundles_free(bundles);
    planning_end(&planning);
    return status;
}

static const struct cli_option options[] = {
    {"cluster", "X", "nodes and CPUs of X: a spec (2x8), a snapshot file, or local"},
    {"hydra", NULL, "follow the config's defaults list, from files beside it"},
    {"json", NULL, "print JSON"},
    {"color", "WHEN", "auto (default), always or never"},
    {0},
};

const struct command cmd_groups = {
    .name = "groups",
    .summary = "show placement groups: shares, engines, ports",
    .usage = "[options] CONFIG [key=value ...]",
    .details =
        "Computes the placement group that roost.groups of CONFIG (- is standard input) asks for,\n"
        "with slime's names: how many GPUs it takes, which slots trainers and engines see, the\n"
        "node and rank of every part of an engine, and the ports that the part wants. Sizes that\n"
        "do not divide evenly, engines that cross a node boundary and missing CPUs are errors.\n"
        "Nothing is reserved, and no cluster needs to exist. Without one, every node has\n"
        "num_gpus_per_node GPUs. 'roost groups [options] -- ARGUMENTS ...' reads the arguments of "
        "a\n"
        "slime launch script as they are instead of a config, and ignores those that say nothing "
        "of\n"
        "placement groups.",
    .exits = PLANNING_EXITS,
    .examples = "roost groups slime.yaml --cluster 2x8\n"
                "roost groups -- --actor-num-nodes 2 --rollout-num-gpus 16 --colocate",
    .options = options,
    .run = run,
    .takes_trailing = true,
};
