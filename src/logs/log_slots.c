/* log_slots.c - a bounded set of open descriptors for any number of files.
 *
 * Slots are taken in turns: with more loud files than slots, the one opened longest ago goes. A file
 * that was replaced by another is noticed when it is opened, by its inode, and read from its start. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "logs/log_tail_internal.h"

enum { SLOTS_MIN = 8, SLOTS_MAX = 2048 };

bool slots_init(struct log_tail *tail)
{
    struct rlimit limit = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &limit);
    /* A quarter: the rest is the program's, and descriptors are no more than a cache here. */
    rlim_t wanted = limit.rlim_cur / 4;
    tail->slot_count = wanted < SLOTS_MIN   ? SLOTS_MIN
                       : wanted > SLOTS_MAX ? SLOTS_MAX
                                            : (int32_t)wanted;
    tail->slots = calloc((size_t)tail->slot_count, sizeof *tail->slots);
    for (int32_t i = 0; tail->slots && i < tail->slot_count; i++)
        tail->slots[i].fd = -1;
    return tail->slots != NULL;
}

static void empty_slot(struct log_tail *tail, int32_t slot)
{
    if (tail->slots[slot].fd < 0)
        return;
    close(tail->slots[slot].fd);
    tail_stream(tail, tail->slots[slot].stream)->slot = NO_SLOT;
    tail->slots[slot].fd = -1;
}

static void empty_all(struct log_tail *tail)
{
    for (int32_t i = 0; tail->slots && i < tail->slot_count; i++)
        empty_slot(tail, i);
}

void slots_release(struct log_tail *tail)
{
    empty_all(tail);
    free(tail->slots);
}

void slots_close(struct log_tail *tail, int32_t stream)
{
    int32_t slot = tail_stream(tail, stream)->slot;
    if (slot != NO_SLOT)
        empty_slot(tail, slot);
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

void slots_refuse(struct log_tail *tail, int32_t stream, int error)
{
    tail_stream(tail, stream)->is_refused = true;
    if (tail->trouble.error)
        return;
    const struct tail_rank *rank = &tail->ranks[stream / LOG_STREAMS];
    tail->trouble = (struct log_trouble){
        .component_index = tail->components[rank->component].index,
        .rank = rank->rank,
        .stream = (enum log_stream)(stream % LOG_STREAMS),
        .error = error,
    };
}

static int open_stream(struct log_tail *tail, int32_t stream, struct stat *out_info, int *out_error)
{
    const struct tail_rank *rank = &tail->ranks[stream / LOG_STREAMS];
    return log_file_open(tail->run_dir, tail->components[rank->component].name, rank->rank,
                         (enum log_stream)(stream % LOG_STREAMS), out_info, out_error);
}

int slots_open(struct log_tail *tail, int32_t stream)
{
    struct tail_stream *it = tail_stream(tail, stream);
    if (it->slot != NO_SLOT)
        return tail->slots[it->slot].fd;
    struct stat info;
    int error = 0, fd = open_stream(tail, stream, &info, &error);
    if (fd < 0 && is_shortage(error)) {
        empty_all(tail);
        fd = open_stream(tail, stream, &info, &error);
    }
    if (fd < 0 && is_shortage(error) && !tail->is_finishing) {
        it->seen = -1; /* later, when the next round looks at every file */
        if (!tail->checks_all)
            tail->poll_due = watch_now() + POLL_MS;
        tail->checks_all = true;
    } else if (fd < 0 && error != ENOENT) {
        slots_refuse(tail, stream, error);
    }
    if (fd < 0)
        return -1;
    if (it->inode && it->inode != info.st_ino) {
        it->offset = 0;
        it->memo = 0;
    }
    it->inode = info.st_ino;
    empty_slot(tail, tail->slot_hand);
    tail->slots[tail->slot_hand] = (struct tail_slot){.fd = fd, .stream = stream};
    it->slot = tail->slot_hand;
    tail->slot_hand = (tail->slot_hand + 1) % tail->slot_count;
    return fd;
}
