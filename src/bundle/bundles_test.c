/* bundles_test.c - layouts through the C library: sizes, parts, ports, and what is refused. */
#include <roost/roost.h>

#include "base/text.h"
#include "tests/plan_unit.h"

/* The layout of settings (flow YAML without braces) on a cluster (a spec, or NULL). */
static struct roost_bundles *lay_out(const char *settings, const char *spec,
                                     const struct roost_bundles_options *options,
                                     struct roost_error *err)
{
    struct text yaml = TEXT_INIT;
    text_printf(&yaml, "roost: {groups: {%s}}", settings);
    struct roost_config_options reading = {.path = "groups.yaml",
                                           .text = text_string(&yaml),
                                           .text_len = yaml.len,
                                           .takes_placement_groups_alone = true};
    struct roost_config *config = roost_config_load(&reading, NULL, err);
    text_release(&yaml);
    if (!config)
        return NULL;
    struct roost_cluster *cluster = spec ? cluster_of(spec, NULL) : NULL;
    struct roost_bundles *bundles = roost_bundles_new(config, cluster, options, NULL, err);
    roost_cluster_free(cluster); /* bundles own all they show */
    roost_config_free(config);
    return bundles;
}

/* "48 16 | 0@16:2 1@18:2 ...": sizes, then rank @ slot : node of every part. */
static void show(const struct roost_layout *it, struct text *out)
{
    text_printf(out, "%d %d |", (int)it->num_gpus, (int)it->rollout_offset);
    for (int32_t p = 0; p < it->engines.part_count; p++)
        text_printf(out, " %d@%d:%d", (int)it->engines.rank[p], (int)it->engines.slot[p],
                    (int)it->engines.machine[p]);
}

TEST(layouts_are_what_they_are_said_to_be)
{
    static const struct {
        const char *settings, *spec, *answer;
    } rows[] = {
        {"rollout_num_gpus: 4, rollout_num_gpus_per_engine: 2", NULL, "12 8 | 0@8:1 1@10:1"},
        {"actor_num_gpus_per_node: 4, rollout_num_gpus: 8, rollout_num_gpus_per_engine: 4", "2x8",
         "12 4 | 0@4:0 1@8:1"},
        {"colocate: true, rollout_num_gpus_per_engine: 8, actor_num_nodes: 2", NULL,
         "16 0 | 0@0:0 1@8:1"},
        {"debug_rollout_only: true, rollout_num_gpus: 16, rollout_num_gpus_per_engine: 16", NULL,
         "16 0 | 0@0:0 1@8:1"},
        {"rollout_num_gpus: 4, rollout_num_gpus_per_engine: 4", "1x4,1x0,2x4", "12 8 | 0@8:3"},
        {"debug_train_only: true", NULL, "8 0 |"},
        {"rollout_external: true", NULL, "8 8 |"},
        {"rollout_num_gpus: 0", NULL, "8 8 |"},
        {"rollout_num_gpus: 3, prefill_num_servers: 1", NULL, "11 8 | 0@8:1 1@9:1 2@10:1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err = {0};
        struct text got = TEXT_INIT;
        struct roost_bundles *bundles = lay_out(rows[i].settings, rows[i].spec, NULL, &err);
        if (!bundles)
            fail_msg("'%s': %s", rows[i].settings, err.message);
        show(roost_bundles_layout(bundles), &got);
        CHECK_TEXT(rows[i].settings, text_string(&got), rows[i].answer);
        roost_bundles_free(bundles);
        text_release(&got);
    }
}

TEST(what_cannot_run_is_refused_with_its_code)
{
    static const struct {
        const char *settings, *spec;
        enum roost_code code;
        const char *phrase;
    } rows[] = {
        {"", NULL, ROOST_ERR_SCHEMA, "'rollout_num_gpus' is not set"},
        {"rollout_num_gpus: -4", NULL, ROOST_ERR_SCHEMA, "not '-4'"},
        {"rollout_num_gpus: 24, rollout_num_gpus_per_engine: 16", NULL, ROOST_ERR_RANK, "8 would"},
        {"rollout_num_gpus: 24, rollout_num_gpus_per_engine: 12", NULL, ROOST_ERR_RANK,
         "nodes of 8"},
        {"rollout_num_gpus: 8", "1x8", ROOST_ERR_FIT, "takes 16 GPUs"},
        {"actor_num_nodes: 16777216, actor_num_gpus_per_node: 16777216, colocate: true", NULL,
         ROOST_ERR_LIMIT, "at most 16777216"},
        {"colocate: true, num_gpus_per_part: 0.7", NULL, ROOST_ERR_SCHEMA, "1.1"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err = {0};
        struct roost_bundles *bundles = lay_out(rows[i].settings, rows[i].spec, NULL, &err);
        CHECK_FACT(rows[i].settings, !bundles && err.code == rows[i].code && err.hint[0]);
        CHECK_SAYS(rows[i].settings, err.message, rows[i].phrase);
    }
}

TEST(measured_slots_come_before_what_machines_could_have)
{
    const int32_t slots[] = {4, 0, 8};
    struct roost_bundles_options options = {.slots_of_node = slots, .node_count = 3};
    struct roost_error err;
    struct roost_bundles *bundles =
        lay_out("actor_num_gpus_per_node: 4, rollout_num_gpus: 8, rollout_num_gpus_per_engine: 8",
                NULL, &options, &err);
    assert_non_null(bundles);
    const struct roost_layout *it = roost_bundles_layout(bundles);
    assert_int_equal(it->engines.machine[0], 2);
    assert_int_equal(it->machine_count, 3);
    assert_int_equal(it->machines[2].port_count, 33);
    roost_bundles_free(bundles);
}

TEST(sizes_alone_do_not_look_at_engines)
{
    struct roost_bundles_options options = {.sizes_only = true};
    struct roost_bundles *bundles =
        lay_out("rollout_num_gpus: 24, rollout_num_gpus_per_engine: 16", NULL, &options, NULL);
    assert_non_null(bundles);
    assert_int_equal(roost_bundles_layout(bundles)->num_gpus, 32);
    roost_bundles_free(bundles);
    roost_bundles_free(NULL);
}

RUN_TESTS(cmocka_unit_test(layouts_are_what_they_are_said_to_be),
          cmocka_unit_test(what_cannot_run_is_refused_with_its_code),
          cmocka_unit_test(measured_slots_come_before_what_machines_could_have),
          cmocka_unit_test(sizes_alone_do_not_look_at_engines))
