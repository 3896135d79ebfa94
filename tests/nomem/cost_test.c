/* cost_test.c - what a hostile file may cost. */
#include "base/text.h"
#include "tests/nomem/nomem.h"

enum { MEBIBYTE = 1 << 20, COST_MAX = 64 * MEBIBYTE };

static size_t cost_of(const struct text *yaml, const char *const *env)
{
    struct roost_config_options reading = {
        .path = "hostile.yaml", .text = yaml->bytes, .text_len = yaml->len, .env = env};
    assert_true(yaml->len <= MEBIBYTE);
    memset(&heap, 0, sizeof heap);
    heap.limit = (size_t)2 * COST_MAX;
    heap.is_on = true;
    struct roost_report *report = roost_report_new();
    struct roost_config *config = roost_config_load_lenient(&reading, report, NULL);
    if (config) {
        struct roost_cluster_options wanted = {.text = "2x4", .config = config};
        struct roost_cluster *cluster = roost_cluster_new(&wanted, report, NULL);
        struct roost_plan *plan =
            cluster ? roost_plan_new(config, cluster, NULL, report, NULL) : NULL;
        roost_plan_free(plan);
        roost_cluster_free(cluster);
        enum roost_code code = roost_plan_check_texts(config, report, NULL);
        (void)code;
    }
    roost_config_free(config);
    roost_report_free(report);
    heap.is_on = false;
    return heap.peak;
}

/* Fills up to a mebibyte with `piece`, then ends with `tail`. %d in it counts. */
static void fill(struct text *yaml, const char *piece, int most, const char *tail)
{
    for (int i = 0; i < most && yaml->len + 64 < MEBIBYTE; i++) {
        const char *mark = strchr(piece, '%');
        text_append(yaml, piece, mark ? (size_t)(mark - piece) : strlen(piece));
        if (mark) {
            text_int(yaml, i);
            text_puts(yaml, mark + 1);
        }
    }
    text_puts(yaml, tail);
}

static void check_cost(const char *name, struct text *yaml, const char *const *env)
{
    size_t cost = cost_of(yaml, env);
    if (cost > COST_MAX)
        fail_msg("%s: a file of %zu bytes costs %zu MiB", name, yaml->len, cost / MEBIBYTE);
    text_release(yaml);
}

#define HEAD "cluster: {num_nodes: 2, component_placement: {actor: 0}}\n"

TEST(interpolations_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, HEAD "x: ");
    text_repeat(&yaml, 'x', 65000);
    text_puts(&yaml, "\nroost: {launch: {actor: {command: [");
    fill(&yaml, "'${x}y',", 90000, "]}}}\n");
    check_cost("joined texts", &yaml, NULL);

    char variable[65000 + 8];
    const char *const env[] = {variable, NULL};
    memset(variable, 'x', sizeof variable);
    memcpy(variable, "V=", 2);
    variable[sizeof variable - 1] = '\0';
    text_puts(&yaml, HEAD "roost: {launch: {actor: {command: [");
    fill(&yaml, "'${oc.env:V}',", 90000, "]}}}\n");
    check_cost("one large variable", &yaml, env);
}

TEST(names_that_are_not_there_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "cluster: {num_nodes: 2, component_placement: {");
    fill(&yaml, "c%: 0,", 4096, "}}\nroost: {launch: {");
    fill(&yaml, "n%: 1,", 40000, "}}\n");
    check_cost("launch of components that are not placed", &yaml, NULL);

    text_puts(&yaml, "cluster: {num_nodes: 2, node_groups: [");
    fill(&yaml, "{label: g%, node_ranks: 0},", 4096, "], component_placement: {");
    fill(&yaml, "c%: {node_group: [z,y,x,w,v,u,t,s,r,q,p], placement: 0},", 4000, "}}\n");
    check_cost("labels of groups that are not there", &yaml, NULL);
}

TEST(groups_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "cluster: {num_nodes: 2000000, component_placement: {actor: 0}, node_groups: "
                     "[{label: g, node_ranks: \"");
    for (int i = 0; i < 10000; i++)
        text_printf(&yaml, "%d,", 2 * i);
    text_puts(&yaml, "\", env_configs: [");
    fill(&yaml, "{node_ranks: 0},", 30000, "]}]}\n");
    check_cost("env_configs of a scattered group", &yaml, NULL);

    text_puts(&yaml, "cluster: {num_nodes: 2, component_placement: {actor: 0}, node_groups: [");
    fill(&yaml, "{label: g%, node_ranks: all},", 4096, "]}\n");
    check_cost("many groups", &yaml, NULL);
}

TEST(shapes_of_yaml_cannot_be_made_to_cost_memory)
{
    static const struct {
        const char *head, *piece, *tail;
    } rows[] = {
        {"[", "a,", "]"},
        {"", "[", ""},
        {"{", "k%: 1,", "}"},
        {"{", "? a%,", "}"},
        {"a: &a {b: 1, c: 2, d: 3}\n", "k%: {<<: *a}\n", ""},
        {"cluster: {num_nodes: 1, component_placement: {a: \"", "0,", "\"}}"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0-3}, node_groups: [",
         "{label: x, node_ranks: 0-1},", "]}"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0-3}}\nroost: {launch: {a: {env: {",
         "V%: 1,", "}}}}"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text yaml = TEXT_INIT;
        text_puts(&yaml, rows[i].head);
        fill(&yaml, rows[i].piece, 1000000, rows[i].tail);
        check_cost(rows[i].piece, &yaml, NULL);
    }
}

RUN_TESTS(cmocka_unit_test(interpolations_cannot_be_made_to_cost_memory),
          cmocka_unit_test(names_that_are_not_there_cannot_be_made_to_cost_memory),
          cmocka_unit_test(groups_cannot_be_made_to_cost_memory),
          cmocka_unit_test(shapes_of_yaml_cannot_be_made_to_cost_memory))
