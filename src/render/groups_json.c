/* groups_json.c - placement groups as one JSON document, streamed. Keys are a contract: add, never
 * rename. What is not wanted or not known is left out or null, never a number that means nothing. */
#include <roost/render.h>

#include "base/amount.h"
#include "render/stream.h"

static void put_flag(struct text *out, const char *key, bool value)
{
    text_printf(out, "\"%s\": %s", key, value ? "true" : "false");
}

/* -1 is null. */
static void put_count(struct text *out, const char *key, int32_t value)
{
    if (value < 0)
        text_printf(out, "\"%s\": null", key);
    else
        text_printf(out, "\"%s\": %d", key, (int)value);
}

static void put_word(struct text *out, const char *key, const char *value)
{
    text_printf(out, "\"%s\": ", key);
    text_json(out, sv_from(value));
}

static void put_share(struct text *out, const char *name, const struct roost_share *share)
{
    if (!share) {
        text_printf(out, "\"%s\": null", name);
        return;
    }
    text_printf(out, "\"%s\": {\"first\": %d, \"count\": %d, \"world_size\": %d, \"gpu_each\": %s}",
                name, (int)share->first, (int)share->count, (int)share->world_size,
                amount_text(share->gpu_each).text);
}

static void put_nodes(struct text *out, const struct roost_layout *layout)
{
    text_puts(out, " \"nodes\": [");
    for (int32_t n = 0; n < layout->machine_count; n++) {
        const struct roost_machine *it = &layout->machines[n];
        text_printf(
            out, "%s\n  {\"node\": %d, \"first_slot\": %d, \"num_slots\": %d, \"num_ports\": %d}",
            n ? "," : "", (int)n, (int)it->first_slot, (int)it->slot_count, (int)it->port_count);
    }
    text_puts(out, "],\n");
}

static void put_groups(struct text *out, const struct roost_layout *layout)
{
    text_puts(out, " \"server_groups\": [");
    for (size_t g = 0; g < layout->group_count; g++) {
        const struct roost_server_group *it = &layout->groups[g];
        text_puts(out, g ? ",\n  {" : "\n  {");
        put_word(out, "model", it->model);
        text_puts(out, ", ");
        put_word(out, "worker_type", roost_worker_type_word(it->type));
        text_puts(out, ", ");
        put_count(out, "num_gpus", it->num_gpus);
        text_puts(out, ", ");
        put_count(out, "num_gpus_per_engine", it->gpus_per_engine);
        text_puts(out, ", ");
        put_count(out, "first_slot", it->first_slot);
        text_printf(out, ", \"first_rank\": %d, \"first_engine\": %d, \"num_engines\": %d, ",
                    (int)it->first_rank, (int)it->first_engine, (int)it->engine_count);
        put_flag(out, "update_weights", it->updates_weights);
        text_puts(out, ", ");
        put_flag(out, "needs_offload", it->needs_offload);
        text_char(out, '}');
    }
    text_puts(out, "],\n");
}

static void put_part(struct text *out, const struct roost_engines *it, int32_t p)
{
    text_printf(out,
                "{\"rank\": %d, \"slot\": %d, \"node_rank\": %d, \"node0\": %s, \"node\": %d, "
                "\"local_gpu\": %d, \"ports\": {\"server\": 1, \"nccl\": 1",
                (int)it->rank[p], (int)it->slot[p], (int)it->node_rank[p],
                it->node_rank[p] == 0 ? "true" : "false", (int)it->machine[p],
                (int)it->local_gpu[p]);
    if (it->boot_ports[p])
        text_printf(out, ", \"bootstrap\": %d", (int)it->boot_ports[p]);
    if (it->dist_ports[p])
        text_printf(out, ", \"dist_init\": %d", (int)it->dist_ports[p]);
    text_printf(out, "}, \"port_offsets\": {\"server\": %d, \"nccl\": %d", (int)it->server_at[p],
                (int)it->nccl_at[p]);
    if (it->boot_ports[p])
        text_printf(out, ", \"bootstrap\": %d", (int)it->boot_at[p]);
    if (it->dist_ports[p])
        text_printf(out, ", \"dist_init\": %d", (int)it->dist_at[p]);
    text_puts(out, "}}");
}

static void put_engine(struct text *out, const struct roost_layout *layout, int32_t e)
{
    const struct roost_engines *it = &layout->engines;
    const struct roost_server_group *group = &layout->groups[it->group[e]];
    text_printf(out, "%s\n  {\"engine\": %d, ", e ? "," : "", (int)e);
    put_word(out, "model", group->model);
    text_puts(out, ", ");
    put_word(out, "worker_type", roost_worker_type_word(group->type));
    text_puts(out, ", ");
    put_count(out, "gpus", it->gpus[e]);
    text_puts(out, ", ");
    put_count(out, "first_slot", it->first_slot[e]);
    text_puts(out, ", ");
    put_count(out, "offset", it->offset[e]);
    text_printf(out, ", \"server_group\": %d, \"address\": ", (int)it->group[e]);
    if (it->address)
        text_json(out, sv_from(it->address[e]));
    else
        text_puts(out, "null");
    text_puts(out, ",\n   \"parts\": [");
    for (int32_t p = it->first_part[e]; p < it->first_part[e + 1]; p++) {
        text_puts(out, p > it->first_part[e] ? ",\n    " : "\n    ");
        put_part(out, it, p);
    }
    text_puts(out, "]}");
}

enum roost_code roost_render_groups_json(const struct roost_bundles *bundles, roost_write_fn write,
                                         void *ctx)
{
    const struct roost_layout *layout = roost_bundles_layout(bundles);
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct text *out = &stream.text;
    text_printf(out, "{\"roost\": 1,\n \"num_gpus\": %d, \"rollout_offset\": %d,\n ",
                (int)layout->num_gpus, (int)layout->rollout_offset);
    put_word(out, "layout", roost_layout_row_word(layout->row));
    text_puts(out, ", ");
    put_word(out, "profile", layout->is_seed ? "seed" : "present");
    text_printf(out, ", \"num_gpus_per_node\": %d, \"num_cpus\": %s, \"port_base\": %d,\n ",
                (int)layout->num_gpus_per_node, amount_text(layout->num_cpus).text,
                (int)layout->port_base);
    put_flag(out, "offload_train", layout->offload_train);
    text_puts(out, ", ");
    put_flag(out, "offload_rollout", layout->offload_rollout);
    text_puts(out, ", ");
    put_flag(out, "share_gpu_ids", layout->has_gpu_ids);
    text_puts(out, ",\n \"shares\": {");
    put_share(out, "actor", &layout->actor);
    text_puts(out, ", ");
    put_share(out, "critic", layout->has_critic ? &layout->critic : NULL);
    text_puts(out, ",\n  ");
    put_share(out, "rollout", &layout->rollout);
    text_puts(out, "},\n");
    put_nodes(out, layout);
    put_groups(out, layout);
    text_puts(out, " \"engines\": [");
    for (int32_t e = 0; e < layout->engines.engine_count && !out->has_failed; e++)
        put_engine(out, layout, e);
    text_puts(out, "]}\n");
    return stream_end(&stream);
}
