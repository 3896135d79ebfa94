/* short.c - a kernel in a bad mood, for a roost program of the tests.
 *
 * Every read and write of the library and the program comes through here (-Wl,--wrap): it is done in pieces of
 * one to three bytes, and every third one is interrupted. Its guardian, supervisor and registry server are the same
 * program, so they have it no better. What the kernel itself never does in part is left alone: packets,
 * counters and lists of events, and its own files (/proc, control groups). */
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static __thread unsigned calls;

static bool is_stream_socket(int fd)
{
    int type = 0;
    socklen_t len = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

/* Whether the kernel may do less than it was asked for. */
static bool is_divisible(int fd)
{
    struct stat info;
    struct statfs disk;
    if (fstat(fd, &info) != 0)
        return false;
    if (S_ISSOCK(info.st_mode))
        return is_stream_socket(fd);
    if (S_ISFIFO(info.st_mode))
        return true;
    return S_ISREG(info.st_mode) && fstatfs(fd, &disk) == 0 && disk.f_type != PROC_SUPER_MAGIC &&
           disk.f_type != SYSFS_MAGIC && disk.f_type != CGROUP2_SUPER_MAGIC &&
           disk.f_type != CGROUP_SUPER_MAGIC;
}

/* How much of `len` is done this time; -1 with errno for nothing at all. */
static ssize_t share_of(int fd, size_t len)
{
    if (!is_divisible(fd))
        return (ssize_t)len;
    if (++calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    size_t most = 1 + calls % 3;
    return (ssize_t)(len < most ? len : most);
}

#define SHORTENED(name, parameters, fd, len, ...)                                                  \
    ssize_t __real_##name parameters;                                                              \
    ssize_t __wrap_##name parameters;                                                              \
    ssize_t __wrap_##name parameters                                                               \
    {                                                                                              \
        ssize_t share = share_of(fd, len);                                                         \
        return share < 0 ? -1 : __real_##name(__VA_ARGS__);                                        \
    }

SHORTENED(read, (int fd, void *bytes, size_t len), fd, len, fd, bytes, (size_t)share)
SHORTENED(write, (int fd, const void *bytes, size_t len), fd, len, fd, bytes, (size_t)share)
SHORTENED(pread64, (int fd, void *bytes, size_t len, off_t from), fd, len, fd, bytes, (size_t)share,
          from)
SHORTENED(pwrite64, (int fd, const void *bytes, size_t len, off_t from), fd, len, fd, bytes,
          (size_t)share, from)
SHORTENED(send, (int fd, const void *bytes, size_t len, int flags), fd, len, fd, bytes,
          (size_t)share, flags)
SHORTENED(recv, (int fd, void *bytes, size_t len, int flags), fd, len, fd, bytes, (size_t)share,
          flags)
