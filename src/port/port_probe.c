/* port_probe.c - tests whether a process listens: connects to loopback and closes the connection at once.
 * Refusals arrive immediately. With a busy server whose queue is full, the kernel waits, but the probe does
 * not. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "port/port_socket.h"

static int start_one(int family, int32_t port)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    in4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in6.sin6_addr = in6addr_loopback;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int done = fd < 0              ? -1
               : family == AF_INET ? connect(fd, (const struct sockaddr *)&in4, sizeof in4)
                                   : connect(fd, (const struct sockaddr *)&in6, sizeof in6);
    if (done == 0 || (fd >= 0 && errno == EINPROGRESS))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* To somebody else: a connection from a port to itself stands too, by TCP's simultaneous open, with
 * nobody listening. */
static bool is_connected(int fd)
{
    struct sockaddr_storage own, peer;
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    memset(&own, 0, sizeof own);
    memset(&peer, 0, sizeof peer);
    return getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0 &&
           (own_len != peer_len || memcmp(&own, &peer, own_len) != 0);
}

/* Only poll knows whether there is an answer: a connection that waits has no error, and one that was
 * refused has none any more once it was asked for. */
static enum port_answer check_one(int fd)
{
    struct pollfd asked = {fd, POLLOUT, 0};
    int error = 0;
    socklen_t len = sizeof error;
    if (poll(&asked, 1, 0) <= 0)
        return PORT_WAITING;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0 ||
        !(asked.revents & POLLOUT))
        return PORT_CLOSED;
    return is_connected(fd) ? PORT_OPEN : PORT_CLOSED;
}

enum port_answer port_probe_start(struct port_probe *probe, int32_t port)
{
    *probe = (struct port_probe){port, {-1, -1}};
    if (port < 1 || port > UINT16_MAX)
        return PORT_CLOSED;
    probe->fds[0] = start_one(AF_INET, port);
    probe->fds[1] = start_one(AF_INET6, port);
    return port_probe_check(probe);
}

enum port_answer port_probe_check(struct port_probe *probe)
{
    enum port_answer answer = PORT_CLOSED;
    for (int i = 0; i < 2; i++) {
        if (probe->fds[i] < 0)
            continue;
        enum port_answer one = check_one(probe->fds[i]);
        answer = one > answer ? one : answer;
        if (one == PORT_WAITING)
            continue;
        close(probe->fds[i]);
        probe->fds[i] = -1;
    }
    if (answer == PORT_OPEN)
        port_probe_end(probe);
    return answer;
}

void port_probe_end(struct port_probe *probe)
{
    for (int i = 0; i < 2; i++) {
        if (probe->fds[i] >= 0)
            close(probe->fds[i]);
        probe->fds[i] = -1;
    }
}
