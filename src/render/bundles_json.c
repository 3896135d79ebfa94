/* bundles_json.c - placement groups as one JSON document, streamed. Keys are a contract: add, never
 * rename. What is not wanted or not known is left out or null, never a number that means nothing. */
#include <roost/render.h>

#include "base/amount.h"
#include "render/stream.h"
#include "json/json_writer.h"

static void put_amount(struct json_writer *json, int64_t amount)
{
    json_put_raw(json, sv_from(amount_text(amount).text));
}

static void put_share(struct json_writer *json, const struct roost_share *share)
{
    json_open_object(json);
    json_put_int(json_key(json, "first"), share->first);
    json_put_int(json_key(json, "count"), share->count);
    json_put_int(json_key(json, "world_size"), share->world_size);
    put_amount(json_key(json, "gpu_each"), share->gpu_each);
    json_close(json);
}

static void put_shares(struct json_writer *json, const struct roost_layout *layout)
{
    json_line(json, 1);
    json_open_object(json_key(json, "shares"));
    put_share(json_key(json, "actor"), &layout->actor);
    json_key(json, "critic");
    if (layout->has_critic)
        put_share(json, &layout->critic);
    else
        json_put_null(json);
    json_line(json, 2);
    put_share(json_key(json, "rollout"), &layout->rollout);
    json_close(json);
}

static void put_nodes(struct json_writer *json, const struct roost_layout *layout)
{
    json_line(json, 1);
    json_open_array(json_key(json, "nodes"));
    for (int32_t n = 0; n < layout->machine_count; n++) {
        const struct roost_machine *it = &layout->machines[n];
        json_line(json, 2);
        json_open_object(json);
        json_put_int(json_key(json, "node"), n);
        json_put_int(json_key(json, "first_slot"), it->first_slot);
        json_put_int(json_key(json, "num_slots"), it->slot_count);
        json_put_int(json_key(json, "num_ports"), it->port_count);
        json_close(json);
    }
    json_close(json);
}

static void put_groups(struct json_writer *json, const struct roost_layout *layout)
{
    json_line(json, 1);
    json_open_array(json_key(json, "server_groups"));
    for (size_t g = 0; g < layout->group_count; g++) {
        const struct roost_server_group *it = &layout->groups[g];
        json_line(json, 2);
        json_open_object(json);
        json_put_string(json_key(json, "model"), it->model);
        json_put_string(json_key(json, "worker_type"), roost_worker_type_word(it->type));
        json_put_count(json_key(json, "num_gpus"), it->num_gpus);
        json_put_count(json_key(json, "num_gpus_per_engine"), it->gpus_per_engine);
        json_put_count(json_key(json, "first_slot"), it->first_slot);
        json_put_int(json_key(json, "first_rank"), it->first_rank);
        json_put_int(json_key(json, "first_engine"), it->first_engine);
        json_put_int(json_key(json, "num_engines"), it->engine_count);
        json_put_bool(json_key(json, "update_weights"), it->updates_weights);
        json_put_bool(json_key(json, "needs_offload"), it->needs_offload);
        json_close(json);
    }
    json_close(json);
}

static void put_part(struct json_writer *json, const struct roost_engines *it, int32_t p)
{
    json_line(json, 4);
    json_open_object(json);
    json_put_int(json_key(json, "rank"), it->rank[p]);
    json_put_int(json_key(json, "slot"), it->slot[p]);
    json_put_int(json_key(json, "node_rank"), it->node_rank[p]);
    json_put_bool(json_key(json, "node0"), it->node_rank[p] == 0);
    json_put_int(json_key(json, "node"), it->machine[p]);
    json_put_int(json_key(json, "local_gpu"), it->local_gpu[p]);
    json_open_object(json_key(json, "ports"));
    json_put_int(json_key(json, "server"), 1);
    json_put_int(json_key(json, "nccl"), 1);
    if (it->boot_ports[p])
        json_put_int(json_key(json, "bootstrap"), it->boot_ports[p]);
    if (it->dist_ports[p])
        json_put_int(json_key(json, "dist_init"), it->dist_ports[p]);
    json_close(json);
    json_open_object(json_key(json, "port_offsets"));
    json_put_int(json_key(json, "server"), it->server_at[p]);
    json_put_int(json_key(json, "nccl"), it->nccl_at[p]);
    if (it->boot_ports[p])
        json_put_int(json_key(json, "bootstrap"), it->boot_at[p]);
    if (it->dist_ports[p])
        json_put_int(json_key(json, "dist_init"), it->dist_at[p]);
    json_close(json);
    json_close(json);
}

static void put_engine(struct json_writer *json, const struct roost_layout *layout, int32_t e)
{
    const struct roost_engines *it = &layout->engines;
    const struct roost_server_group *group = &layout->groups[it->group[e]];
    json_line(json, 2);
    json_open_object(json);
    json_put_int(json_key(json, "engine"), e);
    json_put_string(json_key(json, "model"), group->model);
    json_put_string(json_key(json, "worker_type"), roost_worker_type_word(group->type));
    json_put_count(json_key(json, "gpus"), it->gpus[e]);
    json_put_count(json_key(json, "first_slot"), it->first_slot[e]);
    json_put_count(json_key(json, "offset"), it->offset[e]);
    json_put_int(json_key(json, "server_group"), it->group[e]);
    json_put_string(json_key(json, "address"), it->address ? it->address[e] : NULL);
    json_line(json, 3);
    json_open_array(json_key(json, "parts"));
    for (int32_t p = it->first_part[e]; p < it->first_part[e + 1]; p++)
        put_part(json, it, p);
    json_close(json);
    json_close(json);
}

static void put_settings(struct json_writer *json, const struct roost_layout *layout)
{
    json_line(json, 1);
    json_put_int(json_key(json, "num_gpus"), layout->num_gpus);
    json_put_int(json_key(json, "rollout_offset"), layout->rollout_offset);
    json_line(json, 1);
    json_put_string(json_key(json, "layout"), roost_layout_row_word(layout->row));
    json_put_string(json_key(json, "profile"), layout->is_seed ? "seed" : "present");
    json_put_int(json_key(json, "num_gpus_per_node"), layout->num_gpus_per_node);
    put_amount(json_key(json, "num_cpus"), layout->num_cpus);
    json_put_int(json_key(json, "port_base"), layout->port_base);
    json_line(json, 1);
    json_put_bool(json_key(json, "offload_train"), layout->offload_train);
    json_put_bool(json_key(json, "offload_rollout"), layout->offload_rollout);
    json_put_bool(json_key(json, "share_gpu_ids"), layout->has_gpu_ids);
}

enum roost_code roost_render_bundles_json(const struct roost_bundles *bundles, roost_write_fn write,
                                          void *ctx)
{
    const struct roost_layout *layout = roost_bundles_layout(bundles);
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct json_writer json = json_writer_on(&stream.text, JSON_SPACED);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    put_settings(&json, layout);
    put_shares(&json, layout);
    put_nodes(&json, layout);
    put_groups(&json, layout);
    json_line(&json, 1);
    json_open_array(json_key(&json, "engines"));
    for (int32_t e = 0; e < layout->engines.engine_count && !stream.text.has_failed; e++)
        put_engine(&json, layout, e);
    json_close(&json);
    json_close(&json);
    text_char(&stream.text, '\n');
    return stream_end(&stream);
}
