/* watcher.c - what supervisor and agent share: the loop (signals as a descriptor, epoll, the last events), and
 * before it the greeting, the setup and the spec.
 *
 * supervisor.c and agent/agent.c decide what a message, a signal or a lost process means; this file only
 * waits and reads. Before the first worker starts, every failure is reported to the driver with its reason
 * and a hint. */
#include "supervise/watcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <roost/version.h>

#include "base/cure.h"
#include "supervise/start.h"
#include "supervise/sweep.h"

enum { SURVIVORS_MAX = 8 };

int watcher_block_signals(int first, int count, bool has_children)
{
    sigset_t mask;
    sigfillset(&mask);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    for (int fd = first; fd < first + count; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
            return -1;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT);
    if (has_children)
        sigaddset(&mask, SIGCHLD);
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

void watcher_init(struct watcher *watcher, int guardian, struct cgroup *cgroup)
{
    *watcher = (struct watcher){.arena = ARENA_INIT,
                                .outbox = {.socket = GUARDIAN_SOCKET, .events = TEXT_INIT},
                                .run_dir = GUARDIAN_RUN_DIR,
                                .runtime_dir = GUARDIAN_RUNTIME_DIR,
                                .lives = -1,
                                .guardian = guardian,
                                .null = -1,
                                .signals = -1,
                                .epoll = -1,
                                .cgroup = cgroup};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "roost-super");
}

bool watcher_watch(struct watcher *watcher, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    return epoll_ctl(watcher->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void watcher_unwatch(struct watcher *watcher, int fd)
{
    (void)epoll_ctl(watcher->epoll, EPOLL_CTL_DEL, fd, NULL);
}

bool watcher_open(struct watcher *watcher)
{
    (void)signal(SIGPIPE, SIG_IGN); /* write reports the same */
    watcher->signals = watcher_block_signals(0, 0, true);
    watcher->epoll = epoll_create1(EPOLL_CLOEXEC);
    watcher->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return watcher->signals >= 0 && watcher->epoll >= 0 && watcher->null >= 0 &&
           watcher_watch(watcher, watcher->outbox.socket, EPOLLIN) &&
           watcher_watch(watcher, watcher->signals, EPOLLIN) &&
           watcher_watch(watcher, watcher->guardian, EPOLLIN) &&
           watcher_watch(watcher, GUARDIAN_DRIVER, EPOLLIN);
}

void watcher_release(struct watcher *watcher)
{
    spec_release(&watcher->spec);
    outbox_release(&watcher->outbox);
    arena_release(&watcher->arena);
}

int watcher_wait(struct watcher *watcher, int64_t timeout, int out[WATCHER_FDS_MAX])
{
    struct epoll_event events[WATCHER_FDS_MAX];
    const struct outbox *outbox = &watcher->outbox;
    /* The loop wakes for room in the socket only while something waits to be sent. */
    if (!outbox->is_closed) {
        bool has_more = !outbox_is_empty(outbox) || outbox->is_held;
        struct epoll_event wanted = {.events = has_more ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                     .data = {.fd = outbox->socket}};
        (void)epoll_ctl(watcher->epoll, EPOLL_CTL_MOD, outbox->socket, &wanted);
    }
    int count = epoll_wait(watcher->epoll, events, WATCHER_FDS_MAX,
                           timeout > INT32_MAX ? -1 : (int)timeout);
    for (int i = 0; i < count; i++)
        out[i] = events[i].data.fd;
    return count;
}

int watcher_read_signal(struct watcher *watcher)
{
    struct signalfd_siginfo info;
    return read(watcher->signals, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo
                                                                              : 0;
}

/* The driver may be stopped: this waits as long as it takes, as nothing else is left to do. */
bool watcher_await_room(struct watcher *watcher)
{
    struct pollfd fds[2] = {{watcher->outbox.socket, POLLOUT, 0}, {watcher->guardian, POLLIN, 0}};
    (void)poll(fds, 2, -1);
    return !fds[1].revents;
}

bool watcher_is_orphan(const struct watcher *watcher)
{
    return poll(&(struct pollfd){watcher->guardian, POLLIN, 0}, 1, 0) > 0;
}

void watcher_report_guard(struct watcher *watcher)
{
    if (watcher->cgroup->dir >= 0)
        outbox_report(&watcher->outbox, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                      "guarded by the control group %s", watcher->cgroup->path);
    else
        outbox_report(&watcher->outbox, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                      "guarded by a sweep of descendants, without a control group");
}

int32_t watcher_name_survivors(struct watcher *watcher, struct roost_event *out_first)
{
    struct survivor survivors[SURVIVORS_MAX];
    int32_t count = sweep_survivors(survivors, SURVIVORS_MAX);
    for (int32_t i = 0; i < count; i++) {
        struct roost_event problem = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        problem.code = ROOST_ERR_ENGINE;
        survivor_describe(&survivors[i], problem.message, sizeof problem.message);
        outbox_put(&watcher->outbox, &problem);
        if (i == 0)
            *out_first = problem;
    }
    return count;
}

/* --- refusals --- */

int watcher_refuse(struct watcher *watcher, const struct roost_error *err)
{
    (void)socket_pair_send(watcher->outbox.socket, MSG_REFUSED, err, sizeof *err, -1);
    return 1;
}

int watcher_refuse_with(struct watcher *watcher, enum roost_code code, const char *message,
                        const char *hint)
{
    struct roost_error err = {.code = code};
    snprintf(err.message, sizeof err.message, "%s", message);
    snprintf(err.hint, sizeof err.hint, "%s", hint);
    return watcher_refuse(watcher, &err);
}

int watcher_refuse_to_open(struct watcher *watcher, const char *what, int error)
{
    char message[128];
    snprintf(message, sizeof message, "cannot open %s: %s", what, strerror(error));
    return watcher_refuse_with(watcher, ROOST_ERR_IO, message,
                               cure_of_place(error, "set XDG_RUNTIME_DIR").text);
}

static int refuse_version(struct watcher *watcher)
{
    return watcher_refuse_with(watcher, ROOST_ERR_ENGINE,
                               "the roost program is not of the same version as the library",
                               "let `program` name the roost that came with this library");
}

/* --- the greeting --- */

bool watcher_expect(struct watcher *watcher, uint16_t type, struct message *out)
{
    for (;;) {
        struct pollfd fds[2] = {{watcher->outbox.socket, POLLIN, 0},
                                {watcher->guardian, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents)
            return false;
        enum socket_pair_result result = socket_pair_receive(watcher->outbox.socket, out);
        if (result == SOCKET_PAIR_AGAIN)
            continue;
        return result == SOCKET_PAIR_OK && out->type == type && out->fd >= 0;
    }
}

static bool send_hello(struct watcher *watcher)
{
    struct hello hello = {.pid = getpid(), .guardian_pid = getppid()};
    snprintf(hello.cgroup, sizeof hello.cgroup, "%s",
             watcher->cgroup->dir >= 0 ? watcher->cgroup->path : "");
    int self = pidfd_open(getpid(), 0);
    enum socket_pair_result result =
        socket_pair_send(watcher->outbox.socket, MSG_HELLO, &hello, sizeof hello, self);
    if (self >= 0)
        close(self);
    return result == SOCKET_PAIR_OK;
}

int watcher_greet(struct watcher *watcher, struct message *message)
{
    struct setup *setup = &watcher->setup;
    if (!send_hello(watcher) || !watcher_expect(watcher, MSG_SETUP, message))
        return 1;
    if (message->len != sizeof *setup)
        return refuse_version(watcher);
    memcpy(setup, message->body, sizeof *setup);
    if (strncmp(setup->version, ROOST_VERSION, sizeof setup->version) != 0)
        return refuse_version(watcher);
    return 0;
}

/* --- the spec --- */

static bool make_workers(struct watcher *watcher)
{
    const struct spec *spec = &watcher->spec;
    watcher->workers = arena_zeroed(&watcher->arena, struct worker, spec->process_count + 1);
    watcher->components =
        arena_zeroed(&watcher->arena, struct component_run, spec->component_count + 1);
    if (!watcher->workers || !watcher->components)
        return false;
    for (int32_t c = 0; c < spec->component_count; c++) {
        watcher->components[c].log_dir = watcher->components[c].forker = -1;
        watcher->components[c].left = spec->components[c].process_count;
        for (int32_t p = 0; p < spec->components[c].process_count; p++)
            watcher->workers[spec->components[c].first_process + p] =
                (struct worker){.component = c,
                                .rank = spec->processes[spec->components[c].first_process + p].rank,
                                .pidfd = -1};
    }
    watcher->left = spec->process_count;
    return true;
}

/* Setup and spec come from one driver, but neither is believed about the other. */
static bool fits_setup(const struct watcher *watcher)
{
    const struct spec *spec = &watcher->spec;
    int32_t want_count = watcher->setup.want_count;
    if (spec->process_count != watcher->setup.process_count)
        return false;
    for (int32_t i = 0; i < spec->process_count; i++)
        if (spec->processes[i].want_count > want_count ||
            spec->processes[i].first_want > want_count - spec->processes[i].want_count)
            return false;
    return true;
}

int watcher_read_spec(struct watcher *watcher, int fd)
{
    if (!spec_open(&watcher->spec, fd) || !make_workers(watcher))
        return watcher_refuse_with(watcher, ROOST_ERR_MEMORY, "out of memory", "");
    return fits_setup(watcher)
               ? start_write_long_values(watcher)
               : watcher_refuse_with(watcher, ROOST_ERR_BUG,
                                     "what is to be run does not fit its own set-up", "");
}
