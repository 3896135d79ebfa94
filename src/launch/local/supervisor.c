/* supervisor.c - the loop: the driver's wishes, the ends of processes, the clock.
 *
 * It ends when nothing of the run lives any more, and it ends the run when the driver or the guardian
 * is gone: it never goes on unwatched. */
#include "launch/local/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launch/local/clock.h"
#include "launch/local/sweep.h"
#include "rpc/channel.h"

enum {
    SWEEP_MS = 5000, /* for what does not die at once: processes deep in the kernel */
    OWN_DESCRIPTORS = 64,
};

/* --- before the run --- */

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
    int64_t needed = OWN_DESCRIPTORS + supervisor->setup.process_count + port_count;
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
    bool is_good = supervisor->wants && pread(fd, supervisor->wants, size, 0) == (ssize_t)size;
    close(fd);
    return is_good;
}

static int send_ports(struct supervisor *supervisor)
{
    int32_t ports[CHANNEL_BODY_MAX / sizeof(int32_t)];
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
        supervisor->components[c].log_dir = -1;
        for (int32_t p = 0; p < spec->components[c].process_count; p++)
            supervisor->workers[spec->components[c].first_process + p] =
                (struct worker){.component = c, .rank = p, .pidfd = -1};
    }
    supervisor->left = spec->process_count;
    return true;
}

static bool watch(struct supervisor *supervisor, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    return epoll_ctl(supervisor->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
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
    supervisor->records = openat(supervisor->run_dir, "records.jsonl", flags, 0600);
    if (supervisor->records >= 0 &&
        (fallocate(supervisor->records, FALLOC_FL_KEEP_SIZE, 0, room) == 0 ||
         (errno != ENOSPC && errno != EDQUOT)))
        return 0;
    char message[160];
    snprintf(message, sizeof message, "cannot make the file of exit records ('records.jsonl'): %s",
             strerror(errno));
    return refuse_with(supervisor, ROOST_ERR_IO, message,
                       "free some space, or choose another roost.logs.dir");
}

/* Everything up to the first process; 0, or the exit status. */
static int prepare(struct supervisor *supervisor)
{
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
    if (!map_wants(supervisor, message->fd))
        return refuse_with(supervisor, ROOST_ERR_MEMORY, "out of memory", "");
    int status = open_records(supervisor);
    if (status == 0)
        status = lease_ports(supervisor);
    if (status)
        return status;
    if (!control_open(supervisor) || !watch(supervisor, supervisor->control, EPOLLIN))
        return refuse_with(supervisor, ROOST_ERR_IO, "cannot make the control socket of the run",
                           strerror(errno));
    if (!expect(supervisor, MSG_START, message))
        return 1;
    if (!spec_open(&supervisor->spec, message->fd) || !make_workers(supervisor))
        return refuse_with(supervisor, ROOST_ERR_MEMORY, "out of memory", "");
    return check_spec(supervisor)
               ? 0
               : refuse_with(supervisor, ROOST_ERR_BUG,
                             "what is to be run does not fit its own set-up", "");
}

/* --- the run --- */

static void obey(struct supervisor *supervisor, const struct message *message)
{
    int32_t number = 0;
    if (message->fd >= 0)
        close(message->fd);
    if (message->len == sizeof number)
        memcpy(&number, message->body, sizeof number);
    if (message->type == MSG_SIGNAL && number > 0 && number < NSIG)
        lives_signal(supervisor, number);
    else if (message->type == MSG_STOP)
        lives_stop(supervisor, number > 0 && number < NSIG ? number : SIGTERM, "asked to stop");
    else if (message->type == MSG_KILL)
        lives_kill(supervisor, "asked to stop at once");
}

/* By its channel or its pid: children that the driver forked may keep the channel open. Telling it
 * something may have failed before. */
static void lose_driver(struct supervisor *supervisor)
{
    supervisor->is_driver_gone = true;
    (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, supervisor->channel, NULL);
    lives_kill(supervisor, "the driver is gone");
}

static void hear_driver(struct supervisor *supervisor)
{
    struct message message;
    enum channel_result result;
    while ((result = channel_receive(supervisor->channel, &message)) == CHANNEL_OK)
        obey(supervisor, &message);
    if (result != CHANNEL_AGAIN)
        lose_driver(supervisor);
}

static void hear_signals(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    while (read(supervisor->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue; /* one may stand for many: all are reaped below */
        if (supervisor->phase == PHASE_RUNNING)
            lives_fail(supervisor, NULL, ROOST_ERR_ENGINE,
                       "the supervisor of the run was sent signal %u", info.ssi_signo);
    }
    lives_reap(supervisor);
}

static void wait_for_news(struct supervisor *supervisor, int64_t timeout)
{
    struct epoll_event events[8];
    /* The channel is asked for room only while something waits to be told. */
    if (!supervisor->is_driver_gone) {
        struct epoll_event wanted = {.events =
                                         outbox_is_empty(supervisor) ? EPOLLIN : EPOLLIN | EPOLLOUT,
                                     .data = {.fd = supervisor->channel}};
        (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_MOD, supervisor->channel, &wanted);
    }
    int count = epoll_wait(supervisor->epoll, events, 8, timeout > INT32_MAX ? -1 : (int)timeout);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == supervisor->channel) {
            hear_driver(supervisor);
        } else if (events[i].data.fd == supervisor->signals) {
            hear_signals(supervisor);
        } else if (events[i].data.fd == GUARDIAN_DRIVER) {
            (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, GUARDIAN_DRIVER, NULL);
            lose_driver(supervisor);
        } else if (control_serve(supervisor, events[i].data.fd)) {
            continue;
        } else if (events[i].data.fd == supervisor->guardian) {
            (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, supervisor->guardian, NULL);
            lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "the guardian of the run is gone");
            lives_kill(supervisor, "the guardian is gone");
        }
    }
}

static void serve(struct supervisor *supervisor)
{
    while (supervisor->left > 0) {
        bool has_more = workers_start_some(supervisor);
        int64_t wait = clock_sooner(lives_tick(supervisor), ready_tick(supervisor));
        control_tick(supervisor);
        outbox_flush(supervisor);
        if (supervisor->left > 0)
            wait_for_news(supervisor, has_more ? 0 : wait);
    }
}

/* The driver takes the last events when it can: it may be stopped, and nothing else waits any more. */
static void say_farewell(struct supervisor *supervisor)
{
    struct pollfd fds[2] = {{supervisor->channel, POLLOUT, 0}, {supervisor->guardian, POLLIN, 0}};
    for (outbox_flush(supervisor); !supervisor->is_driver_gone && !outbox_is_empty(supervisor);
         outbox_flush(supervisor)) {
        (void)poll(fds, 2, -1);
        if (fds[1].revents)
            return;
    }
}

/* The last words, once nothing lives; the answer is the process's exit status. */
static int finish(struct supervisor *supervisor)
{
    bool is_empty = sweep_descendants(supervisor->has_given_up ? 0 : SWEEP_MS);
    if (!is_empty && !supervisor->has_given_up)
        outbox_say(supervisor, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_ENGINE,
                   "some processes of the run cannot be killed");
    struct roost_event end =
        supervisor->has_failed ? supervisor->failure : outbox_event(ROOST_EVENT_FINISHED, NULL);
    end.kind = ROOST_EVENT_FINISHED;
    if (!supervisor->has_failed)
        end.exit_code = 0;
    end.ended_at = clock_read(CLOCK_REALTIME);
    outbox_record(supervisor, &end);
    outbox_put(supervisor, &end);
    roost_leases_free(supervisor->leases);
    supervisor->leases = NULL;
    say_farewell(supervisor);
    return is_empty ? 0 : GUARDIAN_NOT_EMPTY;
}

/* Signals come as descriptors; SIGPIPE would only say what write says anyway. */
static bool open_doors(struct supervisor *supervisor)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    supervisor->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    supervisor->epoll = epoll_create1(EPOLL_CLOEXEC);
    supervisor->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return supervisor->signals >= 0 && supervisor->epoll >= 0 && supervisor->null >= 0 &&
           watch(supervisor, supervisor->channel, EPOLLIN) &&
           watch(supervisor, supervisor->signals, EPOLLIN) &&
           watch(supervisor, supervisor->guardian, EPOLLIN) &&
           watch(supervisor, GUARDIAN_DRIVER, EPOLLIN);
}

int supervisor_main(int channel, int run_dir, int runtime_dir, int guardian, struct cgroup *cgroup)
{
    struct supervisor supervisor = {.channel = channel,
                                    .run_dir = run_dir,
                                    .runtime_dir = runtime_dir,
                                    .guardian = guardian,
                                    .cgroup = cgroup,
                                    .records = -1,
                                    .control = -1,
                                    .arena = ARENA_INIT,
                                    .outbox = TEXT_INIT};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "roost-super");
    int status = open_doors(&supervisor) ? prepare(&supervisor) : 1;
    if (status == 0) {
        if (cgroup->dir >= 0)
            outbox_say(&supervisor, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                       "guarded by the control group %s", cgroup->path);
        else
            outbox_say(&supervisor, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                       "guarded by a sweep of descendants: no control group can be made here");
        serve(&supervisor);
        status = finish(&supervisor);
    }
    control_close(&supervisor);
    /* A guardian that was stopped must run to clean up; without one there is only us. */
    if (poll(&(struct pollfd){guardian, POLLIN, 0}, 1, 0) > 0)
        (void)cgroup_leave(cgroup);
    else
        (void)pidfd_send_signal(guardian, SIGCONT, NULL, 0);
    roost_leases_free(supervisor.leases);
    spec_release(&supervisor.spec);
    text_release(&supervisor.outbox);
    arena_release(&supervisor.arena);
    return status;
}
