/* yaml_mapping.c - one sort finds duplicate keys and decides what a merge key brings in.
 *
 * A merge (`<<: *a` or `<<: [*a, *b]`) adds the pairs of other mappings by pointer. A key written in
 * the mapping itself wins; among merged ones the earlier wins. */
#include "config/yaml_mapping.h"

#include <stdlib.h>
#include <string.h>

/* A pair that may end up in the mapping. */
struct candidate {
    struct pair pair;
    size_t order; /* as met: written pairs first, merged ones behind */
    bool is_merged;
    bool is_dropped;
};

struct candidates {
    struct candidate *list;
    size_t count, room;
};

static bool add(struct candidates *candidates, struct pair pair, bool is_merged, struct diag *diag)
{
    if (candidates->count == candidates->room) {
        size_t room = candidates->room ? candidates->room * 2 : 16;
        struct candidate *list = realloc(candidates->list, room * sizeof *list);
        if (!list) {
            diag_nomem(diag);
            return false;
        }
        candidates->list = list;
        candidates->room = room;
    }
    candidates->list[candidates->count] =
        (struct candidate){.pair = pair, .order = candidates->count, .is_merged = is_merged};
    candidates->count++;
    return true;
}

static void say_twice(const struct node *key, const struct node *first, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_SYNTAX, node_place(key),
               "key '%s' is written twice; the first is at %s", quote(key->text).text,
               place_name(node_place(first)).text);
    diag_hint(diag, "keep one of the two");
}

static bool is_merge_key(const struct node *key)
{
    return key->kind == NODE_SCALAR && key->is_plain && sv_is(key->text, "<<");
}

static bool add_merged(struct candidates *candidates, const struct node *key, struct node *value,
                       struct diag *diag)
{
    struct node **sources = value->kind == NODE_SEQUENCE ? value->items : &value;
    int32_t count = value->kind == NODE_SEQUENCE ? value->count : 1;
    for (int32_t i = 0; i < count; i++) {
        if (sources[i]->kind != NODE_MAPPING) {
            diag_error(diag, ROOST_ERR_SYNTAX, node_place(key),
                       "merge key '<<' takes a mapping or a list of mappings");
            diag_hint(diag, "write '<<: *name' where '&name' stands before a mapping");
            return false;
        }
        for (int32_t p = 0; p < sources[i]->count; p++) {
            if (candidates->count > TREE_NODES_MAX) {
                diag_error(diag, ROOST_ERR_LIMIT, node_place(key),
                           "merges bring in more than %d keys", TREE_NODES_MAX);
                diag_hint(diag, "merge fewer or smaller mappings");
                return false;
            }
            if (!add(candidates, sources[i]->pairs[p], true, diag))
                return false;
        }
    }
    return true;
}

static bool gather(struct candidates *candidates, struct node **children, size_t pair_count,
                   struct diag *diag)
{
    for (size_t i = 0; i < pair_count; i++) {
        const struct node *key = children[2 * i];
        if (key->kind != NODE_SCALAR) {
            diag_error(diag, ROOST_ERR_SYNTAX, node_place(key), "a key must be plain text");
            diag_hint(diag, "put the key in quotes if it holds [ ] { } or starts with '?'");
            return false;
        }
        if (!is_merge_key(key) &&
            !add(candidates, (struct pair){children[2 * i], children[2 * i + 1]}, false, diag))
            return false;
    }
    const struct node *merge = NULL;
    for (size_t i = 0; i < pair_count; i++) {
        if (!is_merge_key(children[2 * i]))
            continue;
        if (merge)
            say_twice(children[2 * i], merge, diag);
        else if (!add_merged(candidates, children[2 * i], children[2 * i + 1], diag))
            return false;
        merge = children[2 * i];
    }
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    int order = sv_compare(left->pair.key->text, right->pair.key->text);
    return order ? order : (left->order > right->order) - (left->order < right->order);
}

static int by_order(const void *a, const void *b)
{
    const struct candidate *left = a, *right = b;
    return (left->order > right->order) - (left->order < right->order);
}

/* Drops what a key before it overrides; two written keys of one name are an error. All such errors
 * are reported, and reading goes on with the first. */
static void drop_repeated(struct candidates *candidates, struct diag *diag)
{
    for (size_t i = 1, first = 0; i < candidates->count; i++) {
        struct candidate *winner = &candidates->list[first], *it = &candidates->list[i];
        if (!sv_equal(winner->pair.key->text, it->pair.key->text)) {
            first = i;
            continue;
        }
        it->is_dropped = true;
        if (it->is_merged)
            continue;
        say_twice(it->pair.key, winner->pair.key, diag);
    }
}

/* Whether the pairs can be taken as they are: few, no merges, no key twice. */
static bool is_simple(struct node **children, size_t pair_count)
{
    enum { FEW = 8 };
    if (pair_count > FEW)
        return false;
    for (size_t i = 0; i < pair_count; i++) {
        const struct node *key = children[2 * i];
        if (key->kind != NODE_SCALAR || is_merge_key(key))
            return false;
        for (size_t k = 0; k < i; k++)
            if (sv_equal(key->text, children[2 * k]->text))
                return false;
    }
    return true;
}

static bool take_simple(struct arena *arena, struct node *mapping, struct node **children,
                        size_t pair_count, struct diag *diag)
{
    mapping->pairs = arena_array(arena, struct pair, pair_count);
    if (!mapping->pairs) {
        diag_nomem(diag);
        return false;
    }
    for (size_t i = 0; i < pair_count; i++)
        mapping->pairs[i] = (struct pair){children[2 * i], children[2 * i + 1]};
    mapping->count = (int32_t)pair_count;
    return true;
}

bool yaml_close_mapping(struct arena *arena, struct node *mapping, struct node **children,
                        size_t pair_count, struct diag *diag)
{
    if (is_simple(children, pair_count))
        return take_simple(arena, mapping, children, pair_count, diag);
    struct candidates candidates = {0};
    bool is_good = gather(&candidates, children, pair_count, diag);
    if (is_good) {
        if (candidates.count > 1) {
            qsort(candidates.list, candidates.count, sizeof *candidates.list, by_key);
            drop_repeated(&candidates, diag);
            qsort(candidates.list, candidates.count, sizeof *candidates.list, by_order);
        }
        mapping->pairs = arena_array(arena, struct pair, candidates.count);
        is_good = mapping->pairs != NULL;
        if (!is_good)
            diag_nomem(diag);
    }
    for (size_t i = 0; is_good && i < candidates.count; i++) {
        struct candidate *it = &candidates.list[i];
        if (it->is_dropped)
            continue;
        mapping->pairs[mapping->count++] = it->pair;
        if (it->is_merged)
            mapping->weight += it->pair.value->weight;
    }
    free(candidates.list);
    if (is_good && !node_index(arena, mapping)) {
        diag_nomem(diag);
        is_good = false;
    }
    return is_good;
}
