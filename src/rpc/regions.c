/* regions.c - a pool of sealed memory files.
 *
 * Pages are allocated when a region is created. If the machine has no memory, that call fails, instead of a
 * signal in the middle of a copy. */
#include "rpc/regions.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum {
    COUNT_MAX = 64, /* each is a descriptor here and a mapping in every worker */
    SIZE_STEP = 64 << 10,
};
#define BYTES_MAX ((size_t)1 << 30)
#define IDLE_MAX ((size_t)256 << 20)

void regions_init(struct regions *regions, size_t bytes_max, size_t idle_max)
{
    *regions = (struct regions){.bytes_max = bytes_max ? bytes_max : BYTES_MAX,
                                .idle_max = idle_max ? idle_max : IDLE_MAX};
}

void region_free(struct region *region)
{
    if (!region)
        return;
    if (region->at)
        munmap(region->at, region->size);
    if (region->fd >= 0)
        close(region->fd);
    free(region);
}

void regions_release(struct regions *regions)
{
    while (regions->first) {
        struct region *next = regions->first->next;
        region_free(regions->first);
        regions->first = next;
    }
}

/* Steps of a quarter, so that payloads that grow a little find the same region again. */
static size_t round_up(size_t len)
{
    size_t step = SIZE_STEP;
    while (step < len / 4)
        step *= 2;
    if (len > SIZE_MAX - step)
        return len;
    return (len + step - 1) / step * step;
}

/* A memory file that this process alone can write: it has its mapping before that is sealed. */
static bool region_make(struct region *region)
{
    region->fd = memfd_create("roost-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (region->fd < 0 || ftruncate(region->fd, (off_t)region->size) != 0 ||
        fallocate(region->fd, 0, 0, (off_t)region->size) != 0)
        return false;
    void *at =
        mmap(NULL, region->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, region->fd, 0);
    if (at == MAP_FAILED)
        return false;
    region->at = at;
    int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;
    /* Kernels before 5.1 cannot seal writing alone. */
    (void)fcntl(region->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return fcntl(region->fd, F_ADD_SEALS, size_seals | F_SEAL_SEAL) == 0;
}

static struct region *region_new(size_t size, uint32_t id)
{
    struct region *region = calloc(1, sizeof *region);
    if (!region)
        return NULL;
    region->fd = -1;
    region->size = size;
    region->id = id;
    if (region_make(region))
        return region;
    region_free(region);
    return NULL;
}

/* The smallest idle region that is large enough, but not a much larger one: a small payload would keep
 * it from the next large one. */
static struct region **find_idle(struct regions *regions, size_t len)
{
    struct region **best = NULL;
    for (struct region **at = &regions->first; *at; at = &(*at)->next)
        if ((*at)->uses == 0 && (*at)->size >= len && (*at)->size / 4 <= round_up(len) &&
            (!best || (*at)->size < (*best)->size))
            best = at;
    return best;
}

static struct region *move_first(struct regions *regions, struct region **at)
{
    struct region *region = *at;
    *at = region->next;
    region->next = regions->first;
    regions->first = region;
    return region;
}

/* Only what is in use counts: what is idle gives way, see regions_surplus. */
static bool has_room(const struct regions *regions, size_t size)
{
    size_t used = 0, count = 0;
    for (const struct region *at = regions->first; at; at = at->next) {
        used += at->uses ? at->size : 0;
        count += at->uses != 0;
    }
    return count == 0 ||
           (count < COUNT_MAX && used <= regions->bytes_max && size <= regions->bytes_max - used);
}

struct region *regions_take(struct regions *regions, size_t len)
{
    struct region **idle = find_idle(regions, len);
    struct region *region = NULL;
    if (idle) {
        region = move_first(regions, idle);
    } else {
        size_t size = round_up(len);
        region = has_room(regions, size) ? region_new(size, regions->last_id + 1) : NULL;
        if (!region)
            return NULL;
        regions->last_id++;
        regions->count++;
        regions->bytes += size;
        region->next = regions->first;
        regions->first = region;
    }
    region->uses = 1;
    return region;
}

void regions_drop(struct regions *regions, struct region *region, uint32_t uses)
{
    (void)regions;
    region->uses -= uses;
}

struct region *regions_surplus(struct regions *regions)
{
    size_t idle = 0;
    struct region **last = NULL;
    for (struct region **at = &regions->first; *at; at = &(*at)->next) {
        if ((*at)->uses)
            continue;
        idle += (*at)->size;
        last = at;
    }
    if (!last || (idle <= regions->idle_max && regions->bytes <= regions->bytes_max &&
                  regions->count <= COUNT_MAX))
        return NULL;
    struct region *region = *last;
    *last = region->next;
    regions->count--;
    regions->bytes -= region->size;
    return region;
}
