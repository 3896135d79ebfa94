/* bundles.c - settle -> size -> machines -> groups -> engines -> ports -> amounts: the steps of
 * roost_bundles_new. */
#include "bundle/bundles.h"

#include <stdlib.h>

#include "config/config.h"

const char *roost_worker_type_word(enum roost_worker_type type)
{
    static const char *const words[] = {"regular", "prefill", "decode", "encoder", "placeholder"};
    return words[type];
}

const char *roost_layout_row_word(enum roost_layout_row row)
{
    static const char *const words[] = {"train-only", "external-rollout-only",
                                        "external",   "rollout-only",
                                        "colocated",  "disaggregated"};
    return words[row];
}

struct place job_place(const struct job *job, const struct count_setting *setting)
{
    return setting->is_set ? setting->at : job->settings->at;
}

void *job_memory(struct job *job, void *memory)
{
    if (!memory)
        diag_nomem(job->diag);
    return memory;
}

static bool lay_out(struct job *job)
{
    if (!job_settle(job) || !job_size(job))
        return false;
    if (job->options->sizes_only)
        return true;
    /* What is wrong with one hides nothing that is wrong with another. */
    bool has_machines = job_find_machines(job), has_groups = job_list_server_groups(job);
    bool is_good = has_groups && has_machines && job_place_engines(job) && job_count_ports(job);
    return job->groups && job_check_amounts(job, has_machines) && is_good;
}

struct roost_bundles *roost_bundles_new(const struct roost_config *config,
                                        const struct roost_cluster *cluster,
                                        const struct roost_bundles_options *options,
                                        struct roost_report *report, struct roost_error *err)
{
    static const struct roost_bundles_options all = {0};
    struct diag diag = config_diag(config, report, err);
    if (!config->bundles) {
        diag_error(&diag, ROOST_ERR_SCHEMA, NOWHERE, "'%s' has no 'roost.groups'",
                   quote(sv_from(config->source.name)).text);
        diag_hint(&diag, "add 'roost:' with 'groups:' below it, such as groups: {colocate: true}");
        return NULL;
    }
    struct roost_bundles *bundles = calloc(1, sizeof *bundles);
    if (!bundles) {
        diag_nomem(&diag);
        return NULL;
    }
    struct job job = {
        .bundles = bundles,
        .layout = &bundles->layout,
        .settings = config->bundles,
        .cluster = cluster,
        .options = options ? options : &all,
        .diag = &diag,
    };
    /* What is broken was reported when the config was read. */
    if (!job.settings->is_broken && lay_out(&job) && diag.errors == 0)
        return bundles;
    roost_bundles_free(bundles);
    return NULL;
}

void roost_bundles_free(struct roost_bundles *bundles)
{
    if (!bundles)
        return;
    arena_release(&bundles->arena);
    free(bundles);
}

const struct roost_layout *roost_bundles_layout(const struct roost_bundles *bundles)
{
    return &bundles->layout;
}
