/* regions.h - shared memory that a driver writes once and several workers read.
 *
 * A region is a memory file of fixed size. Only the driver can write it; a worker that gets its descriptor
 * can map it for reading. The region counts its uses: every request that points into it is one use, until
 * the worker releases it or its life ends. A region without uses is reused for the next payload. Payloads
 * start at its first byte, so they are page aligned in every process. */
#ifndef RPC_REGIONS_H
#define RPC_REGIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct region {
    struct region *next;
    uint32_t id; /* from 1, never reused */
    int fd;
    char *at;
    size_t size;
    uint32_t uses;
    uint32_t maps; /* sockets whose worker has mapped it */
};

struct regions {
    struct region *first; /* the most recently used */
    size_t count;
    size_t bytes;     /* of all of them */
    size_t bytes_max; /* of all of them, but one region may always be as large as its payload */
    size_t idle_max;  /* bytes of regions without uses */
    uint32_t last_id;
};

/* Zero for a limit is its default. */
void regions_init(struct regions *regions, size_t bytes_max, size_t idle_max);
void regions_release(struct regions *regions);

/* A region for a payload of `len` bytes, with one use: the caller's own. NULL without memory or descriptors,
 * or when workers hold too much. */
struct region *regions_take(struct regions *regions, size_t len);

/* Ends uses. */
void regions_drop(struct regions *regions, struct region *region, uint32_t uses);

/* Removes and returns an idle region beyond idle_max; NULL = there is none. The caller tells the workers that
 * have mapped it, then frees it. */
struct region *regions_surplus(struct regions *regions);
void region_free(struct region *region);

#endif
