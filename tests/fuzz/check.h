/* check.h - what must hold for any input, shared by the fuzz targets. A fact that does not is a
 * finding: the target says which and aborts. */
#ifndef TESTS_FUZZ_CHECK_H
#define TESTS_FUZZ_CHECK_H

#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/source.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/json_reader.h"

#define CHECK(fact)                                                                                \
    do {                                                                                           \
        if (!(fact)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #fact);                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline int32_t count_characters(struct strview text)
{
    int32_t count = 0;
    for (size_t i = 0; i < text.len; count++) {
        size_t len = utf8_next(text.at + i, text.at + text.len, NULL);
        i += len ? len : 1;
    }
    return count;
}

/* Text for a message: UTF-8, and no control character that a terminal would obey. */
static inline void check_words(const char *text)
{
    const char *end = text + strlen(text);
    while (text < end) {
        uint32_t code = 0;
        size_t len = utf8_next(text, end, &code);
        CHECK(len > 0 && code >= 0x20 && (code < 0x7f || code >= 0xa0));
        text += len;
    }
}

/* Every entry that names the source lies inside it; every entry can be shown. */
static inline void check_report(const struct roost_report *report, const char *name,
                                struct strview text)
{
    struct source source = {.name = name, .text = text};
    int32_t last_line = source_place(&source, text.len, 1).line;
    size_t errors = 0;
    for (size_t i = 0; i < roost_report_count(report); i++) {
        const struct roost_diagnostic *it = roost_report_at(report, i);
        check_words(it->message);
        check_words(it->hint);
        CHECK(it->message[0] && it->length >= 1);
        CHECK((it->code == ROOST_OK) == (it->warning != ROOST_WARN_NONE));
        errors += it->code != ROOST_OK;
        if (strcmp(it->file, name) != 0 || it->line == 0)
            continue;
        CHECK(it->line <= last_line && it->column >= 1);
        CHECK(it->column <= count_characters(source_line(&source, it->line)) + 1);
    }
    CHECK(errors <= roost_report_errors(report));
    CHECK((roost_report_errors(report) > 0) == (roost_report_exit(report) != 0));
}

/* The rows of a component against the cluster it was placed on. */
static inline void check_component(const struct roost_component *it,
                                   const struct roost_cluster *cluster)
{
    int32_t nodes = roost_cluster_node_count(cluster), met = 0;
    int32_t *processes = calloc((size_t)nodes, sizeof *processes);
    int32_t *ordinal = calloc((size_t)nodes, sizeof *ordinal);
    CHECK(processes && ordinal && it->world_size > 0 && it->first_hardware[0] == 0);
    for (int32_t p = 0; p < it->world_size; p++) {
        int32_t n = it->cluster_node_rank[p];
        struct roost_node node;
        CHECK(roost_cluster_node(cluster, n, &node));
        CHECK(it->local_rank[p] == processes[n]++); /* so they are 0, 1, 2, ... on every node */
        if (processes[n] == 1)
            ordinal[n] = met++;
        CHECK(it->placement_node_rank[p] == ordinal[n]);
        CHECK(it->accelerator[p] == node.accelerator);
        CHECK(it->node_group[p] >= 0 && it->node_group[p] < it->node_group_count);
        CHECK(it->local_accelerator_rank[p] >= -1);
        CHECK(it->local_accelerator_rank[p] < node.num_accelerators);
        CHECK((it->local_accelerator_rank[p] == -1) == (node.num_accelerators == 0));
        bool sees_own = !it->visible_count || it->visible_count[p] < 0;
        CHECK(sees_own || it->visible_count[p] == node.num_accelerators);
        CHECK(it->first_hardware[p + 1] >= it->first_hardware[p]);
        for (int32_t i = it->first_hardware[p]; i < it->first_hardware[p + 1]; i++) {
            int32_t limit = sees_own ? node.num_accelerators : node.num_hardware;
            limit = limit > node.num_accelerators ? limit : node.num_accelerators;
            CHECK(it->hardware[i] >= 0 && it->hardware[i] < limit);
            CHECK(i == it->first_hardware[p] || it->hardware[i] != it->hardware[i - 1]);
        }
    }
    for (int32_t p = 0; p < it->world_size; p++)
        CHECK(it->local_world_size[p] == processes[it->cluster_node_rank[p]]);
    free(processes);
    free(ordinal);
}

/* What a config says of its groups: all of it can be read, and nothing beyond. */
static inline void check_groups(const struct roost_config *config)
{
    struct roost_node_group_config group;
    struct roost_env_config env;
    struct roost_env_var var;
    size_t groups = roost_config_node_group_count(config), sum = 0;
    for (size_t i = 0; i < roost_config_label_count(config); i++)
        sum += strlen(roost_config_label(config, i));
    CHECK(!roost_config_label(config, roost_config_label_count(config)));
    for (size_t g = 0; g < groups; g++) {
        CHECK(roost_config_node_group(config, g, &group));
        int32_t node = roost_config_node_group_node(config, g, 0);
        for (int32_t steps = 0; node >= 0 && steps < 1000; steps++) {
            int32_t next = roost_config_node_group_node(config, g, node + 1);
            CHECK(next == -1 || next > node);
            node = next;
        }
        for (size_t e = 0; e < group.env_count; e++) {
            CHECK(roost_config_env_config(config, g, e, &env));
            CHECK(roost_config_env_node(config, g, e, 0) >= -1);
            for (size_t v = 0; v < env.var_count; v++) {
                CHECK(roost_config_env_var(config, g, e, v, &var));
                sum += var.name_len + var.value_len;
            }
            CHECK(!roost_config_env_var(config, g, e, env.var_count, &var));
        }
        CHECK(!roost_config_env_config(config, g, group.env_count, &env));
    }
    CHECK(!roost_config_node_group(config, groups, &group) && sum < SIZE_MAX);
}

/* A component placed again from its own numbers has the same rows. */
static inline void check_again(const struct roost_component *it,
                               const struct roost_cluster *cluster)
{
    const struct roost_scope scope = {.labels = it->node_groups,
                                      .label_count = (size_t)it->node_group_count,
                                      .shares_accelerators = !it->isolate_accelerator};
    int32_t count = it->world_size, held = it->first_hardware[count];
    size_t room = (size_t)(held > count ? held : count);
    int32_t *ranks = calloc(room, sizeof *ranks);
    CHECK(ranks && roost_component_ranks(it, cluster, ranks));
    struct roost_plan *plan =
        it->strategy == ROOST_STRATEGY_PACKED
            ? roost_plan_new_packed(cluster, &scope, &it->packed, NULL)
        : it->strategy == ROOST_STRATEGY_NODE
            ? roost_plan_new_node(cluster, &scope, ranks, count, NULL)
            : roost_plan_new_flexible(cluster, &scope, it->first_hardware, ranks, count, NULL);
    CHECK(plan);
    const struct roost_component *again = roost_plan_component(plan, 0);
    size_t bytes = (size_t)count * sizeof *ranks;
    CHECK(again->world_size == count && again->first_hardware[count] == held);
    CHECK(memcmp(again->cluster_node_rank, it->cluster_node_rank, bytes) == 0);
    CHECK(memcmp(again->local_rank, it->local_rank, bytes) == 0);
    CHECK(memcmp(again->node_group, it->node_group, bytes) == 0);
    CHECK(memcmp(again->first_hardware, it->first_hardware, bytes) == 0);
    CHECK(held == 0 || memcmp(again->hardware, it->hardware, (size_t)held * sizeof *ranks) == 0);
    roost_plan_free(plan);
    free(ranks);
}

static inline bool keep_bytes(void *ctx, const char *bytes, size_t len)
{
    text_append(ctx, bytes, len);
    return true;
}

static inline void check_json(struct text *json)
{
    struct diag diag = diag_start(NULL, NULL);
    struct json_reader *reader =
        json_reader_from_text("document", (struct strview){json->bytes, json->len}, NULL);
    CHECK(reader && json_next(reader, &diag).kind == JSON_OBJECT);
    CHECK(json_skip(reader, &diag) == ROOST_OK && json_next(reader, &diag).kind == JSON_END);
    json_reader_free(reader);
}

/* What was said, for people and for programs: the second must be JSON. */
static inline void check_rendered(const struct roost_report *report)
{
    struct text text = TEXT_INIT, json = TEXT_INIT;
    CHECK(roost_render_report_text(report, NULL, keep_bytes, &text) == ROOST_OK);
    CHECK(roost_render_report_json(report, keep_bytes, &json) == ROOST_OK);
    check_json(&json);
    text_release(&text);
    text_release(&json);
}

#endif
