/* supervisor.c - the supervisor's process: its start, its loop, its end.
 *
 * The loop serves the driver, the signals, the host and the clock. It ends when nothing of the run lives
 * any more. When driver or guardian is gone, the supervisor ends the run: it never goes on unwatched. */
#include "supervise/supervisor.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/lost.h"
#include "supervise/sweep.h"

enum { SWEEP_MS = 5000 }; /* for what does not die at once: processes deep in the kernel */

/* --- what comes --- */

static void obey(struct supervisor *supervisor, const struct message *message)
{
    int32_t number = 0;
    struct life_request request;
    if (message->fd >= 0)
        close(message->fd);
    if (message->len == sizeof number)
        memcpy(&number, message->body, sizeof number);
    if (message->type == MSG_SIGNAL_ONE && message->len == sizeof request) {
        memcpy(&request, message->body, sizeof request);
        if (request.signal > 0 && request.signal < NSIG)
            lives_signal_one(supervisor, &request);
    } else if (message->type == MSG_SIGNAL && number > 0 && number < NSIG)
        lives_signal_all(supervisor, number);
    else if (message->type == MSG_STOP)
        lives_stop(supervisor, number > 0 && number < NSIG ? number : SIGTERM, "asked to stop");
    else if (message->type == MSG_KILL)
        lives_kill(supervisor, "asked to stop at once");
    else if (message->type == MSG_CLOSE)
        lives_close(supervisor, number);
    else if (message->type == MSG_AGENT && supervisor->host->pass_on)
        supervisor->host->pass_on(supervisor, message->body, message->len);
}

/* The driver is gone, by its socket or by its pidfd: children that it forked may keep the socket open. An
 * event may have failed to be sent before. */
static void lose_driver(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    watcher->outbox.is_closed = true;
    watcher_unwatch(watcher, watcher->outbox.socket);
    if (supervisor->phase == PHASE_RUNNING &&
        !supervisor->has_failed) { /* it was not stopped before */
        supervisor->has_failed = true;
        supervisor->failure = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        supervisor->failure.code = ROOST_ERR_ENGINE;
    }
    lives_kill(supervisor, "the driver is gone");
}

static void read_driver(struct supervisor *supervisor)
{
    struct message message;
    enum socket_pair_result result;
    while ((result = socket_pair_receive(supervisor->watcher.outbox.socket, &message)) ==
           SOCKET_PAIR_OK)
        obey(supervisor, &message);
    if (result != SOCKET_PAIR_AGAIN)
        lose_driver(supervisor);
}

static void read_signals(struct supervisor *supervisor)
{
    int number;
    while ((number = watcher_read_signal(&supervisor->watcher)))
        if (number != SIGCHLD && supervisor->phase == PHASE_RUNNING)
            lives_fail(supervisor, NULL, ROOST_ERR_ENGINE,
                       "the supervisor of the run was sent signal %d", number);
    supervisor->host->reap(supervisor); /* one SIGCHLD may stand for many */
}

static void lose_guardian(struct supervisor *supervisor)
{
    watcher_unwatch(&supervisor->watcher, supervisor->watcher.guardian);
    lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "the guardian of the run is gone");
    lives_kill(supervisor, "the guardian is gone");
}

static void serve_fd(struct supervisor *supervisor, int fd)
{
    struct watcher *watcher = &supervisor->watcher;
    if (fd == watcher->outbox.socket) {
        read_driver(supervisor);
    } else if (fd == watcher->signals) {
        read_signals(supervisor);
    } else if (fd == GUARDIAN_DRIVER) {
        watcher_unwatch(watcher, fd);
        lose_driver(supervisor);
    } else if (!control_serve(supervisor, fd) && !supervisor->host->serve(supervisor, fd) &&
               fd == watcher->guardian) {
        lose_guardian(supervisor);
    }
}

void supervisor_wait(struct supervisor *supervisor, int64_t timeout)
{
    int fds[WATCHER_FDS_MAX];
    supervisor->host->flush(supervisor);
    int count = watcher_wait(&supervisor->watcher, timeout, fds);
    for (int i = 0; i < count; i++)
        serve_fd(supervisor, fds[i]);
}

/* --- the run --- */

static void serve(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    while (watcher->left > 0) {
        bool has_more = order_start_some(supervisor);
        int64_t wait = clock_sooner(services_tick(supervisor), lives_tick(supervisor));
        wait = clock_sooner(wait, ready_tick(supervisor));
        wait = clock_sooner(wait, control_tick(supervisor));
        wait = clock_sooner(wait, log_recorder_tick(watcher->recorder));
        outbox_flush(&watcher->outbox);
        if (watcher->outbox.has_lost && supervisor->phase != PHASE_KILLING) {
            lives_kill(supervisor, ""); /* a driver that misses an event gets no more */
            continue;
        }
        if (watcher->left > 0)
            supervisor_wait(supervisor, has_more ? 0 : wait);
    }
}

/* The driver takes the last events when it can: it may be stopped, and nothing else waits any more. */
static void send_last_events(struct watcher *watcher)
{
    for (outbox_flush(&watcher->outbox);
         !watcher->outbox.is_closed && !outbox_is_empty(&watcher->outbox);
         outbox_flush(&watcher->outbox))
        if (!watcher_await_room(watcher))
            return;
}

/* Ends what workers left behind; false when some of it cannot be ended. */
static bool sweep(struct supervisor *supervisor)
{
    if (sweep_descendants(supervisor->has_given_up ? 0 : SWEEP_MS))
        return true;
    /* The kernel ends everything in a control group, also what this user may not kill: the guardian asks it
     * to. */
    if (!supervisor->has_given_up && supervisor->watcher.cgroup->dir < 0 &&
        watcher_name_survivors(&supervisor->watcher, &supervisor->failure) > 0)
        supervisor->has_failed = true;
    return false;
}

/* Before the end of the run is known: who waits for it may read the times. */
static void stop_recording(struct watcher *watcher)
{
    log_recorder_free(watcher->recorder);
    watcher->recorder = NULL;
}

/* The last events, once nothing lives; the answer is the process's exit status. */
static int finish(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    supervisor->host->end(supervisor);
    bool is_empty = sweep(supervisor);
    stop_recording(watcher);
    struct roost_event end =
        supervisor->has_failed ? supervisor->failure : outbox_event(ROOST_EVENT_FINISHED, NULL);
    end.kind = ROOST_EVENT_FINISHED;
    if (!supervisor->has_failed)
        end.exit_code = 0;
    end.ended_at = clock_read(CLOCK_REALTIME);
    records_add(supervisor, &end);
    lost_forget(watcher->run_dir);
    outbox_put(&watcher->outbox, &end);
    supervisor->host->release(
        supervisor); /* leased ports are free before the driver takes the last event */
    send_last_events(watcher);
    return is_empty ? 0 : GUARDIAN_NOT_EMPTY;
}

/* Everything up to the first worker; 0, or the exit status. */
static int prepare(struct supervisor *supervisor,
                   const struct host *(*choose_host)(const struct setup *setup))
{
    struct watcher *watcher = &supervisor->watcher;
    if (!watcher_open(watcher))
        return watcher_refuse_to_open(watcher, "what the supervisor of the run needs", errno);
    struct message *message = arena_array(&watcher->arena, struct message, 1);
    int status = message ? watcher_greet(watcher, message) : 1;
    if (status)
        return status;
    supervisor->host = choose_host(&watcher->setup);
    status = records_open(supervisor);
    if (status) {
        close(message->fd);
        return status;
    }
    watcher->recorder = log_recorder_new(watcher->run_dir);
    status = supervisor->host->prepare(supervisor, message);
    return status ? status : watcher_read_spec(watcher, message->fd);
}

int supervisor_main(int guardian, struct cgroup *cgroup,
                    const struct host *(*choose_host)(const struct setup *setup))
{
    struct supervisor supervisor = {.records = -1, .control = -1};
    struct watcher *watcher = &supervisor.watcher;
    watcher_init(watcher, guardian, cgroup);
    int status = prepare(&supervisor, choose_host);
    if (status == 0) {
        watcher_report_guard(watcher);
        supervisor.host->check(&supervisor);
        serve(&supervisor);
        status = finish(&supervisor);
    }
    control_close(&supervisor);
    if (supervisor.host)
        supervisor.host->release(&supervisor);
    /* A guardian that was stopped must run to clean up; without one this process does it. */
    if (watcher_is_orphan(watcher))
        (void)cgroup_leave(cgroup);
    else
        (void)pidfd_send_signal(guardian, SIGCONT, NULL, 0);
    stop_recording(watcher);
    watcher_release(watcher);
    return status;
}
