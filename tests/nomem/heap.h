/* heap.h - the allocator of these tests: it counts, and fails when it is told to.
 *
 * The linker sends malloc, calloc, realloc and free of roost and of what is linked in here (-Wl,--wrap). */
#ifndef TESTS_NOMEM_HEAP_H
#define TESTS_NOMEM_HEAP_H

#include <stdbool.h>
#include <stddef.h>

struct heap {
    bool is_on;
    size_t calls;
    size_t fails_at; /* number of the call, from 1; 0 = none */
    bool fails_on;   /* and all behind it */
    size_t live, peak, limit;
};

extern struct heap heap;

#endif
