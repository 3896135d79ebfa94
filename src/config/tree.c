/* tree.c - small operations on nodes. Knows nothing of YAML or of what keys mean. */
#include "config/tree.h"

#include <stdlib.h>
#include <string.h>

/* Whether the text is one line of ASCII without control characters. Places are made for every value,
 * and nearly all values are that: eight bytes at a time, the last eight perhaps twice. */
static bool is_simple(struct strview text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t word = 0, odd = 0;
    for (size_t i = 0; text.len < 8 && i < text.len; i++)
        odd |= (uint64_t)(unsigned char)text.at[i] | ((uint64_t)(unsigned char)text.at[i] - ' ');
    for (size_t i = 0; text.len >= 8 && i < text.len; i += 8) {
        memcpy(&word, text.at + (i + 8 <= text.len ? i : text.len - 8), 8);
        odd |= word | (word - ones * ' ');
    }
    return (odd & high) == 0;
}

struct place node_place(const struct node *node)
{
    enum { UNDERLINED_MAX = 1024 }; /* no terminal shows more */
    struct place at = {
        .source = node->source, .line = node->line, .column = node->column, .length = 1};
    if (node->kind != NODE_SCALAR || node->text.len < 2 || node->secret)
        return at; /* how long a secret is, nobody is shown */
    if (node->text.len <= UNDERLINED_MAX && is_simple(node->text)) {
        at.length = (int32_t)node->text.len;
        return at;
    }
    for (size_t i = 1; i < node->text.len && node->text.at[i] != '\n' && at.length < UNDERLINED_MAX;
         i++)
        at.length += ((unsigned char)node->text.at[i] & 0xc0) != 0x80;
    return at;
}

static int by_key(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;
    return sv_compare(left->key->text, right->key->text);
}

bool node_index(struct arena *arena, struct node *mapping)
{
    enum { LARGE = 32 };
    if (mapping->count < LARGE)
        return true;
    struct pair *sorted = arena_array(arena, struct pair, mapping->count);
    if (!sorted)
        return false;
    memcpy(sorted, mapping->pairs, (size_t)mapping->count * sizeof *sorted);
    qsort(sorted, (size_t)mapping->count, sizeof *sorted, by_key);
    mapping->by_key = sorted;
    return true;
}

struct node *node_get(const struct node *mapping, struct strview key)
{
    if (!mapping || mapping->kind != NODE_MAPPING)
        return NULL;
    if (mapping->by_key) {
        struct node wanted = {.text = key};
        const struct pair *found = bsearch(&(struct pair){.key = &wanted}, mapping->by_key,
                                           (size_t)mapping->count, sizeof *found, by_key);
        return found ? found->value : NULL;
    }
    for (int32_t i = 0; i < mapping->count; i++)
        if (sv_equal(mapping->pairs[i].key->text, key))
            return mapping->pairs[i].value;
    return NULL;
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_SCALAR && node->is_plain &&
           (node->text.len == 0 || sv_is(node->text, "~") || sv_is(node->text, "null") ||
            sv_is(node->text, "Null") || sv_is(node->text, "NULL"));
}

static struct node *new_node(struct arena *arena, enum node_kind kind, const struct node *like)
{
    struct node *node = arena_zeroed(arena, struct node, 1);
    if (!node)
        return NULL;
    node->kind = kind;
    node->source = like->source;
    node->line = like->line;
    node->column = like->column;
    node->parent = like->parent;
    node->weight = 1;
    return node;
}

struct node *node_new_scalar(struct arena *arena, const struct node *like, struct strview text)
{
    struct node *node = new_node(arena, NODE_SCALAR, like);
    if (node)
        node->text = text;
    return node;
}

struct node *node_new_mapping(struct arena *arena, const struct node *like, int32_t room)
{
    struct node *node = new_node(arena, NODE_MAPPING, like);
    if (!node)
        return NULL;
    node->pairs = arena_array(arena, struct pair, room > 0 ? room : 1);
    return node->pairs ? node : NULL;
}

struct node *node_copy_mapping(struct arena *arena, const struct node *mapping, int32_t more)
{
    struct node *copy = node_new_mapping(arena, mapping, mapping->count + more);
    if (!copy)
        return NULL;
    memcpy(copy->pairs, mapping->pairs, (size_t)mapping->count * sizeof *copy->pairs);
    copy->count = mapping->count;
    /* The children now live here, so that ${.sibling} looks among what was merged in. */
    for (int32_t i = 0; i < copy->count; i++)
        if (copy->pairs[i].value->parent == mapping)
            copy->pairs[i].value->parent = copy;
    return copy;
}

void node_put(struct node *mapping, struct node *key, struct node *value)
{
    mapping->by_key = NULL;
    for (int32_t i = 0; i < mapping->count; i++) {
        if (sv_equal(mapping->pairs[i].key->text, key->text)) {
            mapping->pairs[i].value = value;
            return;
        }
    }
    mapping->pairs[mapping->count++] = (struct pair){key, value};
}

struct node *node_merge(struct arena *arena, struct node *base, struct node *over)
{
    if (!base || base->kind != NODE_MAPPING || over->kind != NODE_MAPPING)
        return over;
    struct node *merged = node_copy_mapping(arena, base, over->count);
    if (!merged)
        return NULL;
    for (int32_t i = 0; i < over->count; i++) {
        struct pair pair = over->pairs[i];
        struct node *value = node_merge(arena, node_get(merged, pair.key->text), pair.value);
        if (!value)
            return NULL;
        value->parent = merged;
        node_put(merged, pair.key, value);
    }
    return merged;
}
