/* arena.h - memory that has one owner and is freed in one call.
 *
 * All memory of a result (a config, a cluster, a plan) comes from its arena. A failed allocation returns
 * NULL, and the arena stays usable. The arena multiplies count by size and checks for overflow, so callers
 * never do. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/strview.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *last;
};

#define ARENA_INIT {NULL}

/* Uninitialised memory for `count` elements of `size` bytes; NULL without memory. */
void *arena_get(struct arena *arena, size_t count, size_t size, size_t align);
void *arena_get_zeroed(struct arena *arena, size_t count, size_t size, size_t align);

#define arena_array(arena, T, count)                                                               \
    ((T *)arena_get((arena), (size_t)(count), sizeof(T), _Alignof(T)))
#define arena_zeroed(arena, T, count)                                                              \
    ((T *)arena_get_zeroed((arena), (size_t)(count), sizeof(T), _Alignof(T)))

/* A NUL-terminated copy; NULL without memory. */
char *arena_copy(struct arena *arena, struct strview text);

/* Frees everything. The arena is empty and reusable afterwards. */
void arena_release(struct arena *arena);

#endif
