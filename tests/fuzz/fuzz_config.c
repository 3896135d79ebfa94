/* fuzz_config.c - any bytes, as a config, planned on 2x4 in both modes.
 * A plan has rows that are right and can be rendered; a refusal says where, inside the file. Nothing that
 * is said or rendered holds the value of a secret variable. */
#include "tests/fuzz/check.h"

#define SECRET "q7-zX9.w2"

static void check_hidden(const char *text)
{
    CHECK(!text || !strstr(text, SECRET));
}

/* A file that has the secret itself may show it. */
static void check_report_hides(const struct roost_report *report, struct strview bytes)
{
    if (bytes.len && memmem(bytes.at, bytes.len, SECRET, strlen(SECRET)))
        return;
    for (size_t i = 0; i < roost_report_count(report); i++) {
        check_hidden(roost_report_at(report, i)->message);
        check_hidden(roost_report_at(report, i)->hint);
        check_hidden(roost_report_at(report, i)->source_line);
    }
}

static void check_plan(const struct roost_plan *plan, const struct roost_config *config,
                       const struct roost_cluster *cluster, struct roost_report *report,
                       bool is_good)
{
    struct text json = TEXT_INIT, text = TEXT_INIT;
    int64_t rows = 0;
    for (size_t c = 0; c < roost_plan_component_count(plan); c++) {
        const struct roost_component *it = roost_plan_component(plan, c);
        CHECK(strcmp(it->name, roost_config_component(config, c)) == 0);
        /* A config with errors leaves out what is broken. */
        CHECK(it->world_size > 0 || !is_good);
        if (it->world_size > 0)
            check_component(it, cluster);
        if (it->world_size > 0 && it->world_size < 10000)
            check_again(it, cluster);
        rows += it->world_size;
    }
    if (is_good)
        roost_plan_advise(plan, config, cluster, report);
    if (is_good && rows < 10000) {
        CHECK(roost_render_plan_json(plan, cluster, NULL, keep_bytes, &json) == ROOST_OK);
        CHECK(roost_render_plan_text(plan, cluster, NULL, NULL, keep_bytes, &text) == ROOST_OK);
        check_json(&json);
        check_hidden(text_string(&json));
        check_hidden(text_string(&text));
    }
    text_release(&json);
    text_release(&text);
}

static void check_bundles(const struct roost_config *config, const struct roost_cluster *cluster,
                          struct roost_report *report)
{
    struct text json = TEXT_INIT, text = TEXT_INIT;
    size_t errors = roost_report_errors(report);
    struct roost_bundles *bundles = roost_bundles_new(config, cluster, NULL, report, NULL);
    CHECK(bundles || roost_report_errors(report) > 0);
    CHECK(!bundles || roost_report_errors(report) == errors);
    if (bundles) {
        const struct roost_layout *it = roost_bundles_layout(bundles);
        CHECK(it->num_gpus <= roost_cluster_accelerator_count(cluster));
        CHECK(it->rollout.first + it->rollout.count == it->num_gpus);
        for (int32_t p = 0; p < it->engines.part_count; p++)
            CHECK(it->engines.slot[p] < it->num_gpus && it->engines.machine[p] < it->machine_count);
        CHECK(roost_render_bundles_json(bundles, keep_bytes, &json) == ROOST_OK);
        CHECK(roost_render_bundles_text(bundles, NULL, keep_bytes, &text) == ROOST_OK);
        check_json(&json);
    }
    roost_bundles_free(bundles);
    text_release(&json);
    text_release(&text);
}

static void check_mode(struct strview bytes, enum roost_mode mode)
{
    static const char *const env[] = {"HOME=/root", "N=1", "A_KEY=" SECRET, NULL};
    struct roost_config_options options = {.path = "config.yaml",
                                           .text = bytes.at,
                                           .text_len = bytes.len,
                                           .env = env,
                                           .reads_model = mode == ROOST_MODE_MODEL_PARALLEL};
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    CHECK(report);
    struct roost_config *config = roost_config_load_lenient(&options, report, &err);
    bool is_good = roost_report_errors(report) == 0;
    CHECK(is_good == (err.code == ROOST_OK) && (config || !is_good));
    if (config) {
        check_groups(config);
        struct roost_cluster_options wanted = {.text = "2x4", .config = config};
        struct roost_plan_options placing = {.mode = mode};
        struct roost_cluster *cluster = roost_cluster_new(&wanted, report, NULL);
        struct roost_plan *plan =
            cluster ? roost_plan_new(config, cluster, &placing, report, NULL) : NULL;
        if (plan)
            check_plan(plan, config, cluster, report, is_good);
        CHECK(plan || roost_report_errors(report) > 0);
        if (cluster && roost_config_has_placement_groups(config))
            check_bundles(config, cluster, report);
        roost_plan_free(plan);
        roost_cluster_free(cluster);
        CHECK(!is_good || roost_plan_check_texts(config, NULL, NULL) == ROOST_OK || !plan);
        roost_config_free(config);
    }
    check_report(report, "config.yaml", bytes);
    check_report_hides(report, bytes);
    check_rendered(report);
    roost_report_free(report);

    config = roost_config_load(&options, NULL, &err);
    CHECK((config != NULL) == is_good);
    roost_config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of its own, so that a sanitizer sees a read past its end. */
    char *bytes = malloc(size ? size : 1);
    CHECK(bytes);
    if (size)
        memcpy(bytes, data, size);
    if (memmem(bytes, size, "sglang_config", strlen("sglang_config"))) {
        free(bytes); /* it names a file, and any file may be named */
        return 0;
    }
    check_mode((struct strview){bytes, size}, ROOST_MODE_HYBRID);
    check_mode((struct strview){bytes, size}, ROOST_MODE_MODEL_PARALLEL);
    free(bytes);
    return 0;
}
