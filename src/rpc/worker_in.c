/* worker_in.c - the next request of a worker. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/timers.h"
#include "rpc/worker_internal.h"

enum { DIRECT_MIN = 16 << 10 }; /* a rest of a body of this size is received where it stays */

static const struct frame_limits limits = {FRAMES_OF_DRIVER, SIZE_MAX / 4};

/* --- receiving --- */

static void keep_fd(struct roost_worker *worker, int fd)
{
    if (worker->fd_count < FDS_MAX)
        worker->fds[worker->fd_count++] = fd;
    else
        close(fd);
}

static int take_fd(struct roost_worker *worker)
{
    if (worker->fd_count == 0)
        return -1;
    int fd = worker->fds[0];
    memmove(worker->fds, worker->fds + 1, (size_t)--worker->fd_count * sizeof(int));
    return fd;
}

/* As recv (only one that waits is interrupted by signals), and keeps a descriptor that comes along. The kernel closes any more than one: the driver does
 * not send them. */
static ssize_t receive(struct roost_worker *worker, void *at, size_t len, int flags)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {at, len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got;
    do /* a reset says that the driver has gone without reading all; what it sent is still here */
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
    }
    return got;
}

/* As request_room. A request that there is no memory for is answered so, and skipped. */
static char *room_for_body(struct roost_worker *worker, size_t *out_room)
{
    char *into = request_room(&worker->filling, out_room);
    if (into)
        return into;
    request_refuse(worker, worker->filling->id);
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
    ssize_t got;
    for (;;) {
        got = receive(worker, into, len, deadline < 0 ? 0 : MSG_DONTWAIT);
        if (got >= 0 || errno != EAGAIN)
            break;
        struct pollfd more = {.fd = worker->fd, .events = POLLIN};
        int left = timers_left_ms(deadline);
        if (left == 0 || (poll(&more, 1, left) == 0 && timers_left_ms(deadline) == 0))
            return false;
    }
    if (got < 0 && errno == EINTR)
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

/* False when the driver sent what makes no sense. */
static bool begin_frame(struct roost_worker *worker)
{
    const struct frame *frame = &worker->in.frame;
    bool is_good = frame->life == 0 || frame->life == worker->life;
    if (is_good && frame->type == FRAME_CALL) {
        worker->filling = request_new(worker, frame);
        if (!worker->filling)
            request_refuse(worker, frame->call);
        return !worker->filling || !frame->region || worker->filling->shared;
    }
    pthread_mutex_lock(&worker->lock);
    if (is_good && frame->type == FRAME_MAP) {
        int fd = take_fd(worker);
        is_good = fd >= 0 && mappings_add(worker, frame->region, frame->payload_len, fd);
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
                     "their channel");
    return ROOST_ERR_ENGINE;
}
