/* view_json.c - a cluster as its managers tell it: what a snapshot says of it, and its config.
 *
 * Whoever attaches builds the same cluster from this and nothing else. */
#include "config/config.h"
#include "render/plan_json.h"
#include "render/stream.h"

static void put_keys(struct text *out, const struct source *source)
{
    if (!source->line_keys) {
        text_puts(out, "null");
        return;
    }
    for (int32_t i = 0; i < source->line_key_count; i++) {
        text_char(out, i ? ',' : '[');
        text_json(out, sv_from(source->line_keys[i]));
    }
    text_char(out, ']');
}

/* A config that is too large to be told is none: its nodes and groups are there all the same. */
static void put_config(struct text *out, const struct roost_config *config)
{
    struct text text = TEXT_INIT;
    bool is_told = config && config_put_text(config, &text);
    if (is_told) {
        text_puts(out, "{\"text\":");
        text_json(out, (struct strview){text.bytes, text.len});
        text_puts(out, ",\"paths\":");
        put_keys(out, &config->source);
        text_puts(out, ",\"section\":null}");
    } else {
        text_puts(out, "null");
    }
    out->has_failed = out->has_failed || text.has_failed;
    text_release(&text);
}

enum roost_code roost_render_view_json(const struct roost_cluster *cluster,
                                       const struct roost_config *config, roost_write_fn write,
                                       void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    text_char(&stream.text, '{');
    render_put_cluster(&stream.text, cluster);
    text_puts(&stream.text, ",\n \"config\":");
    put_config(&stream.text, config);
    text_puts(&stream.text, ",\"master_ip\":\"127.0.0.1\",\"master_port\":null}\n");
    return stream_end(&stream);
}
