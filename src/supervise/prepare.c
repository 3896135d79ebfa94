/* prepare.c - a supervisor before its first process: hears what is wanted, leases the ports, opens the
 * control socket and the records. Whatever cannot be had is told to the driver, with its cure. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include <roost/version.h>

#include "base/cure.h"
#include "base/file.h"
#include "rpc/channel.h"
#include "supervise/lost.h"
#include "supervise/parts.h"
#include "supervise/supervisor.h"

enum { OWN_DESCRIPTORS = 64 };

static int refuse(struct supervisor *supervisor, const struct roost_error *err)
{
    (void)channel_send(supervisor->channel, MSG_REFUSED, err, sizeof *err, -1);
    return 1;
}

static int refuse_with(struct supervisor *supervisor, enum roost_code code, const char *message,
                       const char *hint)
{
    struct roost_error err = {.code = code};
    snprintf(err.message, sizeof err.message, "%s", message);
    snprintf(err.hint, sizeof err.hint, "%s", hint);
    return refuse(supervisor, &err);
}

/* A descriptor that cannot be had, or a place that cannot be written to: errno says which. */
static int refuse_to_open(struct supervisor *supervisor, const char *what, int error)
{
    char message[128];
    snprintf(message, sizeof message, "cannot open %s: %s", what, strerror(error));
    return refuse_with(supervisor, ROOST_ERR_IO, message,
                       cure_of_place(error, "set XDG_RUNTIME_DIR").text);
}

int supervisor_refuse_doors(struct supervisor *supervisor, int error)
{
    return refuse_to_open(supervisor, "what the supervisor of the run needs", error);
}

/* Waits for a message of this type; false when the driver or the guardian is gone instead. */
static bool expect(struct supervisor *supervisor, uint16_t type, struct message *out)
{
    for (;;) {
        struct pollfd fds[2] = {{supervisor->channel, POLLIN, 0},
                                {supervisor->guardian, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            return false;
        enum channel_result result = channel_receive(supervisor->channel, out);
        if (result == CHANNEL_AGAIN)
            continue;
        return result == CHANNEL_OK && out->type == type && out->fd >= 0;
    }
}

/* Room for a pidfd a worker and a socket a port, said before anything starts. */
static int make_room(struct supervisor *supervisor, int64_t port_count)
{
    /* A part reads the logs as well. */
    int64_t each = supervisor->setup.is_part ? 3 : 1;
    int64_t needed = OWN_DESCRIPTORS + each * supervisor->setup.process_count + port_count;
    if (getrlimit(RLIMIT_NOFILE, &supervisor->nofile) != 0)
        return refuse_with(supervisor, ROOST_ERR_ENGINE, "cannot read the limit of open files", "");
    struct rlimit more = supervisor->nofile;
    if ((int64_t)more.rlim_max < needed && more.rlim_max != RLIM_INFINITY) {
        char message[160];
        snprintf(message, sizeof message,
                 "this run needs %lld open files (one for each process and each port), but this "
                 "user may have %lld",
                 (long long)needed, (long long)more.rlim_max);
        return refuse_with(supervisor, ROOST_ERR_ENGINE, message,
                           "raise the hard limit: ulimit -Hn, or LimitNOFILE of the service");
    }
    more.rlim_cur = more.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &more);
    return 0;
}

static bool map_wants(struct supervisor *supervisor, int fd)
{
    size_t count = (size_t)supervisor->setup.want_count;
    supervisor->wants = arena_zeroed(&supervisor->arena, struct roost_port_want, count + 1);
    size_t size = count * sizeof *supervisor->wants;
    bool is_good =
        supervisor->wants && file_read_at(fd, supervisor->wants, size, 0) == (ssize_t)size;
    close(fd);
    return is_good;
}

static int send_ports(struct supervisor *supervisor)
{
    int32_t ports[PART_BODY_MAX / sizeof(int32_t)];
    size_t filled = 0, count = (size_t)supervisor->setup.want_count;
    for (size_t i = 0; i < count; i++) {
        ports[filled++] = roost_leases_port(supervisor->leases, i);
        if (filled < sizeof ports / sizeof *ports && i + 1 < count)
            continue;
        enum channel_result result;
        while ((result = channel_send(supervisor->channel, MSG_PORTS, ports, filled * sizeof *ports,
                                      -1)) == CHANNEL_AGAIN)
            poll(&(struct pollfd){supervisor->channel, POLLOUT, 0}, 1, 1000);
        if (result != CHANNEL_OK)
            return 1;
        filled = 0;
    }
    return 0;
}

static int lease_ports(struct supervisor *supervisor)
{
    int64_t total = 0;
    for (int32_t i = 0; i < supervisor->setup.want_count; i++)
        total += supervisor->wants[i].count;
    int status = make_room(supervisor, total);
    if (status)
        return status;
    struct roost_error err;
    struct roost_port_options options = {.dir = supervisor->setup.runtime_dir,
                                         .base = supervisor->setup.port_base,
                                         .owner = supervisor->setup.run_id};
    supervisor->leases =
        roost_leases_new(&options, supervisor->wants, (size_t)supervisor->setup.want_count, &err);
    return supervisor->leases ? send_ports(supervisor) : refuse(supervisor, &err);
}

static bool say_hello(struct supervisor *supervisor)
{
    struct hello hello = {.pid = getpid(), .guardian_pid = getppid()};
    snprintf(hello.cgroup, sizeof hello.cgroup, "%s",
             supervisor->cgroup->dir >= 0 ? supervisor->cgroup->path : "");
    int self = pidfd_open(getpid(), 0);
    enum channel_result result =
        channel_send(supervisor->channel, MSG_HELLO, &hello, sizeof hello, self);
    if (self >= 0)
        close(self);
    return result == CHANNEL_OK;
}

static bool make_workers(struct supervisor *supervisor)
{
    const struct spec *spec = &supervisor->spec;
    int32_t buckets = 16;
    while (buckets < spec->process_count && buckets < 1 << 20)
        buckets *= 2;
    supervisor->bucket_count = buckets;
    supervisor->workers = arena_zeroed(&supervisor->arena, struct worker, spec->process_count + 1);
    supervisor->components =
        arena_zeroed(&supervisor->arena, struct component_run, spec->component_count + 1);
    supervisor->worker_of_pid = arena_array(&supervisor->arena, int32_t, buckets);
    if (!supervisor->workers || !supervisor->components || !supervisor->worker_of_pid)
        return false;
    for (int32_t i = 0; i < buckets; i++)
        supervisor->worker_of_pid[i] = -1;
    for (int32_t c = 0; c < spec->component_count; c++) {
        supervisor->components[c].log_dir = supervisor->components[c].forker = -1;
        for (int32_t p = 0; p < spec->components[c].process_count; p++)
            supervisor->workers[spec->components[c].first_process + p] =
                (struct worker){.component = c,
                                .rank = spec->processes[spec->components[c].first_process + p].rank,
                                .pidfd = -1};
    }
    supervisor->left = spec->process_count;
    return !supervisor->setup.is_part || part_prepare(supervisor);
}

/* Both come from one driver, but neither is believed about the other. */
static bool check_spec(const struct supervisor *supervisor)
{
    const struct spec *spec = &supervisor->spec;
    if (spec->process_count != supervisor->setup.process_count)
        return false;
    for (int32_t i = 0; i < spec->process_count; i++)
        if (spec->processes[i].want_count > supervisor->setup.want_count ||
            spec->processes[i].first_want >
                supervisor->setup.want_count - spec->processes[i].want_count)
            return false;
    return true;
}

/* The file of exit records, with room for one of every process: a disk that workers fill up later
 * does not keep us from telling how they ended. */
static int open_records(struct supervisor *supervisor)
{
    enum { RECORD_LEN = 256 };
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    off_t room = (off_t)RECORD_LEN * (supervisor->setup.process_count + 1);
    supervisor->records = openat(supervisor->run_dir, RUN_RECORDS, flags, 0600);
    if (supervisor->records >= 0 &&
        (fallocate(supervisor->records, FALLOC_FL_KEEP_SIZE, 0, room) == 0 ||
         (errno != ENOSPC && errno != EDQUOT))) {
        supervisor->lives = lost_open(supervisor->run_dir, supervisor->setup.process_count);
        if (supervisor->lives >= 0)
            return 0;
    }
    char message[160];
    int error = errno;
    snprintf(message, sizeof message, "cannot make the file of exit records ('records.jsonl'): %s",
             strerror(error));
    return refuse_with(supervisor, ROOST_ERR_IO, message,
                       cure_of_place(error, "choose another roost.logs.dir").text);
}

static int open_control(struct supervisor *supervisor)
{
    if (control_open(supervisor) && supervisor_watch(supervisor, supervisor->control, EPOLLIN))
        return 0;
    return refuse_to_open(supervisor, "the control socket of the run", errno);
}

/* A run on this machine: from what is wanted, which came with the message, to what is to be started. */
static int prepare_all(struct supervisor *supervisor, struct message *message)
{
    if (!map_wants(supervisor, message->fd))
        return refuse_with(supervisor, ROOST_ERR_MEMORY, "out of memory", "");
    int status = open_records(supervisor);
    if (status == 0)
        status = lease_ports(supervisor);
    if (status == 0)
        status = open_control(supervisor);
    return status ? status : expect(supervisor, MSG_START, message) ? 0 : 1;
}

/* A part of one: its ports are this node's; records are kept, and questions answered, elsewhere. */
static int prepare_part(struct supervisor *supervisor, struct message *message)
{
    char link[32];
    char *path = supervisor->setup.runtime_dir;
    snprintf(link, sizeof link, "/proc/self/fd/%d", supervisor->runtime_dir);
    ssize_t len = readlink(link, path, sizeof supervisor->setup.runtime_dir - 1);
    path[len > 0 ? len : 0] = '\0';
    if (!map_wants(supervisor, message->fd))
        return refuse_with(supervisor, ROOST_ERR_MEMORY, "out of memory", "");
    int status = lease_ports(supervisor);
    return status ? status : expect(supervisor, MSG_START, message) ? 0 : 1;
}

/* A run on several nodes: its parts lease the ports. */
static int prepare_parts(struct supervisor *supervisor, struct message *message)
{
    int status = open_records(supervisor);
    if (status) {
        close(message->fd);
        return status;
    }
    if (!parts_open(supervisor, message->fd)) {
        char words[160];
        snprintf(words, sizeof words, "cannot start the bridge to the nodes: %s", strerror(errno));
        return refuse_with(supervisor, ROOST_ERR_ENGINE, words,
                           "set ROOST_PYTHON to a Python that has roost and ray");
    }
    return parts_relay(supervisor, message) ? open_control(supervisor) : 1;
}

/* Everything up to the first process; 0, or the exit status. */
int supervisor_prepare(struct supervisor *supervisor)
{
    int status;
    struct message *message = arena_array(&supervisor->arena, struct message, 1);
    if (!message || !say_hello(supervisor) || !expect(supervisor, MSG_SETUP, message))
        return 1;
    if (message->len != sizeof supervisor->setup)
        return refuse_with(supervisor, ROOST_ERR_ENGINE,
                           "the roost program is not of the same version as the library",
                           "let `program` name the roost that came with this library");
    memcpy(&supervisor->setup, message->body, sizeof supervisor->setup);
    if (strncmp(supervisor->setup.version, ROOST_VERSION, sizeof supervisor->setup.version) != 0)
        return refuse_with(supervisor, ROOST_ERR_ENGINE,
                           "the roost program is not of the same version as the library",
                           "let `program` name the roost that came with this library");
    status = supervisor->setup.part_count > 0 ? prepare_parts(supervisor, message)
             : supervisor->setup.is_part      ? prepare_part(supervisor, message)
                                              : prepare_all(supervisor, message);
    if (status)
        return status;
    if (!spec_open(&supervisor->spec, message->fd) || !make_workers(supervisor))
        return refuse_with(supervisor, ROOST_ERR_MEMORY, "out of memory", "");
    return check_spec(supervisor)
               ? 0
               : refuse_with(supervisor, ROOST_ERR_BUG,
                             "what is to be run does not fit its own set-up", "");
}
