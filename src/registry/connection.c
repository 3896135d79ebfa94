/* connection.c - a process's connection to a registry server, shared by its threads.
 *
 * Each request has a number. Answers may arrive in any order, because a request for a lock waits while others
 * are answered. Of several waiting threads, one reads for all. Everything except waiting is done with the lock
 * held. So a thread that finds no room to write reads answers meanwhile: the registry server does not read
 * from a client that does not read its answers. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cure.h"
#include "registry/client_internal.h"
#include "registry/namespaces.h"
#include "rpc/control_socket.h"

enum {
    WRITE_MS = 30000, /* for a registry server that takes nothing of a request */
    ANSWER_MAX = 1 << 30,
    READ_BYTES = 64 * 1024,
};

int64_t connection_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- opening and closing --- */

struct roost_registry_client *roost_registry_client_open(const char *const *env,
                                                         const char *name_space,
                                                         struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    int fd = namespaces_connect(env, name_space, &diag);
    if (fd < 0)
        return NULL;
    struct roost_registry_client *registry = calloc(1, sizeof *registry);
    if (!registry) {
        close(fd);
        diag_nomem(&diag);
        return NULL;
    }
    registry->fd = fd;
    registry->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (registry->wake < 0) {
        int error = errno;
        diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE, "cannot make an eventfd: %s", strerror(error));
        diag_hint(&diag, "%s", cure_of_descriptor(error).text);
        close(fd);
        free(registry);
        return NULL;
    }
    registry->pid = getpid();
    registry->inbox = (struct text)TEXT_INIT;
    snprintf(registry->name_space, sizeof registry->name_space, "%s", name_space);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&registry->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&registry->lock, NULL);
    return registry;
}

void roost_registry_client_close(struct roost_registry_client *registry)
{
    if (!registry)
        return;
    for (struct pending *it = registry->pending, *next; it; it = next) {
        next = it->next;
        free(it->answer);
        free(it);
    }
    close(registry->fd);
    close(registry->wake);
    text_release(&registry->inbox);
    if (registry->pid == getpid()) { /* in a fork they may be locked for ever */
        pthread_cond_destroy(&registry->changed);
        pthread_mutex_destroy(&registry->lock);
    }
    free(registry);
}

void roost_answer_free(char *answer)
{
    free(answer);
}

/* --- with the lock held --- */

struct pending *connection_find(struct roost_registry_client *registry, int64_t ticket)
{
    struct pending *it = registry->pending;
    while (it && it->ticket != ticket)
        it = it->next;
    return it;
}

void connection_forget(struct roost_registry_client *registry, struct pending *pending)
{
    struct pending **at = &registry->pending;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    free(pending->answer);
    free(pending);
}

/* {"id":7, the rest of an answer} goes to whoever asked, without the number. False without memory. */
static bool dispatch(struct roost_registry_client *registry, struct strview line)
{
    static const struct strview lead = SV("{\"id\":");
    if (!sv_starts(line, lead.at))
        return true; /* an answer that nobody asked for */
    int64_t ticket = 0;
    size_t at = lead.len;
    for (; at < line.len && line.at[at] >= '0' && line.at[at] <= '9' && at < lead.len + 18; at++)
        ticket = ticket * 10 + (line.at[at] - '0');
    struct pending *pending = connection_find(registry, ticket);
    if (at >= line.len || line.at[at] != ',' || !pending || pending->answer)
        return true;
    size_t len = line.len - at; /* the comma becomes the brace */
    pending->answer = malloc(len + 1);
    if (!pending->answer)
        return false;
    memcpy(pending->answer, line.at + at, len);
    pending->answer[0] = '{';
    pending->answer[len] = '\0';
    return true;
}

/* Takes what has come; never waits. */
void connection_hear(struct roost_registry_client *registry)
{
    struct text *in = &registry->inbox;
    bool has_heard = false;
    while (!registry->is_lost) {
        if (in->len > ANSWER_MAX || !text_reserve(in, READ_BYTES)) {
            registry->is_lost = true;
            break;
        }
        ssize_t got = read(registry->fd, in->bytes + in->len, READ_BYTES);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0) {
            registry->is_lost = true;
            break;
        }
        has_heard = true;
        size_t searched = in->len, used = 0;
        in->len += (size_t)got;
        for (char *end; (end = memchr(in->bytes + searched, '\n', in->len - searched));) {
            size_t stop = (size_t)(end - in->bytes);
            if (!dispatch(registry, (struct strview){in->bytes + used, stop - used}))
                registry->is_lost = true;
            used = searched = stop + 1;
        }
        memmove(in->bytes, in->bytes + used, in->len - used);
        in->len -= used;
    }
    if (!has_heard && !registry->is_lost)
        return;
    pthread_cond_broadcast(&registry->changed);
    if (registry->is_reading)
        (void)eventfd_write(registry->wake, 1); /* fails when it is awake already */
}

bool connection_send(struct roost_registry_client *registry, struct strview line)
{
    int64_t deadline = connection_now() + WRITE_MS;
    size_t sent = 0;
    while (sent < line.len && !registry->is_lost) {
        ssize_t done = control_send(registry->fd, line.at + sent, line.len - sent);
        if (done > 0) {
            sent += (size_t)done;
            deadline = connection_now() + WRITE_MS;
        } else if (done < 0 && errno != EAGAIN && errno != EINTR) {
            registry->is_lost = true;
        } else if (connection_now() >= deadline) {
            registry->is_lost = true; /* half a line cannot be taken back */
        } else {
            poll(&(struct pollfd){registry->fd, POLLIN | POLLOUT, 0}, 1, 1000);
            connection_hear(registry);
        }
    }
    return !registry->is_lost;
}

static void wait_until(struct roost_registry_client *registry, int64_t deadline)
{
    struct timespec until = {deadline / 1000, (deadline % 1000) * 1000000};
    if (deadline < 0)
        pthread_cond_wait(&registry->changed, &registry->lock);
    else
        pthread_cond_timedwait(&registry->changed, &registry->lock, &until);
}

/* Waits for something to happen at all, at most until the deadline (-1 = none). */
void connection_wait(struct roost_registry_client *registry, int64_t deadline)
{
    if (registry->is_reading) {
        wait_until(registry, deadline);
        return;
    }
    int64_t left = deadline < 0 ? -1 : deadline - connection_now();
    registry->is_reading = true;
    pthread_mutex_unlock(&registry->lock);
    struct pollfd fds[2] = {{registry->fd, POLLIN, 0}, {registry->wake, POLLIN, 0}};
    poll(fds, 2, deadline < 0 ? -1 : (int)(left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : left));
    pthread_mutex_lock(&registry->lock);
    registry->is_reading = false;
    eventfd_t count;
    (void)eventfd_read(registry->wake, &count);
    connection_hear(registry);
    pthread_cond_broadcast(&registry->changed); /* somebody else must wait there now */
}
