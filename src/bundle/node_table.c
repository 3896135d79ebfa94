/* node_table.c - see node_table.h. Hashes only find; the order comes from comparisons alone. */
#include "bundle/node_table.h"

#include <stdlib.h>

enum { ADDRESS_BYTES = 64 }; /* longest answer: an IPv6 address with its zone */

bool node_table_init(struct node_table *table, struct arena *arena, size_t bundles)
{
    *table = (struct node_table){.arena = arena, .slot_count = 16};
    while (table->slot_count / 2 < bundles)
        table->slot_count *= 2;
    /* A cluster has far fewer nodes than bundles, mostly: nodes grow, the table does not. */
    table->slots = arena_zeroed(&table->scratch, uint32_t, table->slot_count);
    return table->slots != NULL;
}

void node_table_release(struct node_table *table)
{
    free(table->nodes);
    arena_release(&table->scratch);
}

static uint32_t hash(struct strview text, uint32_t seed)
{
    uint32_t value = seed ^ UINT32_C(2166136261);
    for (size_t i = 0; i < text.len; i++)
        value = (value ^ (unsigned char)text.at[i]) * UINT32_C(16777619);
    return value ^ value >> 15;
}

static struct table_node *add_node(struct node_table *table)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 64;
        struct table_node *nodes = realloc(table->nodes, room * sizeof *nodes);
        if (!nodes)
            return NULL;
        table->nodes = nodes;
        table->room = room;
    }
    return &table->nodes[table->count++];
}

/* A node with an id may be told by several addresses: any of them will do, but always the same. */
static void add_address(struct table_node *node, struct strview text)
{
    if (sv_equal(text, node->name))
        return;
    struct address address = address_read(text);
    if (address_compare(&address, &node->address) < 0) {
        node->address = address;
        node->name = text;
    }
}

int32_t node_table_find(struct node_table *table, struct strview id, struct strview address)
{
    struct strview who = id.len ? id : address;
    size_t at = hash(who, id.len > 0) & (table->slot_count - 1);
    for (; table->slots[at]; at = (at + 1) & (table->slot_count - 1)) {
        struct table_node *node = &table->nodes[table->slots[at] - 1];
        if (!sv_equal(node->id, id) || (id.len == 0 && !sv_equal(node->name, address)))
            continue;
        add_address(node, address);
        return (int32_t)(table->slots[at] - 1);
    }
    struct table_node *node = add_node(table);
    if (!node)
        return -1;
    *node = (struct table_node){.id = id, .address = address_read(address), .name = address};
    table->slots[at] = (uint32_t)table->count;
    return (int32_t)table->count - 1;
}

static int by_name(const void *a, const void *b)
{
    const struct table_node *left = *(struct table_node *const *)a;
    const struct table_node *right = *(struct table_node *const *)b;
    return sv_compare(left->name, right->name);
}

static bool ask(struct node_table *table, const struct roost_order_options *options,
                struct strview name, struct roost_resolved *out)
{
    char answer[ADDRESS_BYTES] = "";
    *out = (struct roost_resolved){.name = arena_copy(table->arena, name)};
    if (!out->name)
        return false;
    if (!options->resolve(options->resolve_ctx, out->name, answer, sizeof answer))
        return true;
    answer[sizeof answer - 1] = '\0';
    enum address_kind kind = address_read(sv_from(answer)).kind;
    if (kind != ADDRESS_IPV4 && kind != ADDRESS_IPV6)
        return true; /* another name is no answer */
    out->address = arena_copy(table->arena, sv_from(answer));
    return out->address != NULL;
}

bool node_table_resolve(struct node_table *table, const struct roost_order_options *options,
                        struct roost_resolved **out, size_t *out_count)
{
    struct table_node **named = arena_array(&table->scratch, struct table_node *, table->count + 1);
    struct roost_resolved *answers = NULL;
    size_t count = 0, asked = 0;
    for (size_t i = 0; named && i < table->count; i++)
        if (table->nodes[i].address.kind == ADDRESS_NAME)
            named[count++] = &table->nodes[i];
    if (named)
        answers = arena_array(table->arena, struct roost_resolved, count + 1);
    if (!answers)
        return false;
    /* In the order of names, so that a resolver sees the same questions in the same order. */
    qsort(named, count, sizeof *named, by_name);
    for (size_t i = 0; i < count; i++) {
        bool is_new = i == 0 || !sv_equal(named[i]->name, named[i - 1]->name);
        if (is_new && !ask(table, options, named[i]->name, &answers[asked++]))
            return false;
        if (answers[asked - 1].address)
            named[i]->address = address_read(sv_from(answers[asked - 1].address));
    }
    *out = answers;
    *out_count = asked;
    return true;
}

/* Literal addresses are who they say, however they are written; names stay apart. */
static struct strview name_of(const struct table_node *node)
{
    bool is_name = address_read(node->name).kind == ADDRESS_NAME;
    return is_name ? node->name : (struct strview){0};
}

static int compare(const struct table_node *a, const struct table_node *b)
{
    int order = address_compare(&a->address, &b->address);
    if (!order)
        order = natural_compare(a->id, b->id);
    return order ? order : natural_compare(a->name, b->name);
}

static int by_key(const void *a, const void *b)
{
    return compare(*(struct table_node *const *)a, *(struct table_node *const *)b);
}

bool node_table_sort(struct node_table *table)
{
    struct table_node **sorted =
        arena_array(&table->scratch, struct table_node *, table->count + 1);
    if (!sorted)
        return false;
    for (size_t i = 0; i < table->count; i++) {
        sorted[i] = &table->nodes[i];
        sorted[i]->name = name_of(sorted[i]);
    }
    qsort(sorted, table->count, sizeof *sorted, by_key);
    int32_t ordinal = -1;
    for (size_t i = 0; i < table->count; i++) {
        if (i == 0 || compare(sorted[i - 1], sorted[i]) != 0)
            ordinal++;
        sorted[i]->ordinal = ordinal;
    }
    return true;
}
