/* plan_json.c - a plan as one JSON document, streamed.
 *
 * A plan may have a million rows, so the members of a row are written straight into the buffer from
 * fixed pieces; only its strings are prepared before. Other programs rely on the keys and their order: add, never
 * rename. */
#include <assert.h>
#include <string.h>

#include "render/plan_json.h"
#include "render/stream.h"
#include "topology/cluster.h"

static void put_accelerators(struct json_writer *json, const struct cluster_node *node)
{
    json_open_array(json_key(json, "accelerators"));
    for (int32_t i = 0; i < node->accelerator_count; i++) {
        const struct accelerator *it = &node->accelerators[i];
        json_open_object(json);
        json_put_string(json_key(json, "id"), it->id);
        json_put_string(json_key(json, "uuid"), it->uuid);
        json_put_string(json_key(json, "pci"), it->pci);
        json_put_count(json_key(json, "numa"), it->numa);
        json_close(json);
    }
    json_close(json);
}

static void put_node(struct json_writer *json, const struct cluster_node *node, int32_t node_rank)
{
    json_open_object(json);
    json_put_int(json_key(json, "node_rank"), node_rank);
    json_put_string(json_key(json, "id"), node->id);
    json_put_string(json_key(json, "address"), node->address);
    json_put_count(json_key(json, "num_cpus"), node->num_cpus);
    json_put_string(json_key(json, "accelerator_type"), roost_accelerator_type(node->accelerator));
    json_put_string(json_key(json, "accelerator_model"), node->model);
    json_put_count(json_key(json, "num_accelerators"), node->accelerator_count);
    if (node->accelerators)
        put_accelerators(json, node);
    json_open_array(json_key(json, "hardware"));
    for (const struct unit *unit = node->units; unit; unit = unit->next) {
        json_open_object(json);
        json_put_string(json_key(json, "type"), unit->type);
        json_put_raw(json_key(json, "config"), sv_from(unit->config));
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

void render_put_cluster(struct json_writer *json, const struct roost_cluster *cluster)
{
    json_open_array(json_key(json, "nodes"));
    for (int32_t n = 0; n < cluster->node_count; n++) {
        json_line(json, 2);
        put_node(json, &cluster->nodes[n], n);
    }
    json_close(json);
    json_line(json, 1);
    json_open_array(json_key(json, "node_groups"));
    for (int32_t g = 0; g < cluster->node_group_count; g++) {
        const struct node_group *group = &cluster->node_groups[g];
        json_line(json, 2);
        json_open_object(json);
        json_put_string(json_key(json, "label"), group->label);
        json_open_array(json_key(json, "node_ranks"));
        for (int32_t m = 0; m < group->member_count; m++)
            json_put_int(json, group->node_of_member[m]);
        json_close(json);
        json_put_string(json_key(json, "hardware_type"), group->hardware_type);
        json_close(json);
    }
    json_close(json);
}

static void put_cluster(struct json_writer *json, const struct roost_cluster *cluster)
{
    json_line(json, 1);
    json_open_object(json_key(json, "cluster"));
    render_put_cluster(json, cluster);
    json_close(json);
}

enum roost_code roost_render_cluster_json(const struct roost_cluster *cluster, roost_write_fn write,
                                          void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct json_writer json = json_writer_on(&stream.text, JSON_SPACED);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    put_cluster(&json, cluster);
    json_close(&json);
    text_char(&stream.text, '\n');
    return stream_end(&stream);
}

static void put_model_parallel(struct json_writer *json, const struct roost_model_parallel *it)
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
    json_line(json, 1);
    json_open_object(json_key(json, "model_parallel"));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        json_put_int(json_key(json, sizes[i].key), sizes[i].value);
    json_put_bool(json_key(json, "has_dedicated_inference"), it->has_dedicated_inference);
    json_put_bool(json_key(json, "has_dedicated_critic_inference"),
                  it->has_dedicated_critic_inference);
    json_close(json);
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

/* The members of a process's object. */
static void put_members(struct json_writer *json, const struct roost_component *it, int32_t p,
                        const struct row_pieces *pieces)
{
    enum { FIXED = 480, PER_NUMBER = 16 };
    const int32_t *hardware = it->hardware + it->first_hardware[p];
    int32_t held = it->first_hardware[p + 1] - it->first_hardware[p];
    bool sees_own = !it->visible_count || it->visible_count[p] < 0;
    int32_t seen = sees_own ? held : it->visible_count[p];
    size_t group = (size_t)it->node_group[p];
    size_t label_len = pieces->first_label[group + 1] - pieces->first_label[group];
    char *at = json_raw_start(json, FIXED + label_len + (size_t)(held + seen) * PER_NUMBER);
    if (!at)
        return;
    PUT("\"rank\": ");
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
    json_raw_end(json, at + label_len);
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

static void put_rows(struct json_writer *json, const struct roost_component *component,
                     const struct plan_json_more *more)
{
    struct row_pieces pieces = {.labels = TEXT_INIT};
    struct arena scratch = ARENA_INIT;
    if (!prepare(&pieces, &scratch, component))
        json->out->has_failed = true;
    for (int32_t p = 0; p < component->world_size && !json->out->has_failed; p++) {
        json_line(json, 4);
        json_open_object(json);
        put_members(json, component, p, &pieces);
        if (more)
            more->put(more->ctx, json, component, p);
        json_close(json);
    }
    text_release(&pieces.labels);
    arena_release(&scratch);
}

static void put_component(struct json_writer *json, const struct roost_component *component,
                          const struct plan_json_more *more)
{
    json_open_object(json);
    json_put_string(json_key(json, "name"), component->name);
    json_put_string(json_key(json, "strategy"), roost_strategy_word(component->strategy));
    json_put_int(json_key(json, "world_size"), component->world_size);
    json_open_array(json_key(json, "node_groups"));
    for (int32_t g = 0; g < component->node_group_count; g++)
        json_put_string(json, component->node_groups[g]);
    json_close(json);
    json_open_array(json_key(json, "hardware_ranks"));
    for (int32_t i = 0; i < component->hardware_range_count; i++) {
        struct roost_range range = component->hardware_ranges[i];
        for (int64_t rank = range.first; rank <= range.last && !json->out->has_failed; rank++)
            json_put_int(json, rank);
    }
    json_close(json);
    json_put_string(json_key(json, "local_rank_rule"),
                    roost_local_rank_word(component->local_rank_rule));
    json_line(json, 3);
    json_open_array(json_key(json, "processes"));
    put_rows(json, component, more);
    json_close(json);
    json_close(json);
}

enum roost_code render_plan_json(const struct roost_plan *plan, const struct roost_cluster *cluster,
                                 const char *component, const struct plan_json_more *more,
                                 roost_write_fn write, void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct json_writer json = json_writer_on(&stream.text, JSON_SPACED);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    json_line(&json, 1);
    json_put_string(json_key(&json, "mode"), roost_plan_mode_word(roost_plan_mode(plan)));
    put_cluster(&json, cluster);
    if (roost_plan_model_parallel(plan))
        put_model_parallel(&json, roost_plan_model_parallel(plan));
    json_line(&json, 1);
    json_open_array(json_key(&json, "components"));
    for (size_t c = 0; c < roost_plan_component_count(plan); c++) {
        const struct roost_component *it = roost_plan_component(plan, c);
        if (component && !list_has(component, it->name))
            continue;
        json_line(&json, 2);
        put_component(&json, it, more);
    }
    json_close(&json);
    json_close(&json);
    text_char(&stream.text, '\n');
    return stream_end(&stream);
}

enum roost_code roost_render_plan_json(const struct roost_plan *plan,
                                       const struct roost_cluster *cluster, const char *component,
                                       roost_write_fn write, void *ctx)
{
    return render_plan_json(plan, cluster, component, NULL, write, ctx);
}
