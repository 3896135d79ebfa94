/* node_table.c - see node_table.h. Hashes only find; the order comes from comparisons alone. */
#include "bundle/node_table.h"

#include <stdlib.h>
#include <string.h>

enum { ADDRESS_BYTES = 64 }; /* longest answer: an IPv6 address with its zone */

struct node_table node_table_start(struct arena *arena)
{
    return (struct node_table){.arena = arena};
}

void node_table_release(struct node_table *table)
{
    free(table->nodes);
    free(table->slots);
    arena_release(&table->scratch);
}

/* Eight bytes at a time: ids are long, and there is one for every bundle. */
static uint32_t hash(struct strview text, uint32_t seed)
{
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t value = (seed + text.len) * factor;
    for (size_t i = 0; i < text.len; i += sizeof value) {
        uint64_t piece = 0;
        size_t left = text.len - i;
        memcpy(&piece, text.at + i, left < sizeof piece ? left : sizeof piece);
        value = (value ^ piece) * factor;
        value ^= value >> 32;
    }
    return (uint32_t)value;
}

static void put_slot(struct node_table *table, struct table_slot slot)
{
    size_t at = slot.hash & (table->slot_count - 1);
    while (table->slots[at].number)
        at = (at + 1) & (table->slot_count - 1);
    table->slots[at] = slot;
}

/* Twice the slots, at most half of them taken. */
static bool grow(struct node_table *table)
{
    size_t old_count = table->slot_count, count = old_count ? old_count * 2 : 64;
    struct table_slot *old = table->slots, *slots = calloc(count, sizeof *slots);
    struct table_node *nodes = realloc(table->nodes, count / 2 * sizeof *nodes);
    table->nodes = nodes ? nodes : table->nodes;
    if (!nodes || !slots) {
        free(slots);
        return false;
    }
    table->slots = slots;
    table->slot_count = count;
    table->room = count / 2;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].number)
            put_slot(table, old[i]);
    free(old);
    return true;
}

static bool copy(struct node_table *table, struct strview text, struct strview *out)
{
    const char *bytes = text.len ? arena_copy(&table->scratch, text) : "";
    *out = (struct strview){bytes, text.len};
    return bytes != NULL;
}

/* A node with an id may be told by several addresses: any of them will do, but always the same. */
static bool add_address(struct node_table *table, struct table_node *node, struct strview text)
{
    struct address address;
    if (sv_equal(text, node->name) ||
        (address = address_read(text), address_compare(&address, &node->address) >= 0))
        return true;
    if (!copy(table, text, &node->name))
        return false;
    node->address = address_read(node->name);
    return true;
}

static int32_t add_node(struct node_table *table, struct strview id, struct strview address,
                        uint32_t value)
{
    if (table->count == table->room && !grow(table))
        return -1;
    char *who = arena_array(&table->scratch, char, id.len + address.len + 2);
    if (!who)
        return -1;
    memcpy(who, id.at, id.len + 1);
    memcpy(who + id.len + 1, address.at, address.len + 1);
    struct table_node node = {.id = {who, id.len}, .name = {who + id.len + 1, address.len}};
    node.address = address_read(node.name);
    table->nodes[table->count++] = node;
    put_slot(table, (struct table_slot){value, (uint32_t)table->count, who});
    return (int32_t)table->count - 1;
}

int32_t node_table_find(struct node_table *table, const char *id_text, const char *address_text)
{
    struct strview id = sv_from(id_text), address = sv_from(address_text);
    uint32_t value = hash(id.len ? id : address, id.len > 0);
    size_t mask = table->slot_count - 1;
    for (size_t at = value & mask; table->slot_count && table->slots[at].number;
         at = (at + 1) & mask) {
        const struct table_slot *slot = &table->slots[at];
        if (slot->hash != value || strcmp(slot->who, id.at) != 0)
            continue;
        bool has_address = strcmp(slot->who + id.len + 1, address.at) == 0;
        if (id.len == 0 && !has_address)
            continue;
        int32_t number = (int32_t)slot->number - 1;
        return has_address || add_address(table, &table->nodes[number], address) ? number : -1;
    }
    return add_node(table, id, address, value);
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
    table->ordinals = arena_array(&table->scratch, int32_t, table->count + 1);
    if (!sorted || !table->ordinals)
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
        table->ordinals[sorted[i] - table->nodes] = ordinal;
    }
    return true;
}
