/* control_socket.c - addresses sockets as /proc/self/fd/N/name, where N is an open directory. Such a path
 * never exceeds the limit of socket addresses, and no process can swap a parent directory on the way. */
#include "rpc/control_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Since Linux 6.5; not in every C library's headers. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static bool fill_address(struct sockaddr_un *out, int dir, const char *name)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(name) > CONTROL_NAME_MAX || strchr(name, '/')) {
        errno = EINVAL;
        return false;
    }
    snprintf(out->sun_path, sizeof out->sun_path, "/proc/self/fd/%d/%s", dir, name);
    return true;
}

static bool is_same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

static int give_up(int fd)
{
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* Its name until it can be connected to. */
struct early_name {
    char text[CONTROL_NAME_MAX + 8];
};

static struct early_name early_name(const char *name)
{
    struct early_name early;
    snprintf(early.text, sizeof early.text, ".%s", name);
    return early;
}

void control_remove(int dir, const char *name)
{
    (void)unlinkat(dir, early_name(name).text, 0);
    (void)unlinkat(dir, name, 0);
}

int control_listen(int dir, const char *name)
{
    struct sockaddr_un address;
    struct early_name early = early_name(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (!fill_address(&address, dir, early.text))
        return give_up(fd);
    (void)unlinkat(dir, early.text, 0);
    mode_t mask = umask(0177);
    int bound = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (bound != 0 || listen(fd, 64) != 0 || renameat(dir, early.text, dir, name) != 0)
        return give_up(fd);
    return fd;
}

int control_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !is_same_user(fd)) {
        errno = EPERM;
        return give_up(fd);
    }
    return fd;
}

int control_connect(int dir, const char *name)
{
    struct sockaddr_un address;
    if (!fill_address(&address, dir, name))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return give_up(fd);
    if (!is_same_user(fd)) {
        errno = EPERM;
        return give_up(fd);
    }
    return fd;
}

int control_peer(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : -1;
}

int control_peer_pidfd(int fd)
{
    int pidfd = -1;
    socklen_t len = sizeof pidfd;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
        return pidfd;
    /* By its number. Another process can have it by now only if the peer has ended, and then the
     * connection ends too. */
    pid_t pid = control_peer(fd);
    return pid > 0 ? pidfd_open(pid, 0) : -1;
}

ssize_t control_send(int fd, const void *bytes, size_t len)
{
    return send(fd, bytes, len, MSG_NOSIGNAL);
}

void control_hang_up(int fd)
{
    (void)shutdown(fd, SHUT_RDWR);
}
