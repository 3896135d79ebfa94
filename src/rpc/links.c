/* links.c - the object: its ranks, their lives, its lock. */
#include "rpc/links.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/links_internal.h"

static bool lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t how;
    if (pthread_mutexattr_init(&how) != 0)
        return false;
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
    bool is_good = pthread_mutex_init(lock, &how) == 0;
    pthread_mutexattr_destroy(&how);
    return is_good;
}

static int count_cores(void)
{
    cpu_set_t cores;
    return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

static bool watch_own(struct links *links, int fd, int32_t mark)
{
    return links_watch(links, EPOLL_CTL_ADD, fd, EPOLLIN, (struct mark){mark, 0});
}

/* Everything that can fail. */
static bool links_open(struct links *links)
{
    size_t count = (size_t)links->options.rank_count;
    links->link = calloc(count ? count : 1, sizeof *links->link);
    links->scratch = malloc(SCRATCH_SIZE);
    if (!links->link || !links->scratch || !timers_reserve(&links->timers, count))
        return false;
    for (size_t rank = 0; rank < count; rank++)
        link_init(&links->link[rank], links, (int32_t)rank);
    links->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    links->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    links->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return links->poll_fd >= 0 && links->wake_fd >= 0 && links->timer_fd >= 0 &&
           watch_own(links, links->wake_fd, MARK_WAKE) &&
           watch_own(links, links->timer_fd, MARK_TIMER) &&
           (links->options.other_fd < 0 || watch_own(links, links->options.other_fd, MARK_OTHER));
}

struct links *links_new(const struct links_options *options)
{
    struct links *links = calloc(1, sizeof *links);
    if (!links)
        return NULL;
    links->options = *options;
    links->limits = (struct frame_limits){
        FRAMES_OF_WORKER, options->answer_max ? options->answer_max : FRAME_ANSWER_MAX};
    links->poll_fd = links->wake_fd = links->timer_fd = links->reader_fd = -1;
    links->cores = count_cores();
    regions_init(&links->regions, 0, 0);
    if (!lock_init(&links->lock)) {
        free(links);
        return NULL;
    }
    if (links_open(links))
        return links;
    links_free(links);
    return NULL;
}

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

void links_free(struct links *links)
{
    if (!links)
        return;
    for (int32_t rank = 0; links->link && rank < links->options.rank_count; rank++) {
        struct link *link = &links->link[rank];
        if (!link->links)
            break; /* half-built */
        link_end(link, "its group was freed");
        free(link->why);
        free(link->said);
    }
    regions_release(&links->regions);
    timers_release(&links->timers);
    close_if(links->poll_fd);
    close_if(links->wake_fd);
    close_if(links->timer_fd);
    free(links->link);
    free(links->scratch);
    free(links->listeners);
    pthread_mutex_destroy(&links->lock);
    free(links);
}

void links_lock(struct links *links)
{
    pthread_mutex_lock(&links->lock);
}

void links_unlock(struct links *links)
{
    links->has_changed = true;
    links_leave(links);
}

/* --- lives --- */

static struct link *link_of(struct links *links, int32_t rank)
{
    return rank >= 0 && rank < links->options.rank_count ? &links->link[rank] : NULL;
}

static bool begin(struct link *link, int32_t life, int fd)
{
    struct links *links = link->links;
    if (link->fd >= 0)
        link_end(link, "its next life has begun");
    /* What waits for the first life goes to it; a later one starts afresh. */
    struct mark mark = {link->rank, link->epoch + 1};
    if (!links_watch(links, EPOLL_CTL_ADD, fd, EPOLLIN, mark))
        return false;
    link->fd = fd;
    link->epoch++;
    link->life = life;
    link->state = LINK_STARTING;
    free(link->said);
    link->said = NULL;
    link->said_len = 0;
    link->has_refused = false;
    free(link->why);
    link->why = NULL;
    links->has_changed = true;
    link_flush(link);
    return true;
}

bool links_add(struct links *links, int32_t rank, int32_t life, int32_t pid, int fd)
{
    (void)pid;
    links_lock(links);
    struct link *link = link_of(links, rank);
    bool is_good = link && life > link->life && begin(link, life, fd);
    if (!is_good)
        close(fd);
    links_leave(links);
    return is_good;
}

/* What was sent before the end, and not more: who else holds the socket could go on for ever. */
static void drain(struct link *link)
{
    int waiting = 0;
    if (link->fd >= 0 && !link->is_closed && ioctl(link->fd, FIONREAD, &waiting) == 0 && waiting)
        link_receive(link, (size_t)waiting);
}

void links_end(struct links *links, int32_t rank, int32_t life, const char *why)
{
    links_lock(links);
    struct link *link = link_of(links, rank);
    if (link && life >= link->life) {
        if (life == link->life)
            drain(link);
        link->life = life;
        link_end(link, why);
    }
    links_leave(links);
}

enum link_state links_state(struct links *links, int32_t rank, struct roost_bytes *out_bytes)
{
    links_lock(links);
    const struct link *link = link_of(links, rank);
    enum link_state state = link ? link->state : LINK_ENDED;
    if (out_bytes)
        *out_bytes =
            (struct roost_bytes){link && link->said ? link->said : "", link ? link->said_len : 0};
    links_leave(links);
    return state;
}

bool links_refusal(struct links *links, int32_t rank, struct roost_bytes *out_bytes)
{
    links_lock(links);
    const struct link *link = link_of(links, rank);
    bool has_refused = link && link->has_refused;
    if (has_refused)
        *out_bytes = (struct roost_bytes){link->said ? link->said : "", link->said_len};
    links_leave(links);
    return has_refused;
}

struct links_counts links_counts(struct links *links)
{
    links_lock(links);
    struct links_counts counts = links->counts;
    links_leave(links);
    return counts;
}
