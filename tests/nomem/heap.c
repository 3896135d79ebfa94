/* heap.c - stands before the real allocator. */
#include "tests/nomem/heap.h"

#include <errno.h>
#include <malloc.h>

struct heap heap;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

static bool must_fail(size_t size)
{
    if (!heap.is_on)
        return false;
    heap.calls++;
    bool is_full = heap.limit && (size > heap.limit || heap.live > heap.limit - size);
    bool is_chosen = heap.fails_at &&
                     (heap.fails_on ? heap.calls >= heap.fails_at : heap.calls == heap.fails_at);
    if (is_full || is_chosen)
        errno = ENOMEM;
    return is_full || is_chosen;
}

static void *count_in(void *got)
{
    if (got && heap.is_on) {
        heap.live += malloc_usable_size(got);
        heap.peak = heap.live > heap.peak ? heap.live : heap.peak;
    }
    return got;
}

static void count_out(void *old)
{
    size_t size = old && heap.is_on ? malloc_usable_size(old) : 0;
    heap.live -= size < heap.live ? size : heap.live;
}

void *__wrap_malloc(size_t size)
{
    return must_fail(size) ? NULL : count_in(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail(count * size) ? NULL : count_in(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (must_fail(size))
        return NULL;
    count_out(old);
    return count_in(__real_realloc(old, size));
}

void __wrap_free(void *old)
{
    count_out(old);
    __real_free(old);
}
