/* supervisor.c - the loop: the driver's wishes, the ends of processes, the clock.
 *
 * It ends when nothing of the run lives any more, and it ends the run when the driver or the guardian
 * is gone: it never goes on unwatched. */
#include "supervise/supervisor.h"

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

#include "rpc/channel.h"
#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/lost.h"
#include "supervise/oom.h"
#include "supervise/part_dir.h"
#include "supervise/parts.h"
#include "supervise/sweep.h"

enum {
    SWEEP_MS = 5000, /* for what does not die at once: processes deep in the kernel */
    SURVIVORS_MAX = 8,
};

bool supervisor_watch(struct supervisor *supervisor, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.fd = fd}};
    return epoll_ctl(supervisor->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void obey(struct supervisor *supervisor, const struct message *message)
{
    int32_t number = 0;
    if (message->fd >= 0)
        close(message->fd);
    if (message->len == sizeof number)
        memcpy(&number, message->body, sizeof number);
    struct tell tell;
    if (supervisor->setup.is_part && part_obey(supervisor, message))
        return;
    if (message->type == MSG_TELL && message->len == sizeof tell) {
        memcpy(&tell, message->body, sizeof tell);
        if (tell.signal > 0 && tell.signal < NSIG)
            lives_tell(supervisor, &tell);
    } else if (message->type == MSG_SIGNAL && number > 0 && number < NSIG)
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
    if (supervisor->phase == PHASE_RUNNING && !supervisor->has_failed) { /* nobody has stopped it */
        supervisor->has_failed = true;
        supervisor->failure = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        supervisor->failure.code = ROOST_ERR_ENGINE;
    }
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

void supervisor_wait(struct supervisor *supervisor, int64_t timeout)
{
    struct epoll_event events[8];
    /* The channel is asked for room only while something waits to be told. */
    if (!supervisor->is_driver_gone) {
        struct epoll_event wanted = {
            .events = outbox_is_empty(supervisor) && !supervisor->is_shipping ? EPOLLIN
                                                                              : EPOLLIN | EPOLLOUT,
            .data = {.fd = supervisor->channel}};
        (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_MOD, supervisor->channel, &wanted);
    }
    parts_flush(supervisor);
    int count = epoll_wait(supervisor->epoll, events, 8, timeout > INT32_MAX ? -1 : (int)timeout);
    for (int i = 0; i < count; i++) {
        if (events[i].data.fd == supervisor->channel) {
            hear_driver(supervisor);
        } else if (events[i].data.fd == supervisor->signals) {
            hear_signals(supervisor);
        } else if (events[i].data.fd == GUARDIAN_DRIVER) {
            (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, GUARDIAN_DRIVER, NULL);
            lose_driver(supervisor);
        } else if (control_serve(supervisor, events[i].data.fd) ||
                   parts_hear(supervisor, events[i].data.fd) ||
                   forks_hear(supervisor, events[i].data.fd)) {
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
        wait = clock_sooner(wait, part_logs_tick(supervisor));
        wait = clock_sooner(wait, control_tick(supervisor));
        outbox_flush(supervisor);
        if (supervisor->left > 0)
            supervisor_wait(supervisor, has_more ? 0 : wait);
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

/* Names what processes of the run started and this user cannot end; the first decides the status. */
static void name_survivors(struct supervisor *supervisor)
{
    struct survivor survivors[SURVIVORS_MAX];
    int32_t count = sweep_survivors(survivors, SURVIVORS_MAX);
    for (int32_t i = 0; i < count; i++) {
        struct roost_event problem = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        problem.code = ROOST_ERR_ENGINE;
        survivor_describe(&survivors[i], problem.message, sizeof problem.message);
        outbox_put(supervisor, &problem);
        if (i == 0)
            supervisor->failure = problem;
        supervisor->has_failed = true;
    }
}

/* The last words, once nothing lives; the answer is the process's exit status. */
static int finish(struct supervisor *supervisor)
{
    parts_end(supervisor);
    bool is_empty = sweep_descendants(supervisor->has_given_up ? 0 : SWEEP_MS);
    /* The kernel ends everything in a control group, also what this user may not kill: the guardian asks it. */
    if (!is_empty && !supervisor->has_given_up && supervisor->cgroup->dir < 0)
        name_survivors(supervisor);
    struct roost_event end =
        supervisor->has_failed ? supervisor->failure : outbox_event(ROOST_EVENT_FINISHED, NULL);
    end.kind = ROOST_EVENT_FINISHED;
    if (!supervisor->has_failed)
        end.exit_code = 0;
    end.ended_at = clock_read(CLOCK_REALTIME);
    outbox_record(supervisor, &end);
    lost_forget(supervisor->run_dir);
    outbox_put(supervisor, &end);
    roost_leases_free(supervisor->leases);
    supervisor->leases = NULL;
    say_farewell(supervisor);
    return is_empty ? 0 : GUARDIAN_NOT_EMPTY;
}

/* Signals come as a descriptor, those that are to be heard; no other ends a run by ending us. */
static bool open_doors(struct supervisor *supervisor)
{
    sigset_t mask, all;
    sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGQUIT);
    (void)signal(SIGPIPE, SIG_IGN); /* it would only say what write says anyway */
    supervisor->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    supervisor->epoll = epoll_create1(EPOLL_CLOEXEC);
    supervisor->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return supervisor->signals >= 0 && supervisor->epoll >= 0 && supervisor->null >= 0 &&
           supervisor_watch(supervisor, supervisor->channel, EPOLLIN) &&
           supervisor_watch(supervisor, supervisor->signals, EPOLLIN) &&
           supervisor_watch(supervisor, supervisor->guardian, EPOLLIN) &&
           supervisor_watch(supervisor, GUARDIAN_DRIVER, EPOLLIN);
}

int supervisor_main(int channel, int run_dir, int runtime_dir, int guardian, struct cgroup *cgroup)
{
    struct supervisor supervisor = {.channel = channel,
                                    .run_dir = run_dir,
                                    .runtime_dir = runtime_dir,
                                    .guardian = guardian,
                                    .cgroup = cgroup,
                                    .records = -1,
                                    .lives = -1,
                                    .control = -1,
                                    .arena = ARENA_INIT,
                                    .outbox = TEXT_INIT};
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    (void)prctl(PR_SET_NAME, "roost-super");
    supervisor.oom_seen = oom_count(cgroup->dir, "/proc");
    int status = open_doors(&supervisor) ? supervisor_prepare(&supervisor)
                                         : supervisor_refuse_doors(&supervisor, errno);
    if (status == 0) {
        if (cgroup->dir >= 0)
            outbox_say(&supervisor, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                       "guarded by the control group %s", cgroup->path);
        else
            outbox_say(&supervisor, ROOST_EVENT_NOTE, NULL, ROOST_OK,
                       "guarded by a sweep of descendants, without a control group");
        parts_check(&supervisor);
        serve(&supervisor);
        status = finish(&supervisor);
    }
    control_close(&supervisor);
    /* A guardian that was stopped must run to clean up; without one there is only us. */
    if (poll(&(struct pollfd){guardian, POLLIN, 0}, 1, 0) > 0) {
        (void)cgroup_leave(cgroup);
        if (supervisor.setup.is_part)
            part_dir_remove(run_dir);
    } else {
        (void)pidfd_send_signal(guardian, SIGCONT, NULL, 0);
    }
    roost_leases_free(supervisor.leases);
    parts_release(&supervisor);
    part_logs_release(&supervisor);
    spec_release(&supervisor.spec);
    outbox_release(&supervisor);
    arena_release(&supervisor.arena);
    return status;
}
