/* scarce.c - a kernel that has no more descriptors, once or from then on, or a disk that takes no more
 * records, for a roost program of the tests.
 *
 * Whatever the library and the program open, and write, comes through here (-Wl,--wrap). A file beside the program, with
 * ".plan" behind its name, says "driver 7 once", "guardian 3 on" or "registry 1 on": which process (the supervisor is a fork of
 * the guardian, and counts on from there), and from the how manieth time. The plan is removed when it has come
 * to that, so that a test knows where to end. "records 5 on" lets every write of exit records fail with that
 * errno. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

int __real_open64(const char *path, int flags, ...);
int __real_openat64(int dir, const char *path, int flags, ...);

static char plan[4096];
static long wanted = -1, count; /* -1 = the plan was not read yet, 0 = nothing is refused */
static bool goes_on;
static int write_error; /* of records; 0 = none */

static void read_text(const char *path, char *out, size_t size)
{
    int fd = __real_open64(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, out, size - 1) : 0;
    out[len > 0 ? len : 0] = '\0';
    for (ssize_t i = 0; i + 1 < len; i++)
        if (out[i] == '\0')
            out[i] = ' ';
    if (fd >= 0)
        close(fd);
}

static void read_plan(void)
{
    char words[4096], role[16] = "", how[16] = "";
    ssize_t len = readlink("/proc/self/exe", plan, sizeof plan - 8);
    snprintf(plan + (len > 0 ? len : 0), 8, ".plan");
    read_text(plan, words, sizeof words);
    wanted = 0;
    if (sscanf(words, "%15s %ld %15s", role, &wanted, how) != 3)
        return;
    goes_on = strcmp(how, "on") == 0;
    if (strcmp(role, "records") == 0) {
        write_error = (int)wanted;
        wanted = 0;
        return;
    }
    read_text("/proc/self/cmdline", words, sizeof words);
    const char *own = strstr(words, "--guardian")          ? "guardian"
                      : strstr(words, "--registry-server") ? "registry"
                                                           : "driver";
    if (strcmp(role, own) != 0)
        wanted = 0;
}

static bool is_refused(void)
{
    if (wanted < 0)
        read_plan();
    if (wanted == 0 || ++count < wanted || (count > wanted && !goes_on))
        return false;
    (void)unlink(plan);
    errno = EMFILE;
    return true;
}

int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return is_refused() ? -1 : __real_open64(path, flags, mode);
}

int __wrap_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return is_refused() ? -1 : __real_openat64(dir, path, flags, mode);
}

#define SCARCE(name, parameters, ...)                                                              \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return is_refused() ? -1 : __real_##name(__VA_ARGS__);                                     \
    }

SCARCE(socket, (int domain, int type, int protocol), domain, type, protocol)
SCARCE(socketpair, (int domain, int type, int protocol, int fds[2]), domain, type, protocol, fds)
SCARCE(accept4, (int fd, struct sockaddr *address, socklen_t *len, int flags), fd, address, len,
       flags)
SCARCE(pidfd_open, (pid_t pid, unsigned flags), pid, flags)
SCARCE(epoll_create1, (int flags), flags)
SCARCE(signalfd, (int fd, const sigset_t *mask, int flags), fd, mask, flags)
SCARCE(memfd_create, (const char *name, unsigned flags), name, flags)
SCARCE(inotify_init1, (int flags), flags)

ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    char link[64], path[4096] = "";
    if (wanted < 0)
        read_plan();
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (!write_error || readlink(link, path, sizeof path - 1) < 0 ||
        !strstr(path, "/records.jsonl"))
        return __real_write(fd, bytes, len);
    errno = write_error;
    return -1;
}
