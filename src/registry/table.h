/* table.h - texts by name, each kept as long as one of its owners lives.
 *
 * What workers, collectives and ports are kept in. An entry without owners stays until it is removed. */
#ifndef REGISTRY_TABLE_H
#define REGISTRY_TABLE_H

#include <stdint.h>

#include "base/strview.h"

struct table_entry {
    struct table_entry *next; /* in its bucket */
    uint64_t hash;
    uint64_t *owners;
    size_t owner_count;
    int64_t put_by; /* for a caller that keeps it: the request that put it here */
    char *value;
    size_t value_len;
    size_t key_len;
    char key[];
};

struct table {
    struct table_entry **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
    size_t bytes; /* of keys and values */
    uint64_t changes;
};

#define TABLE_INIT {NULL, 0, 0, 0, 0}

void table_release(struct table *table);

/* The entry of this name, or NULL. */
struct table_entry *table_find(const struct table *table, struct strview key);

/* Puts a value under a name, and copies both. `owner` becomes its only owner and replaces the owners before;
 * with `is_joined` it is added to them. NULL without memory; nothing has changed then. */
struct table_entry *table_put(struct table *table, struct strview key, struct strview value,
                              uint64_t owner, bool is_joined);

void table_remove(struct table *table, struct table_entry *entry);

/* Removes an owner from all entries, and the entries that have no other owner. */
void table_owner_gone(struct table *table, uint64_t owner);

static inline struct strview table_value(const struct table_entry *entry)
{
    return (struct strview){entry->value, entry->value_len};
}

#endif
