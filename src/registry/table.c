/* table.c - a hash table with chains. All memory is allocated before anything changes. */
#include "registry/table.h"

#include <stdlib.h>

#include "base/hash.h"

enum { FIRST_BUCKETS = 64 };

static uint64_t hash_of(struct strview key)
{
    return hash_bytes(HASH_START, key.at, key.len);
}

static void entry_free(struct table_entry *entry)
{
    free(entry->owners);
    free(entry->value);
    free(entry);
}

void table_release(struct table *table)
{
    for (size_t b = 0; b < table->bucket_count; b++)
        for (struct table_entry *it = table->buckets[b], *next; it; it = next) {
            next = it->next;
            entry_free(it);
        }
    free(table->buckets);
    *table = (struct table)TABLE_INIT;
}

struct table_entry *table_find(const struct table *table, struct strview key)
{
    if (table->bucket_count == 0)
        return NULL;
    uint64_t hash = hash_of(key);
    struct table_entry *it = table->buckets[hash & (table->bucket_count - 1)];
    while (it && !(it->hash == hash && sv_equal((struct strview){it->key, it->key_len}, key)))
        it = it->next;
    return it;
}

/* Room for one more; false without memory. */
static bool grow(struct table *table)
{
    if (table->count < table->bucket_count)
        return true;
    size_t count = table->bucket_count ? table->bucket_count * 2 : FIRST_BUCKETS;
    struct table_entry **buckets = calloc(count, sizeof *buckets);
    if (!buckets)
        return table->bucket_count > 0; /* longer chains will do */
    for (size_t b = 0; b < table->bucket_count; b++)
        for (struct table_entry *it = table->buckets[b], *next; it; it = next) {
            next = it->next;
            it->next = buckets[it->hash & (count - 1)];
            buckets[it->hash & (count - 1)] = it;
        }
    free(table->buckets);
    table->buckets = buckets;
    table->bucket_count = count;
    return true;
}

static struct table_entry *entry_new(struct strview key)
{
    struct table_entry *entry = calloc(1, sizeof *entry + key.len + 1);
    if (!entry)
        return NULL;
    entry->hash = hash_of(key);
    entry->key_len = key.len;
    if (key.len)
        memcpy(entry->key, key.at, key.len);
    return entry;
}

static bool has_owner(const struct table_entry *entry, uint64_t owner)
{
    for (size_t i = 0; i < entry->owner_count; i++)
        if (entry->owners[i] == owner)
            return true;
    return false;
}

/* Room for one owner more, so that adding cannot fail. */
static bool make_room(struct table_entry *entry)
{
    size_t count = entry->owner_count + 1;
    uint64_t *owners = count & (count - 1) ? entry->owners /* there is room up to a power of two */
                                           : realloc(entry->owners, 2 * count * sizeof *owners);
    if (!owners)
        return false;
    entry->owners = owners;
    return true;
}

struct table_entry *table_put(struct table *table, struct strview key, struct strview value,
                              uint64_t owner, bool is_joined)
{
    struct table_entry *entry = table_find(table, key);
    bool is_new = !entry;
    char *kept = malloc(value.len + 1);
    if (kept && is_new)
        entry = grow(table) ? entry_new(key) : NULL;
    if (!kept || !entry || !make_room(entry)) {
        free(kept);
        if (is_new && entry)
            entry_free(entry);
        return NULL;
    }
    if (value.len)
        memcpy(kept, value.at, value.len);
    kept[value.len] = '\0';
    table->changes++;
    table->bytes += value.len - entry->value_len + (is_new ? key.len : 0);
    free(entry->value);
    entry->value = kept;
    entry->value_len = value.len;
    if (!is_joined)
        entry->owner_count = 0;
    if (!has_owner(entry, owner))
        entry->owners[entry->owner_count++] = owner;
    if (is_new) {
        struct table_entry **bucket = &table->buckets[entry->hash & (table->bucket_count - 1)];
        entry->next = *bucket;
        *bucket = entry;
        table->count++;
    }
    return entry;
}

void table_remove(struct table *table, struct table_entry *entry)
{
    struct table_entry **at = &table->buckets[entry->hash & (table->bucket_count - 1)];
    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    table->changes++;
    table->count--;
    table->bytes -= entry->key_len + entry->value_len;
    entry_free(entry);
}

void table_owner_gone(struct table *table, uint64_t owner)
{
    for (size_t b = 0; b < table->bucket_count; b++)
        for (struct table_entry *it = table->buckets[b], *next; it; it = next) {
            next = it->next;
            size_t kept = 0, had = it->owner_count;
            for (size_t i = 0; i < had; i++)
                if (it->owners[i] != owner)
                    it->owners[kept++] = it->owners[i];
            it->owner_count = kept;
            if (had > 0 && kept == 0)
                table_remove(table, it);
        }
}
