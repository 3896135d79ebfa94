/* tree_unit.h - for tests of config/: YAML text in, a tree as one line of text out. */
#ifndef TESTS_TREE_UNIT_H
#define TESTS_TREE_UNIT_H

#include "base/text.h"
#include "config/yaml_load.h"
#include "tests/unit.h"

/* A tree and what was said while it was made. */
struct loaded {
    struct arena arena;
    struct source source;
    struct roost_report *report;
    struct roost_error err;
    struct diag diag;
    struct node *root;
};

/* Starts with what was said kept in a report; `loaded` must not move afterwards. */
static inline void load_start(struct loaded *loaded, struct strview text)
{
    *loaded =
        (struct loaded){.source = {.name = "x.yaml", .text = text}, .report = roost_report_new()};
    loaded->diag = diag_start(loaded->report, &loaded->err);
}

static inline void load_text(struct loaded *loaded, struct strview text)
{
    load_start(loaded, text);
    loaded->root = yaml_load(&loaded->arena, &loaded->source, text, 1, 1, &loaded->diag);
}

static inline void load_release(struct loaded *loaded)
{
    roost_report_free(loaded->report);
    arena_release(&loaded->arena);
}

/* Flow style: {a: 1, b: [x, 'quoted']}. */
static inline void put_node(struct text *out, const struct node *node)
{
    if (node->kind == NODE_SCALAR) {
        text_puts(out, node->is_plain ? "" : "'");
        text_put(out, node->text);
        text_puts(out, node->is_plain ? "" : "'");
        return;
    }
    bool is_mapping = node->kind == NODE_MAPPING;
    text_char(out, is_mapping ? '{' : '[');
    for (int32_t i = 0; i < node->count; i++) {
        text_puts(out, i ? ", " : "");
        if (is_mapping) {
            text_put(out, node->pairs[i].key->text);
            text_puts(out, ": ");
        }
        put_node(out, is_mapping ? node->pairs[i].value : node->items[i]);
    }
    text_char(out, is_mapping ? '}' : ']');
}

/* "rank 3:4: message" of the first error. */
static inline void put_error(struct text *out, const struct roost_error *err)
{
    text_printf(out, "%s %d:%d: %s", roost_code_word(err->code), err->line, err->column,
                err->message);
}

#endif
