/* call_reader.c - reads for links on which no thread waits, and sleeps as long as there are none.
 *
 * Words: a ward is the links of one group that the reader serves. The result of its last poll says what the
 * next poll waits for: a notification by the links, some time, or data to read.
 *
 * The lock of the reader is taken before the lock of links, never while the latter is held. It is held
 * during polls, so the reader never touches a ward after its removal. */
#include "rpc/call_reader.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rpc/timers.h"

enum {
    EVENTS_MAX = 32,
    PAUSE_MS = 4, /* answers are left so long to who may wait for them */
};

struct ward {
    struct ward *next;
    struct links *links;
    enum links_look last;
    uint64_t seen;
    int64_t look_at; /* LOOK_LATER: when to look again */
    bool is_watched; /* its descriptor, by ours */
    bool is_ready;   /* the kernel said so */
};

struct roost_call_reader {
    pthread_mutex_t lock;
    int poll_fd, wake_fd;
    struct ward *wards;
};

/* --- start and end --- */

struct roost_call_reader *roost_call_reader_new(void)
{
    struct roost_call_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    pthread_mutex_init(&reader->lock, NULL);
    reader->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    reader->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event told = {.events = EPOLLIN, .data.ptr = NULL};
    if (reader->poll_fd >= 0 && reader->wake_fd >= 0 &&
        epoll_ctl(reader->poll_fd, EPOLL_CTL_ADD, reader->wake_fd, &told) == 0)
        return reader;
    roost_call_reader_free(reader);
    return NULL;
}

void roost_call_reader_free(struct roost_call_reader *reader)
{
    if (!reader)
        return;
    while (reader->wards)
        reader_remove(reader, reader->wards->links);
    if (reader->poll_fd >= 0)
        close(reader->poll_fd);
    if (reader->wake_fd >= 0)
        close(reader->wake_fd);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

bool reader_add(struct roost_call_reader *reader, struct links *links)
{
    struct ward *ward = malloc(sizeof *ward);
    if (!ward)
        return false;
    *ward = (struct ward){.links = links};
    pthread_mutex_lock(&reader->lock);
    ward->next = reader->wards;
    reader->wards = ward;
    links_set_reader(links, reader->wake_fd); /* tells of what is unattended already */
    pthread_mutex_unlock(&reader->lock);
    return true;
}

static void watch(struct roost_call_reader *reader, struct ward *ward, bool is_watched)
{
    if (ward->is_watched == is_watched)
        return;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ward};
    int how = is_watched ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
    if (epoll_ctl(reader->poll_fd, how, links_fd(ward->links), &event) == 0)
        ward->is_watched = is_watched;
}

void reader_remove(struct roost_call_reader *reader, struct links *links)
{
    static const uint64_t one = 1;
    pthread_mutex_lock(&reader->lock);
    for (struct ward **at = &reader->wards; *at; at = &(*at)->next) {
        struct ward *ward = *at;
        if (ward->links != links)
            continue;
        *at = ward->next;
        links_set_reader(links, -1);
        watch(reader, ward, false);
        free(ward);
        break;
    }
    if (!reader->wards)
        (void)!write(reader->wake_fd, &one, sizeof one); /* who runs it is done */
    pthread_mutex_unlock(&reader->lock);
}

bool roost_call_reader_has_groups(struct roost_call_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    bool has_some = reader->wards != NULL;
    pthread_mutex_unlock(&reader->lock);
    return has_some;
}

/* --- running --- */

/* Marks the wards that can be read; whether links have told something. */
static bool hear(struct roost_call_reader *reader, const struct epoll_event *events, int count)
{
    bool was_told = false;
    uint64_t number;
    for (int i = 0; i < count; i++) {
        was_told |= !events[i].data.ptr;
        /* One that was removed meanwhile is not among them. */
        for (struct ward *ward = reader->wards; ward; ward = ward->next)
            ward->is_ready |= ward == events[i].data.ptr;
    }
    if (was_told)
        (void)!read(reader->wake_fd, &number, sizeof number);
    return was_told;
}

static bool is_due(const struct ward *ward, bool was_told, int64_t now)
{
    switch (ward->last) {
    case LOOK_NOTHING: return was_told;
    case LOOK_LATER: return now >= ward->look_at;
    case LOOK_READ: return ward->is_ready;
    }
    return false;
}

static void look(struct roost_call_reader *reader, struct ward *ward, int64_t now)
{
    ward->is_ready = false;
    ward->last = links_look(ward->links, &ward->seen);
    watch(reader, ward, ward->last == LOOK_READ);
    if (ward->last == LOOK_READ && !ward->is_watched)
        ward->last = LOOK_LATER; /* the kernel has no memory to tell us */
    ward->look_at = now + (int64_t)PAUSE_MS * 1000000;
}

/* Looks at those that are due; when the next one will be without the kernel's word, -1 = none. */
static int64_t turn(struct roost_call_reader *reader, bool was_told)
{
    int64_t now = timers_now(), next = -1;
    for (struct ward *ward = reader->wards; ward; ward = ward->next) {
        if (is_due(ward, was_told, now))
            look(reader, ward, now);
        if (ward->last == LOOK_LATER && (next < 0 || ward->look_at < next))
            next = ward->look_at;
    }
    return next;
}

void roost_call_reader_run(struct roost_call_reader *reader)
{
    struct epoll_event events[EVENTS_MAX];
    int64_t next = -1;
    while (roost_call_reader_has_groups(reader)) {
        int count = epoll_wait(reader->poll_fd, events, EVENTS_MAX, timers_left_ms(next));
        pthread_mutex_lock(&reader->lock);
        next = turn(reader, hear(reader, events, count));
        pthread_mutex_unlock(&reader->lock);
    }
}
