/* worker_in.c - the next request of a worker. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/timers.h"
#include "rpc/worker_internal.h"

enum { DIRECT_MIN = 16 << 10 }; /* a rest of a body of this size is received where it stays */

#define NO_MEMORY "the worker has no memory for this request"

static const struct frame_limits limits = {FRAMES_OF_DRIVER, SIZE_MAX / 4};

/* --- receiving --- */

/* -1 keeps the place of one that the kernel had no room for. */
static void keep_fd(struct roost_worker *worker, int fd)
{
    if (worker->fd_count < FDS_MAX)
        worker->fds[worker->fd_count++] = fd;
    else if (fd >= 0)
        close(fd);
}

/* False when none was sent. */
static bool take_fd(struct roost_worker *worker, int *out)
{
    if (worker->fd_count == 0)
        return false;
    *out = worker->fds[0];
    memmove(worker->fds, worker->fds + 1, (size_t)--worker->fd_count * sizeof(int));
    return true;
}

/* As recv (only one that waits is interrupted by signals), and keeps a descriptor that comes along. The
 * driver does not send more than one. */
static ssize_t receive(struct roost_worker *worker, void *at, size_t len, int flags)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec vector = {at, len};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got;
    /* a reset means that the driver has gone without reading all; what it sent is still here */
    do
        got = recvmsg(worker->fd, &message, flags | MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == ECONNRESET || (errno == EINTR && flags)));
    for (struct cmsghdr *item = got > 0 ? CMSG_FIRSTHDR(&message) : NULL; item;
         item = CMSG_NXTHDR(&message, item)) {
        int fd;
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS ||
            item->cmsg_len != CMSG_LEN(sizeof fd))
            continue;
        memcpy(&fd, CMSG_DATA(item), sizeof fd);
        keep_fd(worker, fd);
        return got;
    }
    if (got > 0 && message.msg_flags & MSG_CTRUNC)
        keep_fd(worker, -1);
    return got;
}

/* Looks for what comes in a moment, as receive. EINTR when it did not: a signal that was handled meanwhile
 * would be forgotten in the sleep that follows. EAGAIN when there is nothing to look for. */
static ssize_t look(struct roost_worker *worker, void *at, size_t len)
{
    bool has_looked = false;
    ssize_t got = -1;
    while (spin_again(&worker->spin)) {
        has_looked = true;
        got = receive(worker, at, len, MSG_DONTWAIT);
        if (got >= 0 || errno != EAGAIN)
            return got;
    }
    errno = has_looked ? EINTR : EAGAIN;
    return -1;
}

/* As receive; EAGAIN when nothing came in time. The socket may have been made one that never blocks. */
static ssize_t sleep_until(struct roost_worker *worker, void *at, size_t len, int64_t deadline)
{
    for (;;) {
        ssize_t got = receive(worker, at, len, deadline < 0 ? 0 : MSG_DONTWAIT);
        if (got >= 0 || errno != EAGAIN)
            return got;
        struct pollfd more = {.fd = worker->fd, .events = POLLIN};
        int left = timers_left_ms(deadline);
        int ready = left ? poll(&more, 1, left) : 0;
        if (ready < 0 && deadline < 0)
            return -1; /* a signal */
        if (ready == 0 && timers_left_ms(deadline) == 0) {
            errno = EAGAIN;
            return -1;
        }
    }
}

/* As receive, waiting for what comes; EAGAIN = it did not in time, EINTR = ask again. */
static ssize_t await(struct roost_worker *worker, void *at, size_t len, int64_t deadline)
{
    spin_begin(&worker->spin, deadline < 0);
    ssize_t got = look(worker, at, len);
    if (got < 0 && errno == EAGAIN)
        got = sleep_until(worker, at, len, deadline);
    int error = errno;
    spin_end(&worker->spin);
    errno = error;
    return got;
}

/* As request_room. A request that there is no memory for is answered so, and skipped. */
static char *room_for_body(struct roost_worker *worker, size_t *out_room)
{
    char *into = request_room(&worker->filling, out_room);
    if (into)
        return into;
    request_refuse(worker, worker->filling->id, NO_MEMORY);
    free(worker->filling);
    worker->filling = NULL;
    return NULL;
}

/* Takes more bytes in; false when none came in time, or none will come. */
static bool fill(struct roost_worker *worker, int64_t deadline)
{
    size_t len = BUFFER_SIZE;
    char *into = NULL;
    if (worker->filling && worker->in.left >= DIRECT_MIN)
        into = room_for_body(worker, &len);
    bool is_direct = into;
    if (!is_direct) {
        into = worker->buffer;
        len = BUFFER_SIZE;
    }
    ssize_t got = await(worker, into, len, deadline);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        atomic_store(&worker->is_over, true);
        return false;
    }
    if (is_direct) {
        request_passed(worker->filling, (size_t)got);
        frame_passed(&worker->in, (size_t)got);
    } else {
        worker->start = 0;
        worker->end = (size_t)got;
    }
    return true;
}

/* --- frames --- */

/* The memory with the payload could not be mapped: this request fails, and others may do without. */
static void refuse_unmapped(struct roost_worker *worker)
{
    char why[200];
    int error = worker->filling->error;
    snprintf(why, sizeof why,
             "the worker cannot map %zu bytes of arguments: %s (raise its limit of %s)",
             worker->filling->payload_len, strerror(error),
             error == EMFILE ? "open files: ulimit -n" : "memory: ulimit -v, or vm.max_map_count");
    request_refuse(worker, worker->filling->id, why);
    atomic_store(&worker->filling->is_answered, true);
    roost_request_free(worker->filling);
    worker->filling = NULL;
}

/* False when the driver sent what makes no sense. */
static bool begin_call(struct roost_worker *worker)
{
    const struct frame *frame = &worker->in.frame;
    struct roost_request *request = worker->filling = request_new(worker, frame);
    if (!request)
        request_refuse(worker, frame->call, NO_MEMORY);
    if (!request || !frame->region || request->shared)
        return true;
    if (request->error == 0)
        return false;
    refuse_unmapped(worker);
    return true;
}

/* False when the driver sent what makes no sense. */
static bool begin_frame(struct roost_worker *worker)
{
    const struct frame *frame = &worker->in.frame;
    bool is_good = frame->life == 0 || frame->life == worker->life;
    if (is_good && frame->type == FRAME_CALL)
        return begin_call(worker);
    pthread_mutex_lock(&worker->lock);
    if (is_good && frame->type == FRAME_MAP) {
        int fd = -1;
        is_good =
            take_fd(worker, &fd) && mappings_add(worker, frame->region, frame->payload_len, fd);
        if (fd >= 0)
            close(fd);
    } else if (is_good) {
        mappings_end(worker, frame->region);
    }
    pthread_mutex_unlock(&worker->lock);
    return is_good;
}

static void add_body(struct roost_worker *worker, struct frame_input piece)
{
    while (worker->filling && piece.len) {
        size_t room;
        char *into = room_for_body(worker, &room);
        if (!into)
            return;
        room = room < piece.len ? room : piece.len;
        memcpy(into, piece.at, room);
        request_passed(worker->filling, room);
        piece.at += room;
        piece.len -= room;
    }
}

/* The next request in what has come; NULL = none yet. */
static struct roost_request *decode(struct roost_worker *worker)
{
    struct frame_input in = {worker->buffer + worker->start, worker->end - worker->start}, piece;
    struct roost_request *request = NULL;
    const char *why = NULL;
    enum frame_step step;
    while (!worker->is_broken && !request) {
        step = frame_next(&worker->in, &limits, &in, &piece, &why);
        if (step == FRAME_NEED)
            break;
        if (step == FRAME_BAD || (step == FRAME_BEGIN && !begin_frame(worker)))
            worker->is_broken = true;
        else if (step == FRAME_BODY)
            add_body(worker, piece);
        else if (step == FRAME_END) {
            request = worker->filling;
            worker->filling = NULL;
        }
    }
    worker->start = worker->end - in.len;
    return request;
}

enum roost_code roost_worker_next(struct roost_worker *worker, int32_t timeout_ms,
                                  struct roost_request **out, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    *out = NULL;
    if (roost_worker_is_forked(worker))
        return worker_say_forked(&diag);
    int64_t deadline = timers_deadline(timeout_ms);
    struct roost_request *request;
    do
        request = decode(worker);
    while (!request && !worker->is_broken && fill(worker, deadline));
    *out = request;
    if (!worker->is_broken)
        return ROOST_OK;
    diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE, "what the driver sent is not a request");
    diag_hint(&diag, "driver and worker must be of the same roost, and nobody else may write into "
                     "their socket");
    return ROOST_ERR_ENGINE;
}
