/* port_socket.c - a port is held by a socket that is bound and never listens.
 *
 * Bound to [::] with IPv4 included, it conflicts with every other socket of that port: on any address, of
 * either family, listening or only bound. It has no SO_REUSEADDR: two sockets that both have it may share a
 * port until one listens, and then the other cannot. Nothing can connect to it. */
#include "port/port_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct endpoint {
    struct sockaddr_storage at;
    socklen_t len;
};

static struct endpoint endpoint_at(int family, int32_t port, bool is_loopback)
{
    struct endpoint endpoint;
    memset(&endpoint, 0, sizeof endpoint);
    if (family == AF_INET6) {
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
        in6.sin6_addr = is_loopback ? in6addr_loopback : in6addr_any;
        memcpy(&endpoint.at, &in6, sizeof in6);
        endpoint.len = sizeof in6;
    } else {
        struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        in4.sin_addr.s_addr = htonl(is_loopback ? INADDR_LOOPBACK : INADDR_ANY);
        memcpy(&endpoint.at, &in4, sizeof in4);
        endpoint.len = sizeof in4;
    }
    return endpoint;
}

/* A new socket bound to one endpoint, or -1 with errno. */
static int bound(int family, int type, int32_t port, bool is_loopback, bool is_shared)
{
    const int on = 1, off = 0;
    struct endpoint endpoint = endpoint_at(family, port, is_loopback);
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    bool is_set =
        family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    if (is_set && is_shared)
        is_set = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    if (is_set && bind(fd, (const struct sockaddr *)&endpoint.at, endpoint.len) == 0) {
        /* Shared only to get past what the last user left; from now on it is ours alone. */
        if (!is_shared || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &off, sizeof off) == 0)
            return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* All addresses of both families; of IPv4 alone where there is no IPv6. */
static int bound_everywhere(int type, int32_t port, bool is_shared)
{
    int fd = bound(AF_INET6, type, port, false, is_shared);
    if (fd < 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        fd = bound(AF_INET, type, port, false, is_shared);
    return fd;
}

static enum port_state state_of(int fd, int *out_fd)
{
    if (fd < 0)
        return errno == EADDRINUSE || errno == EACCES ? PORT_TAKEN : PORT_FAILED;
    *out_fd = fd;
    return PORT_HELD;
}

enum port_state port_socket_hold(int32_t port, bool is_handed, int *out_fd)
{
    int fd = bound_everywhere(SOCK_DGRAM, port, false);
    if (fd < 0)
        return state_of(fd, out_fd);
    close(fd);
    fd = bound_everywhere(SOCK_STREAM, port, false);
    if (fd < 0 || !is_handed)
        return state_of(fd, out_fd);
    close(fd);
    return state_of(bound(AF_INET, SOCK_STREAM, port, true, false), out_fd);
}

enum port_state port_socket_hold_again(int32_t port, bool is_handed, int *out_fd)
{
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        int fd = is_handed ? bound(AF_INET, SOCK_STREAM, port, true, is_shared)
                           : bound_everywhere(SOCK_STREAM, port, is_shared);
        if (fd >= 0 || errno != EADDRINUSE || is_shared)
            return state_of(fd, out_fd);
    }
    return PORT_FAILED;
}
