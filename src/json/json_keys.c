/* json_keys.c - the keys of the open objects, to detect duplicates.
 * Few keys are compared one by one. From MANY keys on, an object has its own hash table, which is freed when
 * the object is closed. The hash is seeded with an address, so that a document cannot choose keys that all
 * collide. No output depends on the order of the hash. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_reader_internal.h"

enum { MANY = 16 }; /* a power of two */

static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static size_t hash_of(const struct json_reader *reader, struct strview key)
{
    uint64_t hash = reader->seed ^ key.len;
    for (size_t i = 0; i < key.len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, key.at + i, key.len - i < 8 ? key.len - i : 8);
        hash = mix(hash ^ word, UINT64_C(0x9e3779b97f4a7c15) ^ reader->seed);
    }
    return hash;
}

static bool is_same(const struct json_reader *reader, size_t index, struct strview key)
{
    const struct json_key *old = &reader->keys[index];
    if (old->len != key.len || key.len == 0)
        return old->len ==
               key.len; /* before the first byte of a key there are no bytes to point at */
    return sv_equal((struct strview){reader->key_bytes.bytes + old->start, old->len}, key);
}

/* The slot of the key, or the free one where it belongs. */
static size_t slot_of(const struct json_reader *reader, const struct json_level *level,
                      struct strview key)
{
    size_t slot = hash_of(reader, key) & (level->slot_count - 1);
    while (level->slots[slot] && !is_same(reader, level->slots[slot] - 1, key))
        slot = (slot + 1) & (level->slot_count - 1);
    return slot;
}

static const struct json_key *find(const struct json_reader *reader, const struct json_level *level,
                                   struct strview key)
{
    if (level->slots) {
        size_t index = level->slots[slot_of(reader, level, key)];
        return index ? &reader->keys[index - 1] : NULL;
    }
    for (size_t i = level->first_key; i < reader->key_count; i++)
        if (is_same(reader, i, key))
            return &reader->keys[i];
    return NULL;
}

static void put_in_slot(const struct json_reader *reader, struct json_level *level, size_t index)
{
    const struct json_key *key = &reader->keys[index];
    struct strview text = {reader->key_bytes.bytes + key->start, key->len};
    level->slots[slot_of(reader, level, text)] = index + 1;
}

/* Enters the newest key, in a larger table when this one is half full. */
static bool index_newest(struct json_reader *reader, struct json_level *level)
{
    size_t count = reader->key_count - level->first_key;
    if (count < MANY)
        return true;
    if (count <= level->slot_count / 2) {
        put_in_slot(reader, level, reader->key_count - 1);
        return true;
    }
    size_t slot_count = level->slot_count ? level->slot_count * 2 : 4 * (size_t)MANY;
    size_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    free(level->slots);
    level->slots = slots;
    level->slot_count = slot_count;
    for (size_t i = level->first_key; i < reader->key_count; i++)
        put_in_slot(reader, level, i);
    return true;
}

static bool append(struct json_reader *reader, const struct json_key *key, struct strview text)
{
    if (reader->key_count == reader->key_room) {
        size_t room = reader->key_room ? reader->key_room * 2 : 64;
        struct json_key *keys = reallocarray(reader->keys, room, sizeof *keys);
        if (!keys)
            return false;
        reader->keys = keys;
        reader->key_room = room;
    }
    struct text *bytes = &reader->key_bytes;
    if (text.len > bytes->cap - bytes->len && !text_reserve(bytes, text.len))
        return false;
    if (text.len)
        memcpy(bytes->bytes + bytes->len, text.at, text.len);
    bytes->len += text.len;
    assert(reader->keys);
    reader->keys[reader->key_count++] = *key;
    return true;
}

bool json_keys_add(struct json_reader *reader, struct strview key, struct place at,
                   struct diag *diag)
{
    struct json_level *level = &reader->levels[reader->depth - 1];
    const struct json_key *first = find(reader, level, key);
    if (first) {
        enum roost_code code =
            diag_error(diag, ROOST_ERR_SYNTAX, at, "key '%s' is already in this object, at %d:%d",
                       quote(key).text, first->line, first->column);
        diag_hint(diag, "keep one of the two");
        return json_fail(reader, code);
    }
    if (key.len > reader->limits.max_keys - reader->key_bytes.len) {
        diag_error(diag, ROOST_ERR_LIMIT, at,
                   "the keys of the objects open here are longer than %zu bytes together",
                   reader->limits.max_keys);
        diag_hint(diag, "use fewer or shorter keys, or an array");
        return json_fail(reader, ROOST_ERR_LIMIT);
    }
    struct json_key entry = {reader->key_bytes.len, key.len, at.line, at.column};
    if (!append(reader, &entry, key) || !index_newest(reader, level))
        return json_fail(reader, diag_nomem(diag));
    return true;
}

void json_keys_close(struct json_reader *reader, struct json_level *level)
{
    free(level->slots);
    level->slots = NULL;
    level->slot_count = 0;
    reader->key_count = level->first_key;
    reader->key_bytes.len = level->first_byte;
}
