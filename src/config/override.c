/* override.c - dotted keys into a tree. Every container on the path is copied first: an alias may
 * share it with a place that was not meant. */
#include "config/override.h"

#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "config/yaml_load.h"

enum { OVERRIDES_MAX = 1024 };

struct override {
    struct arena *arena;
    struct diag *diag;
    struct place at; /* of the key */
    const char *key; /* its first character */
    struct node *value;
};

/* The first segment of a dotted path that continues after it; path.len when it is the last. A key that
 * itself holds dots is taken whole. */
static size_t segment_end(const struct node *in, struct strview path)
{
    return node_get(in, path) ? path.len : sv_find(path, '.', 0);
}

static struct node *set(struct override *override, struct node *in, struct strview path, int depth);

static struct node *nomem(struct override *override)
{
    diag_nomem(override->diag);
    return NULL;
}

static struct node *set_key(struct override *override, struct node *in, struct strview path,
                            int depth)
{
    size_t end = segment_end(in, path);
    struct strview segment = sv_sub(path, 0, end);
    struct node *old = node_get(in, segment);
    struct node *child = end == path.len
                             ? node_merge(override->arena, old, override->value)
                             : set(override, old, sv_sub(path, end + 1, path.len), depth);
    struct node *copy = child ? node_copy_mapping(override->arena, in, 1) : NULL;
    struct node *key = copy ? node_new_scalar(override->arena, override->value, segment) : NULL;
    if (!key)
        return child ? nomem(override) : NULL;
    key->line = override->at.line;
    key->column = override->at.column + (int32_t)(segment.at - override->key);
    child->parent = copy;
    node_put(copy, key, child);
    return copy;
}

static struct node *set_item(struct override *override, struct node *in, struct strview path,
                             int depth)
{
    size_t end = sv_find(path, '.', 0);
    int64_t index;
    if (number_parse(sv_sub(path, 0, end), in->count - 1, &index) != NUMBER_OK) {
        diag_error(override->diag, ROOST_ERR_REFERENCE, override->at,
                   "'%s' is not an index of this list of %d", quote(sv_sub(path, 0, end)).text,
                   (int)in->count);
        if (in->count > 1)
            diag_hint(override->diag, "its indices are 0-%d", (int)in->count - 1);
        else if (in->count)
            diag_hint(override->diag, "its only index is 0");
        else
            diag_hint(override->diag, "it is empty: set the whole list, as in key=[a, b]");
        return NULL;
    }
    struct node *old = in->items[index];
    struct node *child = end == path.len
                             ? node_merge(override->arena, old, override->value)
                             : set(override, old, sv_sub(path, end + 1, path.len), depth);
    if (!child)
        return NULL;
    struct node *copy = arena_array(override->arena, struct node, 1);
    struct node **items = arena_array(override->arena, struct node *, in->count);
    if (!copy || !items)
        return nomem(override);
    *copy = *in;
    copy->items = memcpy(items, in->items, (size_t)in->count * sizeof *items);
    copy->items[index] = child;
    child->parent = copy;
    return copy;
}

/* `in` with the value at `path`; NULL after it reported why it cannot be. */
static struct node *set(struct override *override, struct node *in, struct strview path, int depth)
{
    if (path.len == 0 || path.at[0] == '.' || depth > TREE_DEPTH_MAX) {
        diag_error(override->diag, ROOST_ERR_USAGE, override->at, "the key is not a dotted path");
        diag_hint(override->diag, "put one '.' between two names, as in cluster.num_nodes=4");
        return NULL;
    }
    if (!in || node_is_null(in)) {
        in = node_new_mapping(override->arena, override->value, 1);
        if (!in)
            return nomem(override);
    }
    if (in->kind == NODE_MAPPING)
        return set_key(override, in, path, depth + 1);
    if (in->kind == NODE_SEQUENCE)
        return set_item(override, in, path, depth + 1);
    diag_error(override->diag, ROOST_ERR_REFERENCE, override->at,
               "'%s' would go below a value that is not a mapping", quote(path).text);
    diag_hint(override->diag, "leave '.%s' out to replace that value", quote(path).text);
    return NULL;
}

/* Applies the override `text`, which starts at `start`. */
static struct node *apply(struct arena *arena, struct node *root, struct place start,
                          struct strview text, struct diag *diag)
{
    size_t equals = sv_find(text, '=', 0);
    struct override override = {.arena = arena, .diag = diag, .at = start, .key = text.at};
    override.at.length = (int32_t)(equals ? equals : 1);
    if (equals == text.len || equals == 0 || text.at[0] == '+' || text.at[0] == '~') {
        bool is_prefix = text.len > 0 && (text.at[0] == '+' || text.at[0] == '~');
        diag_error(diag, ROOST_ERR_USAGE, override.at, "'%s' is not an override", quote(text).text);
        diag_hint(diag, is_prefix ? "write key=value: keys are added or replaced, never removed"
                                  : "write key=value, such as cluster.num_nodes=4");
        return root;
    }
    struct strview value = sv_sub(text, equals + 1, text.len);
    struct place at = place_behind(start, sv_sub(text, 0, equals + 1));
    if (sv_trim(value).len == 0) {
        struct node like = {.source = at.source, .line = at.line, .column = at.column};
        override.value = node_new_scalar(arena, &like, SV(""));
        if (!override.value)
            diag_nomem(diag);
    } else {
        override.value = yaml_load(arena, at.source, value, at.line, at.column, diag);
    }
    struct node *changed = override.value ? set(&override, root, sv_sub(text, 0, equals), 0) : NULL;
    return changed ? changed : root;
}

struct node *override_apply(struct arena *arena, struct node *root, const char *const *overrides,
                            size_t count, struct diag *diag)
{
    struct text all = TEXT_INIT;
    if (count > OVERRIDES_MAX) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "more than %d overrides", OVERRIDES_MAX);
        diag_hint(diag, "write %zu of them into the config", count - OVERRIDES_MAX);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        text_puts(&all, overrides[i]);
        text_char(&all, '\n');
    }
    /* One text for all of them, so that errors can show the override they are about. */
    struct source *source = arena_zeroed(arena, struct source, 1);
    char *copy = all.has_failed ? NULL : arena_copy(arena, (struct strview){all.bytes, all.len});
    size_t len = all.len;
    text_release(&all);
    if (!source || !copy) {
        diag_nomem(diag);
        return NULL;
    }
    *source = (struct source){.name = "command line", .text = {copy, len}};
    size_t from = 0;
    struct place at = {.source = source, .line = 1, .column = 1};
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(overrides[i]);
        root = apply(arena, root, at, sv_sub(source->text, from, from + length), diag);
        at = place_behind(at, sv_sub(source->text, from, from + length + 1));
        from += length + 1;
    }
    return root;
}
