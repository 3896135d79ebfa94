/* arena.h - memory with one owner and one end.
 *
 * Everything a result is made of (a config, a cluster, a plan) comes from its arena and goes in one
 * call. An allocation may fail: it returns NULL and the arena stays good. Sizes are multiplied here,
 * with a check, never by the caller. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/strview.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *last;
};

#define ARENA_INIT {NULL}

/* Memory for `count` things of `size` bytes, not cleared; NULL when it is not to be had. */
void *arena_get(struct arena *arena, size_t count, size_t size, size_t align);
void *arena_get_zeroed(struct arena *arena, size_t count, size_t size, size_t align);

#define arena_array(arena, T, count)                                                               \
    ((T *)arena_get((arena), (size_t)(count), sizeof(T), _Alignof(T)))
#define arena_zeroed(arena, T, count)                                                              \
    ((T *)arena_get_zeroed((arena), (size_t)(count), sizeof(T), _Alignof(T)))

/* A NUL-terminated copy; NULL when there is no memory. */
char *arena_copy(struct arena *arena, struct strview text);

/* Frees everything. The arena is empty and reusable afterwards. */
void arena_release(struct arena *arena);

#endif
