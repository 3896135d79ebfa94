/* log_watch.c - how a tail learns that files grew: inotify on the directories of ranks.
 *
 * A watch is put on the directory that was opened step by step, through its descriptor, never on a
 * path. Ranks without a watch (no directory yet, the user's limit reached, no /proc) are polled in turns,
 * POLL_FILES every POLL_MS, so that ten thousand of them cost no more than a thousand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "logs/log_tail_internal.h"

enum { EVENT_BYTES = 32 * 1024, EVENT_READS = 32, WATCHES_FIRST = 64 };

int64_t watch_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void watch_init(struct log_tail *tail)
{
    tail->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void watch_release(struct log_tail *tail)
{
    if (tail->notify >= 0)
        close(tail->notify);
    free(tail->rank_of_watch);
}

static bool make_room(struct log_tail *tail, int watch)
{
    if (watch < tail->watch_room)
        return true;
    int32_t room = tail->watch_room ? tail->watch_room : WATCHES_FIRST;
    while (room <= watch) {
        if (room > INT32_MAX / 2)
            return false;
        room *= 2;
    }
    int32_t *grown = realloc(tail->rank_of_watch, (size_t)room * sizeof *grown);
    if (!grown)
        return false;
    for (int32_t i = tail->watch_room; i < room; i++)
        grown[i] = -1;
    tail->rank_of_watch = grown;
    tail->watch_room = room;
    return true;
}

/* The watch of an open directory, or -1. */
static int watch_directory(const struct log_tail *tail, int dir)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", dir);
    return inotify_add_watch(tail->notify, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
}

static void set_watch(struct log_tail *tail, struct tail_rank *rank, int32_t watch)
{
    tail->watched += (watch >= 0) - (rank->watch >= 0);
    tail->without_directory += (watch == WATCH_NO_DIRECTORY) - (rank->watch == WATCH_NO_DIRECTORY);
    rank->watch = watch;
}

bool watch_add(struct log_tail *tail, int32_t rank)
{
    struct tail_rank *it = &tail->ranks[rank];
    if (tail->notify < 0) {
        set_watch(tail, it, WATCH_REFUSED);
        return true;
    }
    int error = 0;
    int dir = log_dir_open(tail->run_dir, tail->components[it->component].name, it->rank, &error);
    if (dir < 0) {
        /* What is not a directory is not waited for: opening the files will tell. */
        set_watch(tail, it, error == ENOENT ? WATCH_NO_DIRECTORY : WATCH_REFUSED);
        return true;
    }
    int watch = watch_directory(tail, dir);
    close(dir);
    if (watch >= 0 && !make_room(tail, watch)) {
        inotify_rm_watch(tail->notify, watch);
        return false;
    }
    if (watch >= 0)
        tail->rank_of_watch[watch] = rank;
    set_watch(tail, it, watch >= 0 ? watch : WATCH_REFUSED);
    return true;
}

static void take_event(struct log_tail *tail, const struct inotify_event *event)
{
    if (event->mask & IN_Q_OVERFLOW) {
        tail->checks_all = true;
        tail->poll_due = 0;
        return;
    }
    int32_t rank =
        event->wd >= 0 && event->wd < tail->watch_room ? tail->rank_of_watch[event->wd] : -1;
    if (rank < 0)
        return;
    if (event->mask & IN_IGNORED) { /* the directory is gone; perhaps it comes again */
        tail->rank_of_watch[event->wd] = -1;
        set_watch(tail, &tail->ranks[rank], WATCH_NO_DIRECTORY);
        return;
    }
    for (int stream = 0; event->len && stream < LOG_STREAMS; stream++) {
        if (strcmp(event->name, log_file_name((enum log_stream)stream)) != 0)
            continue;
        if (event->mask & (IN_CREATE | IN_MOVED_TO))
            slots_close(tail, rank * LOG_STREAMS + stream);
        tail_queue(tail, rank * LOG_STREAMS + stream);
    }
}

void watch_drain(struct log_tail *tail)
{
    _Alignas(struct inotify_event) char events[EVENT_BYTES];
    for (int i = 0; tail->notify >= 0 && i < EVENT_READS; i++) {
        ssize_t got = read(tail->notify, events, sizeof events);
        if (got <= 0)
            return;
        for (const char *at = events; at < events + got;) {
            const struct inotify_event *event = (const void *)at;
            take_event(tail, event);
            at += sizeof *event + event->len;
        }
    }
}

static void look_at(struct log_tail *tail, int32_t stream)
{
    const struct tail_rank *rank = &tail->ranks[stream / LOG_STREAMS];
    struct tail_stream *it = tail_stream(tail, stream);
    struct stat info;
    if (it->is_refused || log_file_look(tail->run_dir, tail->components[rank->component].name,
                                        rank->rank, (enum log_stream)(stream % LOG_STREAMS), &info))
        return;
    if (it->inode && it->inode != info.st_ino)
        slots_close(tail, stream);
    if (info.st_size != it->seen || it->inode != info.st_ino)
        tail_queue(tail, stream);
}

static void look_at_rank(struct log_tail *tail, int32_t rank)
{
    if (tail->ranks[rank].watch == WATCH_NO_DIRECTORY)
        watch_add(tail, rank); /* without memory it is tried again */
    for (int32_t stream = 0; stream < LOG_STREAMS; stream++)
        look_at(tail, rank * LOG_STREAMS + stream);
}

void watch_poll(struct log_tail *tail)
{
    int64_t now = watch_now();
    if ((tail->watched == tail->rank_count && !tail->checks_all) || now < tail->poll_due)
        return;
    tail->poll_due = now + POLL_MS;
    bool is_all = tail->checks_all;
    tail->checks_all = false;
    int32_t left = is_all ? INT32_MAX : POLL_FILES / LOG_STREAMS;
    for (int32_t i = 0; i < tail->rank_count && left > 0; i++) {
        int32_t rank = tail->poll_hand;
        tail->poll_hand = (rank + 1) % tail->rank_count;
        if (!is_all && tail->ranks[rank].watch >= 0)
            continue;
        look_at_rank(tail, rank);
        left--;
    }
}
