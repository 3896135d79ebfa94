/* worker.c - opens, writes to and closes the worker's end of a socket.
 *
 * Sending waits for room: a worker that is ahead of its driver has nothing better to do. One lock keeps
 * frames of different threads from mixing. */
#include <roost/worker.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/strview.h"
#include "rpc/worker_internal.h"

enum { VECTORS_MAX = 64 };

/* --- opening --- */

static const char *find_variable(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* Digits that make a number of at most INT32_MAX; moves behind them. */
static bool take_number(const char **at, int32_t *out)
{
    int64_t value = 0;
    const char *digit = *at;
    for (; *digit >= '0' && *digit <= '9' && value <= INT32_MAX; digit++)
        value = 10 * value + (*digit - '0');
    if (digit == *at || value > INT32_MAX)
        return false;
    *at = digit;
    *out = (int32_t)value;
    return true;
}

/* A descriptor of that number may be something else: the variable outlives the socket in processes that
 * a worker starts. */
static bool is_socket_of_ours(int fd)
{
    int type = 0, domain = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX;
}

static void say_no_socket(struct diag *diag, int fd)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "descriptor %d is not a socket to a driver", fd);
    diag_hint(diag, "do not close descriptors that the process was started with");
}

struct roost_worker *roost_worker_open(const char *const *env, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    const char *text = find_variable(env, "ROOST_CALL_SOCKET"), *at = text;
    int32_t fd, life;
    if (!text) {
        diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE, "this process has no socket to a driver");
        diag_hint(&diag, "start it as a process of a group: roost_group_start");
        return NULL;
    }
    if (!take_number(&at, &fd) || *at++ != ':' || !take_number(&at, &life) || *at) {
        diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE,
                   "ROOST_CALL_SOCKET does not name a socket: '%s'", quote(sv_from(text)).text);
        diag_hint(&diag, "leave it as the driver set it: DESCRIPTOR:LIFE");
        return NULL;
    }
    if (!is_socket_of_ours(fd)) {
        say_no_socket(&diag, fd); /* and is left alone: it is not ours */
        return NULL;
    }
    return roost_worker_new(fd, life, err);
}

struct roost_worker *roost_worker_new(int fd, int32_t life, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_socket_of_ours(fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        say_no_socket(&diag, fd);
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    struct roost_worker *worker = calloc(1, sizeof *worker);
    if (!worker || pthread_mutex_init(&worker->lock, NULL) != 0) {
        free(worker);
        close(fd);
        diag_nomem(&diag);
        return NULL;
    }
    worker->fd = fd;
    worker->life = life;
    worker->owner = getpid();
    worker->buffer = malloc(BUFFER_SIZE);
    if (!worker->buffer) {
        roost_worker_free(worker);
        diag_nomem(&diag);
        return NULL;
    }
    return worker;
}

void roost_worker_free(struct roost_worker *worker)
{
    if (!worker)
        return;
    close(worker->fd);
    while (worker->fd_count--)
        if (worker->fds[worker->fd_count] >= 0)
            close(worker->fds[worker->fd_count]);
    mappings_release(worker);
    for (size_t i = 0; i < worker->handler_count; i++)
        free(worker->handlers[i].method);
    free(worker->handlers);
    free(worker->filling);
    free(worker->buffer);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

int roost_worker_fd(const struct roost_worker *worker)
{
    return worker->fd;
}

bool roost_worker_is_over(const struct roost_worker *worker)
{
    return atomic_load(&worker->is_over);
}

bool roost_worker_is_forked(const struct roost_worker *worker)
{
    return getpid() != worker->owner;
}

enum roost_code worker_say_forked(struct diag *diag)
{
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
               "this process was forked from the worker, and the driver did not ask it");
    diag_hint(diag, "end it with _exit() when it is done");
    return ROOST_ERR_USAGE;
}

/* --- sending --- */

/* Sends all of it; false when nobody is there to read. */
static bool send_vectors(int fd, struct iovec *vectors, size_t count)
{
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = count};
    while (message.msg_iovlen) {
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
            continue;
        }
        if (sent < 0 && errno != EINTR)
            return false;
        size_t left = sent > 0 ? (size_t)sent : 0;
        while (message.msg_iovlen && left >= message.msg_iov->iov_len) {
            left -= message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + left;
            message.msg_iov->iov_len -= left;
        }
    }
    return true;
}

static bool send_frame(int fd, struct frame *frame, const struct roost_bytes *pieces, size_t count)
{
    struct iovec vectors[VECTORS_MAX] = {{frame, sizeof *frame}};
    size_t vector_count = 1;
    for (size_t i = 0; i < count; i++) {
        if (vector_count == VECTORS_MAX) {
            if (!send_vectors(fd, vectors, vector_count))
                return false;
            vector_count = 0;
        }
        vectors[vector_count++] = (struct iovec){(void *)(uintptr_t)pieces[i].at, pieces[i].len};
    }
    return send_vectors(fd, vectors, vector_count);
}

enum roost_code worker_send(struct roost_worker *worker, struct frame frame,
                            const struct roost_bytes *pieces, size_t count, struct diag *diag)
{
    /* Also the lock may be held for ever, by a thread that the fork left behind. */
    if (roost_worker_is_forked(worker))
        return worker_say_forked(diag);
    for (size_t i = 0; i < count; i++)
        frame.payload_len += pieces[i].len;
    pthread_mutex_lock(&worker->lock);
    bool is_sent = send_frame(worker->fd, &frame, pieces, count);
    pthread_mutex_unlock(&worker->lock);
    if (is_sent)
        return ROOST_OK;
    diag_error(diag, ROOST_ERR_IO, NOWHERE, "the driver has gone");
    diag_hint(diag, "end this process: nobody waits for its answers");
    return ROOST_ERR_IO;
}

static enum roost_code speak(struct roost_worker *worker, enum frame_type type,
                             const struct roost_bytes *bytes, size_t count, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (roost_worker_is_forked(worker))
        return worker_say_forked(&diag);
    pthread_mutex_lock(&worker->lock);
    bool has_spoken = worker->has_spoken;
    worker->has_spoken = true;
    pthread_mutex_unlock(&worker->lock);
    if (has_spoken) {
        diag_error(&diag, ROOST_ERR_USAGE, NOWHERE,
                   "the driver was told already whether this worker is ready");
        diag_hint(&diag, "call roost_worker_ready or roost_worker_refuse once, or let "
                         "roost_worker_serve do it");
        return ROOST_ERR_USAGE;
    }
    return worker_send(worker, frame_of(type, worker->life), bytes, count, &diag);
}

enum roost_code roost_worker_ready(struct roost_worker *worker, const struct roost_bytes *bytes,
                                   size_t count, struct roost_error *err)
{
    return speak(worker, FRAME_READY, bytes, count, err);
}

enum roost_code roost_worker_refuse(struct roost_worker *worker, const struct roost_bytes *bytes,
                                    size_t count, struct roost_error *err)
{
    return speak(worker, FRAME_REFUSED, bytes, count, err);
}
