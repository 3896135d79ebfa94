/* plan_json.c - a plan as one JSON document, streamed.
 *
 * A plan may have a million rows, so a row is written straight into the buffer from fixed pieces;
 * only its strings are prepared before. Other programs rely on the keys and their order: add, never
 * rename. */
#include <assert.h>
#include <string.h>

#include "render/plan_json.h"
#include "render/stream.h"
#include "topology/cluster.h"

static void put_string(struct text *out, const char *key, const char *value)
{
    text_printf(out, "\"%s\": ", key);
    if (value)
        text_json(out, sv_from(value));
    else
        text_puts(out, "null");
}

static void put_count(struct text *out, const char *key, int32_t value)
{
    if (value < 0)
        text_printf(out, "\"%s\": null", key);
    else
        text_printf(out, "\"%s\": %d", key, (int)value);
}

static void put_accelerators(struct text *out, const struct cluster_node *node)
{
    text_puts(out, ", \"accelerators\": [");
    for (int32_t i = 0; i < node->accelerator_count; i++) {
        const struct accelerator *it = &node->accelerators[i];
        text_puts(out, i ? ", {" : "{");
        put_string(out, "id", it->id);
        text_puts(out, ", ");
        put_string(out, "uuid", it->uuid);
        text_puts(out, ", ");
        put_string(out, "pci", it->pci);
        text_puts(out, ", ");
        put_count(out, "numa", it->numa);
        text_char(out, '}');
    }
    text_char(out, ']');
}

static void put_node(struct text *out, const struct cluster_node *node, int32_t node_rank)
{
    text_printf(out, "{\"node_rank\": %d, ", (int)node_rank);
    put_string(out, "id", node->id);
    text_puts(out, ", ");
    put_string(out, "address", node->address);
    text_puts(out, ", ");
    put_count(out, "num_cpus", node->num_cpus);
    text_puts(out, ", ");
    put_string(out, "accelerator_type", roost_accelerator_type(node->accelerator));
    text_puts(out, ", ");
    put_string(out, "accelerator_model", node->model);
    text_puts(out, ", ");
    put_count(out, "num_accelerators", node->accelerator_count);
    if (node->accelerators)
        put_accelerators(out, node);
    text_puts(out, ", \"hardware\": [");
    for (const struct unit *unit = node->units; unit; unit = unit->next) {
        text_puts(out, unit == node->units ? "{" : ", {");
        put_string(out, "type", unit->type);
        text_printf(out, ", \"config\": ");
        text_puts(out, unit->config);
        text_char(out, '}');
    }
    text_puts(out, "]}");
}

/* The digits of a number, then one more byte if any. */
static void put_number(struct text *out, int32_t value, const char *before)
{
    if (!text_reserve(out, 16))
        return;
    text_puts(out, before);
    if (text_reserve(out, 16))
        out->len += format_int32(out->bytes + out->len, value);
}

void render_put_cluster(struct text *out, const struct roost_cluster *cluster)
{
    text_puts(out, "\"nodes\": [");
    for (int32_t n = 0; n < cluster->node_count; n++) {
        text_puts(out, n ? ",\n  " : "\n  ");
        put_node(out, &cluster->nodes[n], n);
    }
    text_puts(out, "],\n \"node_groups\": [");
    for (int32_t g = 0; g < cluster->group_count; g++) {
        const struct node_group *group = &cluster->groups[g];
        text_puts(out, g ? ",\n  {" : "\n  {");
        put_string(out, "label", group->label);
        text_puts(out, ", \"node_ranks\": [");
        for (int32_t m = 0; m < group->member_count; m++)
            put_number(out, group->node_of_member[m], m ? ", " : "");
        text_puts(out, "], ");
        put_string(out, "hardware_type", group->hardware_type);
        text_char(out, '}');
    }
    text_char(out, ']');
}

static void put_cluster(struct text *out, const struct roost_cluster *cluster)
{
    text_puts(out, "\"cluster\": {");
    render_put_cluster(out, cluster);
    text_char(out, '}');
}

enum roost_code roost_render_cluster_json(const struct roost_cluster *cluster, roost_write_fn write,
                                          void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    text_puts(&stream.text, "{\"roost\": 1,\n ");
    put_cluster(&stream.text, cluster);
    text_puts(&stream.text, "}\n");
    return stream_end(&stream);
}

static void put_model_parallel(struct text *out, const struct roost_model_parallel *it)
{
    const struct {
        const char *key;
        int32_t value;
    } sizes[] = {
        {"actor_world_size", it->actor_world_size},
        {"actor_tp_size", it->actor_tp_size},
        {"actor_pp_size", it->actor_pp_size},
        {"actor_cp_size", it->actor_cp_size},
        {"actor_dp_size", it->actor_dp_size},
        {"critic_world_size", it->critic_world_size},
        {"critic_tp_size", it->critic_tp_size},
        {"critic_pp_size", it->critic_pp_size},
        {"critic_cp_size", it->critic_cp_size},
        {"critic_dp_size", it->critic_dp_size},
        {"inference_world_size", it->inference_world_size},
        {"inference_tp_size", it->inference_tp_size},
        {"inference_pp_size", it->inference_pp_size},
        {"inference_dp_size", it->inference_dp_size},
        {"critic_inference_world_size", it->critic_inference_world_size},
        {"critic_inference_tp_size", it->critic_inference_tp_size},
        {"critic_inference_pp_size", it->critic_inference_pp_size},
        {"critic_inference_dp_size", it->critic_inference_dp_size},
        {"rollout_world_size", it->rollout_world_size},
        {"rollout_tp_size", it->rollout_tp_size},
        {"rollout_pp_size", it->rollout_pp_size},
        {"rollout_dp_size", it->rollout_dp_size},
        {"reward_world_size", it->reward_world_size},
    };
    text_puts(out, " \"model_parallel\": {");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        text_printf(out, "\"%s\": %d, ", sizes[i].key, (int)sizes[i].value);
    text_printf(out, "\"has_dedicated_inference\": %s, \"has_dedicated_critic_inference\": %s},\n",
                it->has_dedicated_inference ? "true" : "false",
                it->has_dedicated_critic_inference ? "true" : "false");
}

/* --- rows --- */

#define PUT(literal)                                                                               \
    do {                                                                                           \
        memcpy(at, (literal), sizeof(literal) - 1);                                                \
        at += sizeof(literal) - 1;                                                                 \
    } while (0)

/* Text that is the same in all rows of a component. */
struct row_pieces {
    struct text labels;  /* JSON strings of the node groups, one after the other */
    size_t *first_label; /* [group count + 1] */
};

static char *put_numbers(char *at, const int32_t *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (i)
            PUT(", ");
        at += format_int32(at, values[i]);
    }
    return at;
}

/* Device numbers as strings: values[i], or i itself when there are no values. */
static char *put_devices(char *at, const int32_t *values, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        if (i)
            PUT(", ");
        *at++ = '"';
        at += format_int32(at, values ? values[i] : i);
        *at++ = '"';
    }
    return at;
}

static void put_row(struct text *out, const struct roost_component *it, int32_t p,
                    const struct row_pieces *pieces, const struct plan_json_more *more)
{
    enum { FIXED = 480, PER_NUMBER = 16 };
    const int32_t *hardware = it->hardware + it->first_hardware[p];
    int32_t held = it->first_hardware[p + 1] - it->first_hardware[p];
    bool sees_own = !it->visible_count || it->visible_count[p] < 0;
    int32_t seen = sees_own ? held : it->visible_count[p];
    size_t group = (size_t)it->node_group[p];
    size_t label_len = pieces->first_label[group + 1] - pieces->first_label[group];
    if (!text_reserve(out, FIXED + label_len + (size_t)(held + seen) * PER_NUMBER))
        return;
    char *at = out->bytes + out->len;
    if (p)
        PUT(",\n");
    else
        PUT("\n");
    PUT("    {\"rank\": ");
    at += format_int32(at, p);
    PUT(", \"cluster_node_rank\": ");
    at += format_int32(at, it->cluster_node_rank[p]);
    PUT(", \"placement_node_rank\": ");
    at += format_int32(at, it->placement_node_rank[p]);
    PUT(", \"local_accelerator_rank\": ");
    at += format_int32(at, it->local_accelerator_rank[p]);
    PUT(", \"accelerator_type\": \"");
    const char *type = roost_accelerator_type((enum roost_accelerator)it->accelerator[p]);
    size_t type_len = strlen(type);
    memcpy(at, type, type_len);
    at += type_len;
    PUT("\", \"local_rank\": ");
    at += format_int32(at, it->local_rank[p]);
    PUT(", \"local_world_size\": ");
    at += format_int32(at, it->local_world_size[p]);
    PUT(", \"visible_accelerators\": [");
    at = put_devices(at, sees_own ? hardware : NULL, seen);
    if (it->isolate_accelerator)
        PUT("], \"isolate_accelerator\": true, \"local_hardware_ranks\": [");
    else
        PUT("], \"isolate_accelerator\": false, \"local_hardware_ranks\": [");
    at = put_numbers(at, hardware, held);
    PUT("], \"node_group_label\": ");
    assert(pieces->labels.bytes); /* a component has at least one label */
    memcpy(at, pieces->labels.bytes + pieces->first_label[group], label_len);
    at += label_len;
    if (!more)
        *at++ = '}';
    out->len = (size_t)(at - out->bytes);
    if (!more)
        return;
    more->put(more->ctx, out, it, p);
    text_char(out, '}');
}

static bool prepare(struct row_pieces *pieces, struct arena *arena,
                    const struct roost_component *component)
{
    pieces->first_label = arena_array(arena, size_t, component->node_group_count + 1);
    if (!pieces->first_label)
        return false;
    for (int32_t g = 0; g < component->node_group_count; g++) {
        pieces->first_label[g] = pieces->labels.len;
        text_json(&pieces->labels, sv_from(component->node_groups[g]));
    }
    pieces->first_label[component->node_group_count] = pieces->labels.len;
    return !pieces->labels.has_failed;
}

static void put_component(struct text *out, const struct roost_component *component,
                          const struct plan_json_more *more)
{
    text_puts(out, "{");
    put_string(out, "name", component->name);
    text_puts(out, ", ");
    put_string(out, "strategy", roost_strategy_word(component->strategy));
    text_printf(out, ", \"world_size\": %d, \"node_groups\": [", (int)component->world_size);
    for (int32_t g = 0; g < component->node_group_count; g++) {
        text_puts(out, g ? ", " : "");
        text_json(out, sv_from(component->node_groups[g]));
    }
    text_puts(out, "], \"hardware_ranks\": [");
    bool is_first = true;
    for (int32_t i = 0; i < component->hardware_range_count; i++) {
        struct roost_range range = component->hardware_ranges[i];
        for (int64_t rank = range.first; rank <= range.last && !out->has_failed; rank++) {
            put_number(out, (int32_t)rank, is_first ? "" : ", ");
            is_first = false;
        }
    }
    text_puts(out, "], ");
    put_string(out, "local_rank_rule", roost_local_rank_word(component->local_rank_rule));
    text_puts(out, ",\n   \"processes\": [");
    struct row_pieces pieces = {.labels = TEXT_INIT};
    struct arena scratch = ARENA_INIT;
    if (!prepare(&pieces, &scratch, component))
        out->has_failed = true;
    for (int32_t p = 0; p < component->world_size && !out->has_failed; p++)
        put_row(out, component, p, &pieces, more);
    text_release(&pieces.labels);
    arena_release(&scratch);
    text_puts(out, "]}");
}

enum roost_code render_plan_json(const struct roost_plan *plan, const struct roost_cluster *cluster,
                                 const char *component, const struct plan_json_more *more,
                                 roost_write_fn write, void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct text *out = &stream.text;
    text_puts(out, "{\"roost\": 1,\n ");
    put_string(out, "mode", roost_plan_mode_word(roost_plan_mode(plan)));
    text_puts(out, ",\n");
    text_puts(out, " ");
    put_cluster(out, cluster);
    text_puts(out, ",\n");
    if (roost_plan_model_parallel(plan))
        put_model_parallel(out, roost_plan_model_parallel(plan));
    text_puts(out, " \"components\": [");
    bool is_first = true;
    for (size_t c = 0; c < roost_plan_component_count(plan); c++) {
        const struct roost_component *it = roost_plan_component(plan, c);
        if (component && strcmp(component, it->name) != 0)
            continue;
        text_puts(out, is_first ? "\n  " : ",\n  ");
        put_component(out, it, more);
        is_first = false;
    }
    text_puts(out, "]}\n");
    return stream_end(&stream);
}

enum roost_code roost_render_plan_json(const struct roost_plan *plan,
                                       const struct roost_cluster *cluster, const char *component,
                                       roost_write_fn write, void *ctx)
{
    return render_plan_json(plan, cluster, component, NULL, write, ctx);
}
