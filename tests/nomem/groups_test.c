/* groups_test.c - placement groups are laid out, and bundles sorted, without memory. */
#include <stdio.h>

#include "tests/nomem/nomem.h"

/* Placement groups from a config alone, on a cluster, with models from a file. */
static struct result run_groups(const struct scenario *it)
{
    struct result result = {0};
    struct roost_error err;
    struct roost_report *report = roost_report_new();
    if (!report)
        return (struct result){.code = ROOST_ERR_MEMORY};
    struct roost_config_options reading = {
        .path = path_in_folder(0, it->file ? it->file : "groups.yaml"),
        .text = it->yaml,
        .text_len = it->yaml ? strlen(it->yaml) : 0,
        .takes_placement_groups_alone = true,
    };
    struct roost_config *config = roost_config_load(&reading, report, &err);
    result.code = err.code;
    struct roost_cluster_options wanted = {.text = it->cluster, .config = config};
    struct roost_cluster *cluster =
        config && it->cluster ? roost_cluster_new(&wanted, report, &err) : NULL;
    result.code = first_of(result.code, err.code);
    struct roost_bundles *bundles = config && (cluster || !it->cluster)
                                        ? roost_bundles_new(config, cluster, NULL, report, &err)
                                        : NULL;
    result.code = first_of(result.code, err.code);
    if (bundles) {
        enum roost_code json = roost_render_bundles_json(bundles, hash_bytes, &result.plan);
        enum roost_code text = roost_render_bundles_text(bundles, NULL, hash_bytes, &result.plan);
        result.code = first_of(result.code, first_of(json, text));
    }
    roost_bundles_free(bundles);
    roost_cluster_free(cluster);
    roost_config_free(config);
    result.code = first_of(result.code, finish_report(report, &result));
    return result;
}

static const struct scenario groups[] = {
    {.name = "groups with models in a file", .file = "groups.yaml", .cluster = "6x8"},
    {.name = "external engines",
     .yaml = "roost: {groups: {rollout_external_engine_addrs: [\"a:1\", {address: \"b:2\", "
             "num_gpus: 4}], num_http_posters: 3}}\n"},
    {.name = "groups that straddle",
     .yaml = "roost: {groups: {actor_num_gpus_per_node: 4, rollout_num_gpus: 16, "
             "rollout_num_gpus_per_engine: 8}}\n",
     .cluster = "4x8"},
    {.name = "groups that are wrong",
     .yaml = "roost: {groups: {rolout: 1, rollout_num_gpus: -1, sglang: [{name: a}]}}\n"},
};

static bool answer_name(void *ctx, const char *name, char *out, size_t size)
{
    (void)ctx;
    snprintf(out, size, "10.0.0.%zu", strlen(name));
    return true;
}

/* Bundles on more nodes than a table starts with. */
static struct result run_order(const struct scenario *unused)
{
    enum { BUNDLES = 90 };
    static char ids[BUNDLES][8];
    struct roost_bundle bundles[BUNDLES];
    struct roost_order_options options = {.resolve = answer_name};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    for (int i = 0; i < BUNDLES; i++) {
        snprintf(ids[i], sizeof ids[i], "n%d", i / 2);
        bundles[i] =
            (struct roost_bundle){BUNDLES - i, i % 3 ? ids[i] : NULL, ids[i], ids[i], NULL};
    }
    struct roost_order *order = roost_order_new(bundles, BUNDLES, &options, &err);
    result.code = err.code;
    if (order)
        hash_bytes(&result.plan, (const char *)roost_order_indices(order),
                   BUNDLES * sizeof(int32_t));
    roost_order_free(order);
    return result;
}

static const char *const files[][2] = {
    {"groups.yaml", "roost: {groups: {rollout_num_gpus: 40, use_critic: true, profile: seed, "
                    "num_gpus_per_actor: 0.4, sglang_config: models.yaml}}\n"},
    {"models.yaml", "sglang:\n  - name: a\n    num_gpus_per_engine: 4\n    server_groups:\n"
                    "      - {worker_type: prefill, num_gpus: 8}\n"
                    "      - {worker_type: decode, num_gpus: 16, num_gpus_per_engine: 16}\n"
                    "  - name: b\n    model_path: /m\n    engine_groups:\n"
                    "      - {worker_type: regular, num_gpus: 8, overrides: {model_path: /m}}\n"
                    "      - {worker_type: placeholder, num_gpus: 8}\n"},
};

TEST(any_allocation_may_fail_while_groups_are_laid_out_and_sorted)
{
    for (size_t i = 0; i < ROWS(files); i++)
        put_file(files[i][0], files[i][1]);
    for (size_t i = 0; i < ROWS(groups); i++)
        check_scenario(groups[i].name, run_groups, &groups[i]);
    check_scenario("order", run_order, NULL);
}

RUN_IN_FOLDER(cmocka_unit_test(any_allocation_may_fail_while_groups_are_laid_out_and_sorted))
