/* plan_unit.h - for tests of topology and placement: small clusters in, plans as short text out. */
#ifndef TESTS_PLAN_UNIT_H
#define TESTS_PLAN_UNIT_H

#include <roost/roost.h>

#include "base/text.h"
#include "tests/unit.h"

/* The cluster of a spec with node groups (a YAML list, or NULL). The config it is made with is gone
 * when this returns. */
static inline struct roost_cluster *cluster_of(const char *spec, const char *groups)
{
    struct roost_error err;
    struct roost_cluster_options options = {.text = spec};
    struct roost_cluster *bare = roost_cluster_new(&options, NULL, &err);
    if (!bare)
        fail_msg("'%s': %s", spec, err.message);
    if (!groups)
        return bare;
    struct text yaml = TEXT_INIT;
    text_printf(&yaml, "cluster: {num_nodes: %d, component_placement: {}, node_groups: %s}",
                (int)roost_cluster_node_count(bare), groups);
    roost_cluster_free(bare);
    struct roost_config_options reading = {
        .path = "groups", .text = text_string(&yaml), .text_len = yaml.len};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    if (!config)
        fail_msg("'%s': %s", groups, err.message);
    options.config = config;
    struct roost_cluster *cluster = roost_cluster_new(&options, NULL, &err);
    if (!cluster)
        fail_msg("'%s': %s", groups, err.message);
    roost_config_free(config);
    text_release(&yaml);
    return cluster;
}

static inline void put_ranks(struct text *out, const int32_t *ranks, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        text_printf(out, i ? ",%d" : "%d", (int)(ranks ? ranks[i] : i));
}

/* "0 node0:0,1\n1 node0:2,3\n": rank, node, what the process holds there. */
static inline void put_brief(struct text *out, const struct roost_component *it)
{
    for (int32_t p = 0; p < it->world_size; p++) {
        text_printf(out, "%d node%d:", (int)p, (int)it->cluster_node_rank[p]);
        put_ranks(out, it->hardware + it->first_hardware[p],
                  it->first_hardware[p + 1] - it->first_hardware[p]);
        text_char(out, '\n');
    }
}

/* Every field, in a notation of its own:
 * "r0 n0 p0 lar0 lr0/2 vis0,1 hw[0,1] g=cluster\n" */
static inline void put_full(struct text *out, const struct roost_component *it)
{
    for (int32_t p = 0; p < it->world_size; p++) {
        const int32_t *held = it->hardware + it->first_hardware[p];
        int32_t held_count = it->first_hardware[p + 1] - it->first_hardware[p];
        bool sees_own = !it->visible_count || it->visible_count[p] < 0;
        text_printf(out, "r%d n%d p%d lar%d lr%d/%d vis", (int)p, (int)it->cluster_node_rank[p],
                    (int)it->placement_node_rank[p], (int)it->local_accelerator_rank[p],
                    (int)it->local_rank[p], (int)it->local_world_size[p]);
        put_ranks(out, sees_own ? held : NULL, sees_own ? held_count : it->visible_count[p]);
        text_puts(out, " hw[");
        put_ranks(out, held, held_count);
        text_printf(out, "] g=%s\n", it->node_groups[it->node_group[p]]);
    }
}

/* The plan of a config text against a cluster spec; NULL with *err filled. Config and cluster are
 * gone when this returns: a plan owns all it shows. */
static inline struct roost_plan *plan_of(const char *spec, const char *yaml, enum roost_mode mode,
                                         struct roost_error *err)
{
    struct roost_config_options reading = {.path = "plan.yaml",
                                           .text = yaml,
                                           .text_len = strlen(yaml),
                                           .reads_model = mode == ROOST_MODE_MODEL_PARALLEL};
    struct roost_config *config = roost_config_load(&reading, NULL, err);
    struct roost_cluster_options options = {.text = spec, .config = config};
    struct roost_cluster *cluster = config ? roost_cluster_new(&options, NULL, err) : NULL;
    struct roost_plan_options wanted = {.mode = mode};
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, &wanted, NULL, err) : NULL;
    roost_config_free(config);
    roost_cluster_free(cluster);
    return plan;
}

#endif
