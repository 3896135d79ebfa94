/* links_wait.c - threads that wait.
 *
 * Of the waiting threads one, the leader, sleeps in the kernel and handles incoming data for all. The others
 * sleep until their condition is true, or until the leader has left and one of them takes its place.
 * A thread that changes something from outside checks the waiters' conditions, and wakes the leader only if
 * the leader's own condition has become true. Other threads may handle incoming data while the leader sleeps,
 * but leave its wake-up and timer events to it.
 *
 * Requests without an answer while no thread waits are unattended: the links notify the background reader, if
 * there is one, which reads if they stay unattended. Event loops that listen are notified of every change. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rpc/links_internal.h"

enum {
    EVENTS_MAX = 128,
    BUDGET = 1 << 20, /* bytes taken of one link before the others have their turn */
};

/* --- the kernel's word --- */

bool links_watch(struct links *links, int how, int fd, uint32_t events, struct mark mark)
{
    struct epoll_event event = {.events = events,
                                .data.u64 = (uint64_t)mark.epoch << 32 | (uint32_t)mark.rank};
    return epoll_ctl(links->poll_fd, how, fd, &event) == 0;
}

/* The kernel's word will come at that time at the latest; false when it cannot be asked. */
static bool set_alarm(struct links *links, int64_t at)
{
    if (links->timer_at && links->timer_at <= at)
        return true; /* it is looked at again when that has come */
    struct itimerspec when = {.it_value = {at / 1000000000, at % 1000000000}};
    if (timerfd_settime(links->timer_fd, TFD_TIMER_ABSTIME, &when, NULL) != 0)
        return false;
    links->timer_at = at;
    return true;
}

void links_set_timer(struct links *links, struct timer *timer, int64_t at)
{
    timers_set(&links->timers, timer, at);
    (void)set_alarm(links, at);
}

static void empty(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof count) < 0 && errno == EINTR)
        continue;
}

static void handle_timer(struct links *links)
{
    empty(links->timer_fd);
    links->timer_at = 0;
    timers_fire(&links->timers, timers_now());
    if (links->timers.count)
        links_set_timer(links, links->timers.heap[0], links->timers.heap[0]->at);
    /* The alarm was the sleeping leader's, too, and it may not have heard it. */
    if (links->is_asleep && links->leader_until >= 0)
        (void)set_alarm(links, links->leader_until);
}

static void handle_link(struct links *links, const struct epoll_event *event)
{
    struct link *link = &links->link[(uint32_t)event->data.u64];
    if (link->epoch != event->data.u64 >> 32)
        return; /* told of a socket that was closed since */
    if (event->events & EPOLLOUT)
        link_flush(link);
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        link_receive(link, BUDGET);
}

static void handle(struct links *links, const struct epoll_event *events, int count)
{
    bool has_other = false, is_due = false, is_over = false;
    links->reads++;
    for (int i = 0; i < count; i++) {
        int32_t mark = (int32_t)(uint32_t)events[i].data.u64;
        if (mark == MARK_WAKE && !links->is_asleep)
            empty(links->wake_fd); /* before the leader has heard it, it is not for anybody else */
        has_other |= mark == MARK_OTHER;
        is_over |= mark == MARK_OTHER && (events[i].events & (EPOLLHUP | EPOLLERR));
        is_due |= mark == MARK_TIMER;
        if (mark >= 0)
            handle_link(links, &events[i]);
    }
    /* Answers first: what is told of a worker's end came after them, and so did the end of its time. */
    if (has_other) {
        links->options.on_other(links->options.context);
        links->has_changed = true;
    }
    /* The end of it would be news for ever. */
    if (is_over)
        (void)links_watch(links, EPOLL_CTL_DEL, links->options.other_fd, 0, (struct mark){0, 0});
    if (is_due)
        handle_timer(links);
}

/* --- those who wait --- */

static void signal_fd(int fd)
{
    static const uint64_t one = 1;
    (void)!write(fd, &one, sizeof one); /* a full counter wakes, too */
}

static void wake(struct links *links, struct waiter *waiter)
{
    if (waiter != links->leader)
        pthread_cond_signal(&waiter->cond);
    else if (links->is_asleep)
        signal_fd(links->wake_fd);
}

/* Asks everybody who waits. */
static void tell(struct links *links)
{
    links->has_changed = false;
    for (struct waiter *at = links->waiters; at; at = at->next)
        if (!at->is_done && at->is_enough(at->context)) {
            at->is_done = true;
            wake(links, at);
        }
    for (size_t i = 0; i < links->listener_count; i++)
        signal_fd(links->listeners[i]);
}

static bool is_unattended(const struct links *links)
{
    return links->asked && !links->waiters;
}

/* The reader looks from now on; who made the request may wait in a moment, so that counts as a read. */
static void notice(struct links *links)
{
    links->is_noticed = true;
    links->reads++;
    signal_fd(links->reader_fd);
}

void links_leave(struct links *links)
{
    if (links->has_changed)
        tell(links);
    if (links->reader_fd >= 0 && !links->is_noticed && is_unattended(links))
        notice(links);
    pthread_mutex_unlock(&links->lock);
}

/* What the kernel tells, in a moment or after a sleep. */
static int look(struct links *links, struct epoll_event events[EVENTS_MAX], int timeout)
{
    int count = 0;
    while (count == 0 && spin_again(&links->spin))
        count = epoll_wait(links->poll_fd, events, EVENTS_MAX, 0);
    return count ? count : epoll_wait(links->poll_fd, events, EVENTS_MAX, timeout);
}

/* One turn of the leader. */
static void lead(struct links *links, struct waiter *me, int64_t deadline)
{
    struct epoll_event events[EVENTS_MAX];
    /* A limit given to each wait would start and stop a timer of the kernel each time. One alarm serves all
     * waits before it: those that follow each other quickly end later than that. */
    int timeout = deadline < 0 || set_alarm(links, deadline) ? -1 : timers_left_ms(deadline);
    links->leader = me;
    links->leader_until = deadline;
    links->is_asleep = true;
    /* Where workers need all the cores, looking for their answers keeps them from giving any. */
    spin_begin(&links->spin, links->asked <= (uint64_t)links->cores);
    pthread_mutex_unlock(&links->lock);
    int count = look(links, events, timeout);
    pthread_mutex_lock(&links->lock);
    spin_end(&links->spin);
    links->is_asleep = false;
    handle(links, events, count);
    if (links->has_changed)
        tell(links);
    links->leader = NULL;
}

static void follow(struct links *links, struct waiter *me, int64_t deadline)
{
    if (!me->has_cond) {
        pthread_condattr_t how;
        pthread_condattr_init(&how);
        pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
        pthread_cond_init(&me->cond, &how);
        pthread_condattr_destroy(&how);
        me->has_cond = true;
    }
    struct timespec until = {deadline / 1000000000, deadline % 1000000000};
    if (deadline < 0)
        pthread_cond_wait(&me->cond, &links->lock);
    else
        (void)pthread_cond_timedwait(&me->cond, &links->lock, &until);
}

/* Not inlined: the compiler cannot see that leave() takes the address out again, and warns. */
__attribute__((noinline)) static void enter(struct links *links, struct waiter *me)
{
    me->next = links->waiters;
    me->back = &links->waiters;
    if (me->next)
        me->next->back = &me->next;
    links->waiters = me;
}

static void leave(struct links *links, struct waiter *me)
{
    *me->back = me->next;
    if (me->next)
        me->next->back = me->back;
    if (me->has_cond)
        pthread_cond_destroy(&me->cond);
    /* Somebody must read for those who still wait. */
    if (!links->leader)
        for (struct waiter *at = links->waiters; at; at = at->next)
            if (!at->is_done) {
                wake(links, at);
                return;
            }
}

bool links_wait_held(struct links *links, int64_t deadline, bool (*is_enough)(void *),
                     void *context)
{
    if (is_enough(context))
        return true;
    struct waiter me = {.is_enough = is_enough, .context = context};
    enter(links, &me);
    while (!me.is_done) {
        if (timers_left_ms(deadline) == 0)
            break;
        if (links->leader)
            follow(links, &me, deadline);
        else
            lead(links, &me, deadline);
    }
    leave(links, &me);
    return me.is_done;
}

bool links_wait(struct links *links, int32_t timeout_ms, bool (*is_enough)(void *), void *context)
{
    links_lock(links);
    if (timeout_ms == 0)
        links_pump_held(links);
    bool is_done = links_wait_held(links, timers_deadline(timeout_ms), is_enough, context);
    links_leave(links);
    return is_done;
}

int links_fd(const struct links *links)
{
    return links->poll_fd;
}

void links_pump_held(struct links *links)
{
    struct epoll_event events[EVENTS_MAX];
    /* A turn for everybody, also when all of them never stop sending. */
    for (int32_t turns = links->options.rank_count / EVENTS_MAX; turns >= 0; turns--) {
        int count = epoll_wait(links->poll_fd, events, EVENTS_MAX, 0);
        handle(links, events, count);
        if (count < EVENTS_MAX)
            break;
    }
}

void links_pump(struct links *links)
{
    links_lock(links);
    links_pump_held(links);
    links_leave(links);
}

/* --- those who do not wait --- */

bool links_listen(struct links *links, int fd)
{
    links_lock(links);
    int *more = realloc(links->listeners, (links->listener_count + 1) * sizeof *more);
    if (more) {
        more[links->listener_count++] = fd;
        links->listeners = more;
    }
    links_leave(links);
    return more != NULL;
}

void links_unlisten(struct links *links, int fd)
{
    links_lock(links);
    for (size_t i = 0; i < links->listener_count; i++)
        if (links->listeners[i] == fd) {
            links->listeners[i] = links->listeners[--links->listener_count];
            break;
        }
    links_leave(links);
}

void links_set_reader(struct links *links, int fd)
{
    links_lock(links);
    links->reader_fd = fd;
    links->is_noticed = false;
    links_leave(links);
}

enum links_look links_look(struct links *links, uint64_t *seen)
{
    enum links_look look = LOOK_NOTHING;
    links_lock(links);
    if (links->is_noticed && *seen != links->reads) {
        look = LOOK_LATER;
    } else if (links->is_noticed) {
        if (is_unattended(links))
            links_pump_held(links);
        links->is_noticed = is_unattended(links);
        look = links->is_noticed ? LOOK_READ : LOOK_NOTHING;
    }
    *seen = links->reads;
    links_leave(links);
    return look;
}
