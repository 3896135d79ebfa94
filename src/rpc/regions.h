/* regions.h - shared memory that a driver writes once and several workers read.
 *
 * A region is a memory file of fixed size. The driver alone can write it; who is given its descriptor can
 * map it for reading. It counts its uses: every request that points into it is one, until the worker
 * gives it back or its life ends. A region without uses is written again for the next payload.
 * Payloads start at its first byte, so they are page aligned in every process. */
#ifndef RPC_REGIONS_H
#define RPC_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region {
    struct region *next;
    uint32_t id; /* from 1, never used again */
    int fd;
    char *at;
    size_t size;
    uint32_t uses;
    uint32_t maps; /* sockets whose worker has mapped it */
};

struct regions {
    struct region *first; /* the one that was used last is first */
    size_t count;
    size_t bytes;     /* of all of them */
    size_t bytes_max; /* all together, but one may always be as large as its payload */
    size_t idle_max;  /* of those without uses */
    uint32_t last_id;
};

/* Zero for a limit is its default. */
void regions_init(struct regions *regions, size_t bytes_max, size_t idle_max);
void regions_release(struct regions *regions);

/* A region for a payload of `len` bytes, with one use: the caller's own. NULL when there is none to be
 * had: no memory, no descriptors, or too much is held by workers. */
struct region *regions_take(struct regions *regions, size_t len);

/* Ends uses. */
void regions_drop(struct regions *regions, struct region *region, uint32_t uses);

/* Takes out a region that is more than should be kept idle; NULL = none. The caller tells who has mapped
 * it, then frees it. */
struct region *regions_surplus(struct regions *regions);
void region_free(struct region *region);

#endif
