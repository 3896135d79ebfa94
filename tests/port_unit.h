/* port_unit.h - a network, a lease directory and children of a test's own. */
#ifndef TESTS_PORT_UNIT_H
#define TESTS_PORT_UNIT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <roost/port.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit.h"

static char world[64];

/* A network namespace with nothing in it but loopback, so that nobody else's ports disturb a test.
 * Without the right to make one the tests use the machine's own network. */
static inline bool enter_own_network(void)
{
    if (unshare(CLONE_NEWNET) != 0)
        return false;
    struct ifreq lo = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    lo.ifr_flags = IFF_UP;
    bool is_up = ioctl(fd, SIOCSIFFLAGS, &lo) == 0;
    close(fd);
    return is_up;
}

static inline const char *in_world(const char *name)
{
    static char paths[32][256];
    static int next;
    next = (next + 1) % 32;
    snprintf(paths[next], sizeof paths[next], "%s/%s", world, name);
    return paths[next];
}

static inline int remove_tree(const char *path)
{
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    return system(command);
}

static inline int make_world(void **state)
{
    (void)state;
    snprintf(world, sizeof world, "/tmp/roost-port-XXXXXX");
    return mkdtemp(world) ? 0 : -1;
}

static inline int drop_world(void **state)
{
    (void)state;
    return remove_tree(world);
}

/* A made-up /proc whose kernel keeps `range` for itself. */
static inline const char *fake_proc(const char *range, const char *reserved)
{
    const char *const folders[] = {"proc", "proc/sys", "proc/sys/net", "proc/sys/net/ipv4"};
    for (size_t i = 0; i < ROWS(folders); i++)
        mkdir(in_world(folders[i]), 0700);
    const char *const files[] = {"ip_local_port_range", range, "ip_local_reserved_ports", reserved};
    for (size_t i = 0; i < 4; i += 2) {
        char name[96];
        snprintf(name, sizeof name, "proc/sys/net/ipv4/%s", files[i]);
        FILE *file = fopen(in_world(name), "w");
        assert_non_null(file);
        fputs(files[i + 1], file);
        fclose(file);
    }
    return in_world("proc");
}

static inline struct roost_leases *lease(const struct roost_port_options *options, int32_t count,
                                         struct roost_error *err)
{
    return roost_leases_new(options, &(struct roost_port_want){count, false}, 1, err);
}

/* A socket bound as a server would; -1 when it is refused. */
static inline int bind_to(int family, int type, const void *address, int32_t port, bool is_reused,
                          bool is_v6_only)
{
    struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(family, type | SOCK_CLOEXEC, 0), on = is_reused, only = is_v6_only;
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET)
        memcpy(&in4.sin_addr, address, sizeof in4.sin_addr);
    else
        memcpy(&in6.sin6_addr, address, sizeof in6.sin6_addr);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (bind(fd, family == AF_INET ? (void *)&in4 : (void *)&in6,
             family == AF_INET ? sizeof in4 : sizeof in6) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline int bind_loopback(int32_t port, bool is_reused)
{
    struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    return bind_to(AF_INET, SOCK_STREAM, &loopback, port, is_reused, false);
}

/* In a child: a test that fails leaves nobody behind. */
static inline void die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static inline int status_of(pid_t child)
{
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

/* Names in the lease directory that end in .ports. */
static inline int count_lease_files(const char *dir)
{
    int count = 0;
    DIR *entries = opendir(dir);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        count += strstr(entry->d_name, ".ports") != NULL;
    if (entries)
        closedir(entries);
    return count;
}

static inline int count_open_files(void)
{
    int count = 0;
    DIR *entries = opendir("/proc/self/fd");
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

#endif
