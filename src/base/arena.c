/* arena.c - allocates from chunks that double in size up to a limit. A large request gets a chunk of its
 * own: it wastes no rest of the current chunk, and big columns start as untouched pages. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK = 1024, LARGEST_CHUNK = 256 * 1024 };

struct arena_chunk {
    struct arena_chunk *before;
    size_t used; /* from the start of the chunk, this header included */
    size_t size;
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size, bool is_shared)
{
    struct arena_chunk *chunk = malloc(size);
    if (!chunk)
        return NULL;
    *chunk = (struct arena_chunk){.used = sizeof *chunk, .size = size};
    if (is_shared || !arena->last) {
        chunk->before = arena->last;
        arena->last = chunk;
    } else {
        /* Behind the chunk in use, whose free space is still wanted. */
        chunk->before = arena->last->before;
        arena->last->before = chunk;
    }
    return chunk;
}

static void *take(struct arena_chunk *chunk, size_t bytes, size_t align)
{
    uintptr_t base = (uintptr_t)chunk; /* aligned as malloc does it, which may be less than asked */
    size_t start = ((base + chunk->used + align - 1) & ~(align - 1)) - base;
    if (start > chunk->size || bytes > chunk->size - start)
        return NULL;
    chunk->used = start + bytes;
    return (char *)chunk + start;
}

void *arena_get(struct arena *arena, size_t count, size_t size, size_t align)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX / 2)
        return NULL;
    void *got = arena->last ? take(arena->last, bytes, align) : NULL;
    if (got)
        return got;
    size_t wanted = arena->last ? arena->last->size * 2 : FIRST_CHUNK;
    if (wanted > LARGEST_CHUNK)
        wanted = LARGEST_CHUNK;
    size_t needed = sizeof(struct arena_chunk) + bytes + align;
    bool is_shared = needed <= wanted / 2;
    struct arena_chunk *chunk = add_chunk(arena, is_shared ? wanted : needed, is_shared);
    return chunk ? take(chunk, bytes, align) : NULL;
}

void *arena_get_zeroed(struct arena *arena, size_t count, size_t size, size_t align)
{
    void *got = arena_get(arena, count, size, align);
    if (got)
        memset(got, 0, count * size);
    return got;
}

char *arena_copy(struct arena *arena, struct strview text)
{
    char *copy = arena_array(arena, char, text.len + 1);
    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

void arena_release(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->last; chunk;) {
        struct arena_chunk *before = chunk->before;
        free(chunk);
        chunk = before;
    }
    arena->last = NULL;
}
