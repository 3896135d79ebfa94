/* mappings.c - the driver's regions in a worker: mapped once, read only. A region is unmapped when the driver
 * no longer needs it and the last request that points into it is freed. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "rpc/worker_internal.h"

static struct mapping *find(struct roost_worker *worker, uint32_t id)
{
    for (size_t i = 0; i < worker->mapping_count; i++)
        if (worker->mappings[i].id == id)
            return &worker->mappings[i];
    return NULL;
}

static void forget(struct roost_worker *worker, struct mapping *mapping)
{
    if (mapping->at)
        munmap(mapping->at, mapping->size);
    *mapping = worker->mappings[--worker->mapping_count];
}

bool mappings_add(struct roost_worker *worker, uint32_t id, uint64_t size, int fd)
{
    struct stat file;
    /* Memory behind the end of the file would be a signal to who reads it. */
    if (find(worker, id) || size == 0 ||
        (fd >= 0 && (fstat(fd, &file) != 0 || (uint64_t)file.st_size < size)))
        return false;
    if (worker->mapping_count == worker->mapping_cap) {
        size_t cap = worker->mapping_cap ? 2 * worker->mapping_cap : 4;
        struct mapping *mappings = realloc(worker->mappings, cap * sizeof *mappings);
        if (!mappings)
            return false;
        worker->mappings = mappings;
        worker->mapping_cap = cap;
    }
    errno = EMFILE; /* the kernel drops a descriptor that there is no room for */
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    worker->mappings[worker->mapping_count++] =
        (struct mapping){.id = id,
                         .at = at == MAP_FAILED ? NULL : at,
                         .size = (size_t)size,
                         .error = at == MAP_FAILED ? errno : 0};
    return true;
}

const struct mapping *mappings_use(struct roost_worker *worker, uint32_t id, uint64_t len)
{
    struct mapping *mapping = find(worker, id);
    if (!mapping || mapping->is_over || len > mapping->size)
        return NULL;
    mapping->uses++;
    return mapping;
}

void mappings_drop(struct roost_worker *worker, uint32_t id)
{
    struct mapping *mapping = find(worker, id);
    if (mapping && --mapping->uses == 0 && mapping->is_over)
        forget(worker, mapping);
}

void mappings_end(struct roost_worker *worker, uint32_t id)
{
    struct mapping *mapping = find(worker, id);
    if (!mapping)
        return;
    mapping->is_over = true;
    if (mapping->uses == 0)
        forget(worker, mapping);
}

void mappings_release(struct roost_worker *worker)
{
    while (worker->mapping_count)
        forget(worker, &worker->mappings[0]);
    free(worker->mappings);
}
