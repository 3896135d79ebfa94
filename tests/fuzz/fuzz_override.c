/* fuzz_override.c - any lines, as overrides of a small config that is good without them. */
#include "tests/fuzz/check.h"

static const char base[] =
    "cluster:\n"
    "  num_nodes: 2\n"
    "  node_groups:\n"
    "    - &g {label: a, node_ranks: 0}\n"
    "    - {<<: *g, label: b}\n"
    "  component_placement:\n"
    "    actor: {node_group: a, placement: 0-3}\n"
    "    rollout: 4-7:0-1\n"
    "roost: {launch: {actor: {command: [./run, '${x}'], after: [rollout]}}}\n"
    "x: {y: [1, {z: 2}], w: ~}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { LINES_MAX = 64 };
    const char *overrides[LINES_MAX];
    size_t count = 0;
    char *bytes = malloc(size + 1);
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    CHECK(bytes && report);
    if (size)
        memcpy(bytes, data, size);
    bytes[size] = '\0';
    for (char *line = bytes; line && count < LINES_MAX;) {
        char *end = memchr(line, '\n', (size_t)(bytes + size - line));
        if (end)
            *end = '\0';
        overrides[count++] = line;
        line = end ? end + 1 : NULL;
    }
    struct roost_config_options options = {.path = "base.yaml",
                                           .text = base,
                                           .text_len = sizeof base - 1,
                                           .overrides = overrides,
                                           .override_count = count};
    struct roost_config *config = roost_config_load_lenient(&options, report, &err);
    CHECK(config); /* a wrong override is left out, the file is still there */
    CHECK((err.code == ROOST_OK) == (roost_report_errors(report) == 0));
    struct roost_cluster_options wanted = {.text = "2x4", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, report, NULL);
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, NULL, report, NULL) : NULL;
    for (size_t c = 0; plan && c < roost_plan_component_count(plan); c++)
        if (roost_plan_component(plan, c)->world_size)
            check_component(roost_plan_component(plan, c), cluster);
    CHECK(plan || roost_report_errors(report) > 0);

    struct text lines = TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        text_puts(&lines, overrides[i]);
        text_char(&lines, '\n');
    }
    check_report(report, "base.yaml", SV(base));
    check_report(report, "command line", (struct strview){lines.bytes, lines.len});
    check_rendered(report);
    text_release(&lines);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    roost_report_free(report);
    free(bytes);
    return 0;
}
