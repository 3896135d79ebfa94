/* here_ports.c - what workers of this machine need before the first of them starts: ports, room for open
 * files, and the table of their pids. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "supervise/here.h"

enum { OWN_DESCRIPTORS = 64 };

static bool read_wants(struct here *here, int fd)
{
    struct watcher *watcher = here->watcher;
    size_t count = (size_t)watcher->setup.want_count;
    here->wants = arena_zeroed(&watcher->arena, struct roost_port_want, count + 1);
    size_t size = count * sizeof *here->wants;
    bool is_good = here->wants && file_read_at(fd, here->wants, size, 0) == (ssize_t)size;
    close(fd);
    return is_good;
}

static bool make_buckets(struct here *here)
{
    int32_t count = 16;
    while (count < here->watcher->setup.process_count && count < 1 << 20)
        count *= 2;
    here->worker_of_pid = arena_array(&here->watcher->arena, int32_t, count);
    here->bucket_count = count;
    for (int32_t i = 0; here->worker_of_pid && i < count; i++)
        here->worker_of_pid[i] = -1;
    return here->worker_of_pid != NULL;
}

/* Checked before anything starts. */
static int make_room(struct here *here, int64_t needed)
{
    if (getrlimit(RLIMIT_NOFILE, &here->nofile) != 0)
        return watcher_refuse_with(here->watcher, ROOST_ERR_ENGINE,
                                   "cannot read the limit of open files", "");
    struct rlimit more = here->nofile;
    if ((int64_t)more.rlim_max < needed && more.rlim_max != RLIM_INFINITY) {
        char message[160];
        snprintf(message, sizeof message,
                 "this run needs %lld open files (one for each process and each port), but this "
                 "user may have %lld",
                 (long long)needed, (long long)more.rlim_max);
        return watcher_refuse_with(
            here->watcher, ROOST_ERR_ENGINE, message,
            "raise the hard limit: ulimit -Hn, or LimitNOFILE of the service");
    }
    more.rlim_cur = more.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &more);
    return 0;
}

static int send_ports(struct here *here)
{
    int32_t ports[AGENT_BODY_MAX / sizeof(int32_t)];
    int socket = here->watcher->outbox.socket;
    size_t filled = 0, count = (size_t)here->watcher->setup.want_count;
    for (size_t i = 0; i < count; i++) {
        ports[filled++] = roost_leases_port(here->leases, i);
        if (filled < sizeof ports / sizeof *ports && i + 1 < count)
            continue;
        enum socket_pair_result result;
        while ((result = socket_pair_send(socket, MSG_PORTS, ports, filled * sizeof *ports, -1)) ==
               SOCKET_PAIR_AGAIN)
            poll(&(struct pollfd){socket, POLLOUT, 0}, 1, 1000);
        if (result != SOCKET_PAIR_OK)
            return 1;
        filled = 0;
    }
    return 0;
}

int here_prepare(struct here *here, int wants, int32_t files_each)
{
    struct watcher *watcher = here->watcher;
    const struct setup *setup = &watcher->setup;
    if (!read_wants(here, wants) || !make_buckets(here))
        return watcher_refuse_with(watcher, ROOST_ERR_MEMORY, "out of memory", "");
    int64_t needed = OWN_DESCRIPTORS + (int64_t)files_each * setup->process_count;
    for (int32_t i = 0; i < setup->want_count; i++)
        needed += here->wants[i].count;
    int status = make_room(here, needed);
    if (status)
        return status;
    struct roost_error err;
    struct roost_port_options options = {
        .dir = setup->runtime_dir, .base = setup->port_base, .owner = setup->run_id};
    here->leases = roost_leases_new(&options, here->wants, (size_t)setup->want_count, &err);
    return here->leases ? send_ports(here) : watcher_refuse(watcher, &err);
}
