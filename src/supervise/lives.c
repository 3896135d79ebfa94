/* lives.c - how lives end and what follows: a record, another life, or the end of the run.
 *
 * Only this file reaps. A pid is signalled only while its process has not been reaped, so the number
 * cannot belong to anybody else. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/oom.h"
#include "supervise/parts.h"
#include "supervise/proc.h"

enum {
    REST_FIRST_MS = 100, /* doubled by every quick end in a row */
    REST_MOST_MS = 10000,
    QUICK_MS = 10000, /* a life shorter than this ended quickly */
    QUICK_MOST = 5,   /* in a row, for restart: always */
    KILL_MS = 5000,   /* for killed processes to be gone */
};

/* --- signals --- */

static void signal_worker(struct supervisor *supervisor, const struct worker *worker,
                          int32_t number)
{
    if (supervisor->parts) {
        parts_signal(supervisor, worker, number);
        return;
    }
    /* Its whole group: a worker's shell or launcher passes nothing on. It leads a session of its own,
     * so the group has its number. */
    if (kill(-worker->pid, number) == 0 || errno != ESRCH)
        return;
    /* One that was forked leads nobody until it has its session (see forks.h): then it is alone. */
    if (worker->pidfd >= 0)
        (void)pidfd_send_signal(worker->pidfd, number, NULL, 0);
    else
        (void)kill(worker->pid, number);
}

void lives_signal(struct supervisor *supervisor, int32_t number)
{
    for (int32_t i = 0; i < supervisor->spec.process_count; i++)
        if (supervisor->workers[i].state == WORKER_RUNNING)
            signal_worker(supervisor, &supervisor->workers[i], number);
}

void lives_tell(struct supervisor *supervisor, const struct tell *tell)
{
    struct worker *worker = worker_at(supervisor, tell->component, tell->rank);
    if (!worker || worker->state != WORKER_RUNNING || (tell->life && tell->life != worker->life))
        return;
    if (tell->signal == SIGKILL)
        worker->was_told = true;
    signal_worker(supervisor, worker, tell->signal);
}

/* Tells everybody to end; a stopped process must run to hear it. */
static void tell_all(struct supervisor *supervisor, int32_t number)
{
    for (int32_t i = 0; i < supervisor->spec.process_count; i++) {
        struct worker *worker = &supervisor->workers[i];
        if (worker->state == WORKER_RESTING || worker->state == WORKER_WAITING ||
            worker->state == WORKER_FORKING) {
            if (worker->state == WORKER_FORKING)
                close(worker->driver_end);
            worker->state = WORKER_ENDED;
            supervisor->left--;
        } else if (worker->state == WORKER_RUNNING || worker->state == WORKER_ASKED) {
            worker->was_told = true;
            signal_worker(supervisor, worker, number);
            if (number != SIGKILL)
                signal_worker(supervisor, worker, SIGCONT);
        }
    }
}

/* A run that is ended before its time, and not by a failure, ends as if by this signal. */
static void end_by(struct supervisor *supervisor, int32_t number)
{
    if (supervisor->has_failed || supervisor->phase != PHASE_RUNNING)
        return;
    supervisor->has_failed = true;
    supervisor->failure = outbox_event(ROOST_EVENT_FINISHED, NULL);
    supervisor->failure.signal = number;
}

void lives_stop(struct supervisor *supervisor, int32_t number, const char *why)
{
    if (supervisor->phase != PHASE_RUNNING)
        return;
    end_by(supervisor, number);
    if (supervisor->setup.grace_ms < 0) {
        lives_kill(supervisor, why);
        return;
    }
    supervisor->phase = PHASE_STOPPING;
    supervisor->is_start_over = true;
    supervisor->stop_signal = number;
    supervisor->kill_at = clock_ms() + supervisor->setup.grace_ms;
    outbox_say(supervisor, ROOST_EVENT_STOPPING, NULL, ROOST_OK, "%s", why);
    tell_all(supervisor, number);
}

void lives_kill(struct supervisor *supervisor, const char *why)
{
    if (supervisor->phase == PHASE_KILLING)
        return;
    end_by(supervisor, SIGKILL);
    supervisor->phase = PHASE_KILLING;
    supervisor->is_start_over = true;
    supervisor->give_up_at = clock_ms() + (supervisor->parts ? PARTS_SILENT_MS : KILL_MS);
    outbox_say(supervisor, ROOST_EVENT_STOPPING, NULL, ROOST_OK, "%s", why);
    tell_all(supervisor, SIGKILL);
    if (supervisor->setup.is_part)
        part_be_over(supervisor);
}

/* --- failures --- */

void lives_fail(struct supervisor *supervisor, const struct worker *worker, enum roost_code code,
                const char *format, ...)
{
    struct roost_event event = outbox_event(ROOST_EVENT_PROBLEM, worker);
    va_list list;
    event.code = code;
    va_start(list, format);
    vsnprintf(event.message, sizeof event.message, format, list);
    va_end(list);
    if (supervisor->setup.is_part) { /* what follows is decided elsewhere */
        event.kind = (enum roost_event_kind)EVENT_FAILED;
        outbox_put(supervisor, &event);
        return;
    }
    outbox_put(supervisor, &event);
    if (!supervisor->has_failed && supervisor->phase == PHASE_RUNNING) {
        supervisor->has_failed = true;
        supervisor->failure = event;
    }
    lives_stop(supervisor, SIGTERM, "");
}

/* A process that will not live again has failed. */
static void fail_worker(struct supervisor *supervisor, const struct worker *worker,
                        const struct roost_event *event)
{
    if (supervisor->phase != PHASE_RUNNING || supervisor->setup.is_part)
        return; /* what comes after the first failure, or after a stop, is its consequence */
    if (!supervisor->has_failed) {
        supervisor->has_failed = true;
        supervisor->failure = *event;
    }
    if (supervisor->setup.keeps_going)
        return;
    char why[128];
    snprintf(why, sizeof why, "%s/%d failed", worker_component(supervisor, worker)->name,
             worker->rank);
    lives_stop(supervisor, SIGTERM, why);
}

/* --- ends --- */

static bool is_failure(const struct roost_event *event)
{
    return event->exit_code != 0;
}

/* Whether another life follows this one. */
static bool may_live_again(const struct supervisor *supervisor, const struct worker *worker,
                           const struct roost_event *event)
{
    const struct spec_component *component = worker_component(supervisor, worker);
    if (supervisor->phase != PHASE_RUNNING || supervisor->setup.is_part)
        return false;
    if (component->restart == RESTART_ALWAYS)
        return worker->quick_ends < QUICK_MOST;
    return component->restart == RESTART_ON_FAILURE && is_failure(event) &&
           worker->life <= component->restart_max;
}

static void rest(struct supervisor *supervisor, struct worker *worker)
{
    int64_t delay = REST_FIRST_MS;
    for (int32_t i = 1; i < worker->quick_ends && delay < REST_MOST_MS; i++)
        delay *= 2;
    delay = delay > REST_MOST_MS ? REST_MOST_MS : delay;
    worker->state = WORKER_RESTING;
    worker->restart_at = clock_ms() + delay;
    struct roost_event event = outbox_event(ROOST_EVENT_RESTARTING, worker);
    event.delay_ms = (int32_t)delay;
    outbox_put(supervisor, &event);
}

/* Whether the kernel has killed once more than we know of. Nothing but its counter tells, so whoever is
 * killed next by an unknown hand is taken for the one. */
static bool is_out_of_memory(struct supervisor *supervisor)
{
    int64_t count = oom_count(supervisor->cgroup->dir, "/proc");
    if (supervisor->oom_seen < 0 || count <= supervisor->oom_seen)
        return false;
    supervisor->oom_seen++;
    return true;
}

static struct roost_event describe_end(struct supervisor *supervisor, const struct worker *worker,
                                       const siginfo_t *info)
{
    struct roost_event event = outbox_event(ROOST_EVENT_ENDED, worker);
    event.ended_at = clock_read(CLOCK_REALTIME);
    event.lasted = clock_read(CLOCK_MONOTONIC) - worker->started;
    if (info->si_code == CLD_EXITED) {
        event.exit_code = info->si_status;
        event.end = ROOST_END_EXITED;
    } else {
        event.signal = info->si_status;
        event.has_core = info->si_code == CLD_DUMPED;
        bool is_ours = event.signal == SIGKILL || event.signal == supervisor->stop_signal;
        if (worker->was_told && is_ours)
            event.end = ROOST_END_KILLED;
        else if (event.signal == SIGKILL && is_out_of_memory(supervisor))
            event.end = ROOST_END_OOM;
        else
            event.end = ROOST_END_CRASHED;
    }
    return event;
}

/* A life is over: told, recorded, forgotten. */
static void close_life(struct supervisor *supervisor, struct worker *worker,
                       const struct roost_event *event)
{
    if (!supervisor->parts)
        worker_forget_pid(supervisor, worker);
    if (worker->pidfd >= 0)
        close(worker->pidfd);
    worker->pidfd = -1;
    worker->pid = 0;
    supervisor->alive--;
    outbox_put(supervisor, event);
    outbox_record(supervisor, event);
}

void lives_ended(struct supervisor *supervisor, struct worker *worker,
                 const struct roost_event *event)
{
    worker->quick_ends = event->lasted / 1000000 < QUICK_MS ? worker->quick_ends + 1 : 0;
    close_life(supervisor, worker, event);
    worker_look_at_disk(supervisor, worker);
    if (may_live_again(supervisor, worker, event)) {
        rest(supervisor, worker);
        return;
    }
    worker->state = WORKER_ENDED;
    supervisor->left--;
    if (is_failure(event)) {
        fail_worker(supervisor, worker, event);
    } else if (worker_component(supervisor, worker)->restart == RESTART_ALWAYS &&
               supervisor->phase == PHASE_RUNNING && !supervisor->setup.is_part) {
        lives_fail(supervisor, worker, ROOST_ERR_WORKER,
                   "it ended %d times in a row within %d seconds of its start", QUICK_MOST,
                   QUICK_MS / 1000);
    }
    ready_ended(supervisor, worker);
}

static void end_life(struct supervisor *supervisor, struct worker *worker, const siginfo_t *info)
{
    struct roost_event event = describe_end(supervisor, worker, info);
    if (supervisor->setup.is_part)
        ready_look_last(supervisor, worker);
    lives_ended(supervisor, worker, &event);
}

void lives_lose(struct supervisor *supervisor, struct worker *worker, const char *why)
{
    if (worker->state == WORKER_ENDED)
        return;
    if (worker->state == WORKER_ASKED)
        supervisor->components[worker->component].asked--;
    if (worker->state == WORKER_RUNNING) {
        struct roost_event event = outbox_event(ROOST_EVENT_ENDED, worker);
        event.end = ROOST_END_LOST;
        event.ended_at = clock_read(CLOCK_REALTIME);
        event.lasted = clock_read(CLOCK_MONOTONIC) - worker->started;
        snprintf(event.message, sizeof event.message, "%s", why);
        close_life(supervisor, worker, &event);
    }
    worker->state = WORKER_ENDED;
    supervisor->left--;
}

void lives_reap(struct supervisor *supervisor)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        struct worker *worker = worker_find(supervisor, info.si_pid);
        if (!worker) { /* one that was forked for us, and told of just now? */
            (void)forks_hear(supervisor, -1);
            worker = worker_find(supervisor, info.si_pid);
        }
        /* What a worker leaves in its group ends with it; its number is still ours to use. */
        if (worker)
            (void)kill(-info.si_pid, SIGKILL);
        siginfo_t reaped = {0};
        if (waitid(P_PID, (id_t)info.si_pid, &reaped, WEXITED | WNOHANG) != 0)
            return;
        if (worker)
            end_life(supervisor, worker, &info);
        else
            parts_reaped(supervisor, &reaped);
    }
}

/* --- the clock --- */

/* What was killed long ago and is still there holds nobody up: it is told by its number, its life is
 * recorded as lost, and the run ends without it. */
static void give_up(struct supervisor *supervisor)
{
    bool is_told = false;
    for (int32_t i = 0; i < supervisor->spec.process_count; i++) {
        struct worker *worker = &supervisor->workers[i];
        if (worker->state == WORKER_ASKED)
            lives_lose(supervisor, worker, "");
        if (worker->state != WORKER_RUNNING)
            continue;
        struct roost_event problem = outbox_event(ROOST_EVENT_PROBLEM, worker);
        problem.code = ROOST_ERR_ENGINE;
        if (supervisor->parts)
            snprintf(problem.message, sizeof problem.message,
                     "process %d of %s cannot be killed: no word of its end", worker->pid,
                     parts_node(supervisor, worker));
        else
            snprintf(problem.message, sizeof problem.message,
                     "process %d cannot be killed (state %c): it is left behind", worker->pid,
                     proc_stat(worker->pid).state);
        outbox_put(supervisor, &problem);
        if (!is_told) /* the first decides the status, whatever failed before it */
            supervisor->failure = problem;
        is_told = supervisor->has_failed = supervisor->has_given_up = true;
        lives_lose(supervisor, worker, "");
    }
}

/* What the end of the run asks for; the same answer as lives_tick. */
static int64_t tick_end(struct supervisor *supervisor)
{
    int64_t now = clock_ms();
    if (supervisor->phase == PHASE_STOPPING && now >= supervisor->kill_at)
        lives_kill(supervisor, "the time to end by themselves is over");
    if (supervisor->phase == PHASE_STOPPING)
        return supervisor->kill_at - now;
    if (now >= supervisor->give_up_at) {
        give_up(supervisor);
        return 0;
    }
    return supervisor->give_up_at - now;
}

/* New lives; the same answer. */
static int64_t tick_rests(struct supervisor *supervisor)
{
    int64_t now = clock_ms(), wait = -1;
    for (int32_t i = 0; i < supervisor->spec.process_count; i++) {
        struct worker *worker = &supervisor->workers[i];
        if (worker->state != WORKER_RESTING)
            continue;
        if (now < worker->restart_at)
            wait = clock_sooner(wait, worker->restart_at - now);
        else
            worker_start(supervisor, worker);
    }
    return wait;
}

int64_t lives_tick(struct supervisor *supervisor)
{
    int64_t wait = -1;
    if (supervisor->phase == PHASE_RUNNING && supervisor->left != supervisor->alive)
        wait = tick_rests(supervisor);
    /* Looked at last: a life that cannot begin ends the run. */
    return supervisor->phase == PHASE_RUNNING ? wait : tick_end(supervisor);
}
