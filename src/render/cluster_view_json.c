/* cluster_view_json.c - a cluster as its managers tell it: what a snapshot says of it, and its config.
 *
 * Whoever attaches builds the same cluster from this and nothing else. */
#include <roost/engine/cluster.h>

#include "config/config.h"
#include "render/plan_json.h"
#include "render/stream.h"

static void put_keys(struct json_writer *json, const struct source *source)
{
    if (!source->line_keys) {
        json_put_null(json);
        return;
    }
    json_open_array(json);
    for (int32_t i = 0; i < source->line_key_count; i++)
        json_put_string(json, source->line_keys[i]);
    json_close(json);
}

/* A config that is too large to be told is none: its nodes and groups are there all the same. */
static void put_config(struct json_writer *json, const struct roost_config *config)
{
    struct text text = TEXT_INIT;
    if (config && config_put_text(config, &text)) {
        json_open_object(json);
        json_put_view(json_key(json, "text"), (struct strview){text.bytes, text.len});
        put_keys(json_key(json, "paths"), &config->source);
        json_put_null(json_key(json, "section"));
        json_close(json);
    } else {
        json_put_null(json);
    }
    json->out->has_failed = json->out->has_failed || text.has_failed;
    text_release(&text);
}

enum roost_code roost_render_cluster_view(const struct roost_cluster *cluster,
                                          const struct roost_config *config, roost_write_fn write,
                                          void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct json_writer json = json_writer_on(&stream.text, JSON_SPACED);
    json_open_object(&json);
    render_put_cluster(&json, cluster);
    json.layout = JSON_COMPACT; /* what a snapshot says ends here */
    json_line(&json, 1);
    put_config(json_key(&json, "config"), config);
    json_put_string(json_key(&json, "master_ip"), "127.0.0.1");
    json_put_null(json_key(&json, "master_port"));
    json_close(&json);
    text_char(&stream.text, '\n');
    return stream_end(&stream);
}
