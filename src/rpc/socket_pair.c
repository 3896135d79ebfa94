/* socket_pair.c - one packet per message: a header, which is checked, a body, at most one descriptor. */
#include "rpc/socket_pair.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

struct header {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t len;
};

enum { MAGIC = 0x54534f52 /* "ROST" */, VERSION = 1 };

bool socket_pair_open(int out[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, out) != 0)
        return false;
    /* Room for a burst of events while the other side is busy; a refusal only costs a retry. */
    int size = 4 << 20;
    for (int i = 0; i < 2; i++)
        (void)setsockopt(out[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return true;
}

bool socket_pair_stream(int out[2])
{
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0;
}

enum socket_pair_result socket_pair_send(int socket, uint16_t type, const void *body, size_t len,
                                         int fd)
{
    return socket_pair_send_many(socket, type, body, len, &fd, fd >= 0);
}

enum socket_pair_result socket_pair_send_many(int socket, uint16_t type, const void *body,
                                              size_t len, const int *fds, int fd_count)
{
    enum { FDS_MAX = 8 };
    if (len > SOCKET_PAIR_BODY_MAX || fd_count > FDS_MAX) {
        errno = EMSGSIZE;
        return SOCKET_PAIR_FAILED;
    }
    struct header header = {MAGIC, VERSION, type, (uint32_t)len};
    struct iovec vectors[2] = {{&header, sizeof header}, {(void *)(uintptr_t)body, len}};
    union {
        char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr packet = {.msg_iov = vectors, .msg_iovlen = len ? 2 : 1};
    if (fd_count > 0) {
        size_t fds_len = (size_t)fd_count * sizeof *fds;
        packet.msg_control = control.bytes;
        packet.msg_controllen = CMSG_SPACE(fds_len);
        struct cmsghdr *item = &control.align; /* CMSG_FIRSTHDR, which an analyser takes for NULL */
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(fds_len);
        memcpy(CMSG_DATA(item), fds, fds_len);
    }
    for (;;) {
        if (sendmsg(socket, &packet, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return SOCKET_PAIR_OK;
        if (errno == EINTR)
            continue;
        if (errno == EAGAIN || errno == ENOBUFS)
            return SOCKET_PAIR_AGAIN;
        return errno == EPIPE || errno == ECONNRESET ? SOCKET_PAIR_CLOSED : SOCKET_PAIR_FAILED;
    }
}

/* The descriptor that came along, -1 without one. The kernel is told of room for exactly one: it closes
 * any more, and says so with MSG_CTRUNC. */
static int take_fd(struct msghdr *packet)
{
    int fd = -1;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(packet); item; item = CMSG_NXTHDR(packet, item))
        if (item->cmsg_level == SOL_SOCKET && item->cmsg_type == SCM_RIGHTS &&
            item->cmsg_len == CMSG_LEN(sizeof fd))
            memcpy(&fd, CMSG_DATA(item), sizeof fd);
    return fd;
}

enum socket_pair_result socket_pair_receive(int socket, struct message *out)
{
    struct header header;
    struct iovec vectors[2] = {{&header, sizeof header}, {out->body, sizeof out->body}};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr packet = {.msg_iov = vectors,
                            .msg_iovlen = 2,
                            .msg_control = control.bytes,
                            /* not the padded size, which has room for a second one */
                            .msg_controllen = CMSG_LEN(sizeof(int))};
    ssize_t got;
    /* A reset says, once, that the other side has gone without reading all of ours. What it had sent
     * before is still here. */
    do
        got = recvmsg(socket, &packet, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && errno == EAGAIN)
        return SOCKET_PAIR_AGAIN;
    if (got == 0)
        return SOCKET_PAIR_CLOSED;
    if (got < 0)
        return SOCKET_PAIR_FAILED;
    out->fd = take_fd(&packet);
    bool is_ours = (size_t)got >= sizeof header && header.magic == MAGIC &&
                   header.version == VERSION && header.len == (size_t)got - sizeof header &&
                   !(packet.msg_flags & (MSG_TRUNC | MSG_CTRUNC));
    if (!is_ours) {
        if (out->fd >= 0)
            close(out->fd);
        out->fd = -1;
        return SOCKET_PAIR_BAD;
    }
    out->type = header.type;
    out->len = header.len;
    return SOCKET_PAIR_OK;
}

void socket_pair_end(int socket)
{
    (void)shutdown(socket, SHUT_RDWR);
}
