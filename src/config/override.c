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
    struct strview path; /* the whole key */
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

/* --- keys that the config does not have --- */

/* Keys that roost itself reads: they need not be in the file. The readers refuse wrong ones below them. */
static const char *const cluster_keys[] = {"num_nodes", "component_placement", "node_groups", NULL};
static const char *const roost_keys[] = {"cluster", "engine", "groups", "launch",
                                         "logs",    "mode",   "ray",    NULL};

static const struct section {
    const char *name;
    const char *const *keys;
} sections[] = {{"cluster", cluster_keys}, {"roost", roost_keys}};

static const struct section *find_section(struct strview name)
{
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (sv_is(name, sections[i].name))
            return &sections[i];
    return NULL;
}

/* Where the search for a key ended: `in` has no `rest` of it. */
struct missing {
    const struct node
        *in; /* NULL = the key is there, or what is wrong with it is for set() to say */
    struct strview rest;
};

static struct missing find_missing(const struct node *in, struct strview path)
{
    while (in && in->kind == NODE_MAPPING && path.len) {
        size_t end = segment_end(in, path);
        const struct node *child = node_get(in, sv_sub(path, 0, end));
        if (!child)
            return (struct missing){in, path};
        if (end == path.len)
            break;
        in = child;
        path = sv_sub(path, end + 1, path.len);
        if (in->kind == NODE_SEQUENCE) {
            int64_t index;
            end = sv_find(path, '.', 0);
            if (end == path.len ||
                number_parse(sv_sub(path, 0, end), in->count - 1, &index) != NUMBER_OK)
                break;
            in = in->items[index];
            path = sv_sub(path, end + 1, path.len);
        }
    }
    return (struct missing){0};
}

/* Keys below the sections of roost are known without being in the file, except the names of components:
 * a slip in one of those would add a component. */
static bool is_known(const struct node *root, struct strview path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.at[i] == '.' && (i == 0 || i + 1 == path.len || path.at[i + 1] == '.'))
            return true; /* not a key at all, which set() says */
    struct missing missing = find_missing(root, path);
    if (!missing.in)
        return true;
    if (!find_section(sv_sub(path, 0, sv_find(path, '.', 0))))
        return false;
    return !sv_starts(path, "cluster.component_placement.") ||
           missing.rest.at != path.at + strlen("cluster.component_placement.");
}

/* The key of the mapping nearest to the first segment of `path`; NULL = none is near. */
static const char *nearest_key(struct override *override, const struct node *in,
                               const char *const *more, struct strview path)
{
    size_t count = 0, room = in && in->kind == NODE_MAPPING ? (size_t)in->count : 0;
    size_t known = 0;
    while (more && more[known])
        known++;
    const char **names = arena_zeroed(override->arena, const char *, room + known + 1);
    if (!names) {
        diag_nomem(override->diag);
        return NULL;
    }
    for (size_t i = 0; i < room; i++) {
        names[count] = arena_copy(override->arena, in->pairs[i].key->text);
        if (!names[count++]) {
            diag_nomem(override->diag);
            return NULL;
        }
    }
    for (size_t i = 0; i < known; i++)
        names[count++] = more[i];
    return nearest_word(sv_sub(path, 0, sv_find(path, '.', 0)), names);
}

/* Writes the key that was meant when `path` is looked for in `in`, where roost knows the keys `known`;
 * false when nothing is near. */
static bool put_near(struct override *override, struct text *out, const struct node *in,
                     const char *const *known, struct strview path)
{
    struct missing missing = find_missing(in, path);
    struct strview rest = missing.in ? missing.rest : SV("");
    const char *near =
        missing.in ? nearest_key(override, missing.in, missing.in == in ? known : NULL, rest)
                   : NULL;
    if (missing.in && !near)
        return false;
    text_put(out, sv_sub(path, 0, path.len - rest.len));
    text_puts(out, near ? near : "");
    size_t dot = sv_find(rest, '.', 0);
    text_put(out, sv_sub(rest, dot, rest.len));
    return true;
}

static void refuse_unknown(struct override *override, const struct node *root)
{
    struct text meant = TEXT_INIT;
    static const char *const tops[] = {"cluster", "roost", NULL};
    diag_error(override->diag, ROOST_ERR_REFERENCE, override->at, "the config has no key '%s'",
               quote(override->path).text);
    bool is_near = put_near(override, &meant, root, tops, override->path);
    /* A key without its section. */
    bool is_top = find_missing(root, override->path).in == root;
    for (size_t i = 0; is_top && !is_near && i < sizeof sections / sizeof *sections; i++) {
        const struct node *in = root ? node_get(root, sv_from(sections[i].name)) : NULL;
        struct node empty = {.kind = NODE_MAPPING};
        text_printf(&meant, "%s.", sections[i].name);
        is_near = put_near(override, &meant, in && in->kind == NODE_MAPPING ? in : &empty,
                           sections[i].keys, override->path);
        if (!is_near)
            meant.len = 0;
    }
    const char *near = is_near ? text_string(&meant) : NULL;
    if (is_near && !near)
        diag_nomem(override->diag);
    else if (near)
        diag_hint(override->diag, "did you mean '%s'? to add a key, write '+%s=...'",
                  quote(sv_from(near)).text, quote(override->path).text);
    else if (root && node_get(root, SV("defaults")))
        diag_hint(override->diag,
                  "to choose a file of a group that 'defaults' names, pass --hydra");
    else
        diag_hint(override->diag, "to add it, write '+%s=...'", quote(override->path).text);
    text_release(&meant);
}

/* "+key=value" for a key that has a value, as in Hydra: a mapping or a list may be put on it. */
static bool is_there(struct override *override, struct node *root)
{
    struct node *in = root;
    struct strview path = override->path;
    if (override->value->kind != NODE_SCALAR)
        return false;
    while (in && in->kind == NODE_MAPPING) {
        size_t end = segment_end(in, path);
        in = node_get(in, sv_sub(path, 0, end));
        if (end == path.len)
            break;
        path = sv_sub(path, end + 1, path.len);
    }
    if (!in || in->kind == NODE_SEQUENCE || node_is_null(in))
        return false;
    diag_error(override->diag, ROOST_ERR_REFERENCE, override->at, "the config has '%s' already",
               quote(override->path).text);
    diag_hint(override->diag, "leave the '+' out to change it");
    return true;
}

static bool is_allowed(struct override *override, struct node *root, size_t signs)
{
    if (signs == 1)
        return !is_there(override, root);
    if (signs == 0 && !is_known(root, override->path)) {
        refuse_unknown(override, root);
        return false;
    }
    return true;
}

/* Applies the override `text`, which starts at `start`. */
static struct node *apply(struct arena *arena, struct node *root, struct place start,
                          struct strview text, struct diag *diag)
{
    size_t equals = sv_find(text, '=', 0), signs = 0;
    while (signs < 2 && signs < text.len && text.at[signs] == '+')
        signs++;
    struct override override = {.arena = arena,
                                .diag = diag,
                                .at = place_behind(start, sv_sub(text, 0, signs)),
                                .key = text.at + signs};
    override.at.length = (int32_t)(equals > signs ? equals - signs : 1);
    if (equals == text.len || equals == signs || text.at[0] == '~') {
        override.at = start;
        override.at.length = (int32_t)(equals ? equals : 1);
        diag_error(diag, ROOST_ERR_USAGE, override.at, "'%s' is not an override", quote(text).text);
        diag_hint(diag, text.len && text.at[0] == '~'
                            ? "keys are changed (key=value) or added (+key=value), never removed"
                            : "write key=value, such as cluster.num_nodes=4");
        return root;
    }
    override.path = sv_sub(text, signs, equals);
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
    struct node *changed = override.value && is_allowed(&override, root, signs)
                               ? set(&override, root, override.path, 0)
                               : NULL;
    return changed ? changed : root;
}

bool overrides_init(struct overrides *overrides, struct arena *arena, const char *const *words,
                    size_t count, struct diag *diag)
{
    struct text all = TEXT_INIT;
    *overrides = (struct overrides){0};
    if (count > OVERRIDES_MAX) {
        diag_error(diag, ROOST_ERR_LIMIT, NOWHERE, "more than %d overrides", OVERRIDES_MAX);
        diag_hint(diag, "write %zu of them into the config", count - OVERRIDES_MAX);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        text_puts(&all, words[i]);
        text_char(&all, '\n');
    }
    /* One text for all of them, so that errors can show the override they are about. */
    struct source *source = arena_zeroed(arena, struct source, 1);
    char *copy = all.has_failed ? NULL : arena_copy(arena, (struct strview){all.bytes, all.len});
    struct override_word *list = arena_zeroed(arena, struct override_word, count);
    size_t len = all.len;
    text_release(&all);
    if (!source || !copy || !list) {
        diag_nomem(diag);
        return false;
    }
    *source = (struct source){.name = "command line", .text = {copy, len}};
    size_t from = 0;
    struct place at = {.source = source, .line = 1, .column = 1};
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(words[i]);
        list[i] = (struct override_word){at, sv_sub(source->text, from, from + length), false};
        at = place_behind(at, sv_sub(source->text, from, from + length + 1));
        from += length + 1;
    }
    *overrides = (struct overrides){list, count};
    return true;
}

struct node *overrides_apply(const struct overrides *overrides, struct arena *arena,
                             struct node *root, struct diag *diag)
{
    for (size_t i = 0; i < overrides->count; i++)
        if (!overrides->words[i].is_taken)
            root = apply(arena, root, overrides->words[i].at, overrides->words[i].text, diag);
    return root;
}
