/* config_text.c - a config as one text that reads the same.
 *
 * That of its file, when nothing was put over it. Otherwise the tree, with overrides and composed files
 * in it, in the part of YAML that is JSON. Interpolations stay as they are written: whoever reads the
 * text resolves them. No json_writer writes it: plain words keep their type without quotes, and aliases nest
 * deeper than a writer goes. */
#include "config/config.h"
#include "config/yaml11.h"
#include "json/json_writer.h"

struct writing {
    struct text *out;
    size_t first; /* bytes that were there before */
};

/* Aliases stand for what they name, so a small file can be a large text. */
static bool is_full(const struct writing *it)
{
    return it->out->has_failed || it->out->len - it->first > CONFIG_BYTES_MAX;
}

/* Whether others see something else in it than in the same text in quotes. In JSON's brackets a ':' is
 * not for plain words, and to roost it is text anyway. */
static bool is_typed(const struct node *scalar)
{
    return scalar->is_plain && yaml11_read(scalar->text).kind != YAML11_TEXT &&
           sv_find(scalar->text, ':', 0) == scalar->text.len;
}

static void put_scalar(struct writing *it, const struct node *scalar)
{
    if (node_is_null(scalar))
        text_puts(it->out, "null");
    else if (is_typed(scalar))
        text_put(it->out, scalar->text);
    else
        text_json(it->out, scalar->text);
}

static void put_node(struct writing *it, const struct node *node)
{
    if (node->kind == NODE_SCALAR) {
        put_scalar(it, node);
        return;
    }
    bool is_mapping = node->kind == NODE_MAPPING;
    text_char(it->out, is_mapping ? '{' : '[');
    for (int32_t i = 0; i < node->count && !is_full(it); i++) {
        text_puts(it->out, i ? ",\n" : ""); /* a place in it is a line, not a column */
        if (is_mapping) {
            text_json(it->out, node->pairs[i].key->text);
            text_puts(it->out, ": ");
        }
        put_node(it, is_mapping ? node->pairs[i].value : node->items[i]);
    }
    text_char(it->out, is_mapping ? '}' : ']');
}

bool config_put_text(const struct roost_config *config, struct text *out)
{
    if (!config->is_layered) {
        text_put(out, config->source.text);
        return true;
    }
    struct writing it = {.out = out, .first = out->len};
    put_node(&it, config->root);
    return !is_full(&it);
}
