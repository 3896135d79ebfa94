/* lives.c - the supervisor's decisions about lives: what follows when one ends (a record, another life, or
 * the end of the run), and how a run ends. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/supervisor.h"

enum {
    REST_FIRST_MS = 100, /* doubled by every quick end in a row */
    REST_MOST_MS = 10000,
    QUICK_MS = 10000, /* a life shorter than this ended quickly */
    QUICK_MOST = 5,   /* in a row, for restart: always */
};

/* --- signals --- */

void lives_signal_all(struct supervisor *supervisor, int32_t number)
{
    struct watcher *watcher = &supervisor->watcher;
    for (int32_t i = 0; i < watcher->spec.process_count; i++)
        if (watcher->workers[i].state == WORKER_RUNNING)
            supervisor->host->signal(supervisor, &watcher->workers[i], number);
}

void lives_signal_one(struct supervisor *supervisor, const struct life_request *request)
{
    struct worker *worker = worker_at(&supervisor->watcher, request->component, request->rank);
    if (!worker || worker->state != WORKER_RUNNING ||
        (request->life && request->life != worker->life))
        return;
    if (request->signal == SIGKILL)
        worker->was_told_to_end = true;
    supervisor->host->signal(supervisor, worker, request->signal);
}

void lives_end(struct supervisor *supervisor, struct worker *worker, int32_t number)
{
    if (worker->state == WORKER_RUNNING || worker->state == WORKER_ASKED) {
        worker->was_told_to_end = true;
        supervisor->host->signal(supervisor, worker, number);
        if (number != SIGKILL) /* a stopped process must run to receive it */
            supervisor->host->signal(supervisor, worker, SIGCONT);
    } else if (worker->state != WORKER_ENDED) {
        if (worker->state == WORKER_FORKING)
            close(worker->driver_end);
        worker_end(&supervisor->watcher, worker);
    }
}

static void end_all(struct supervisor *supervisor, int32_t number)
{
    for (int32_t i = 0; i < supervisor->watcher.spec.process_count; i++)
        lives_end(supervisor, &supervisor->watcher.workers[i], number);
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
    struct watcher *watcher = &supervisor->watcher;
    if (supervisor->phase > PHASE_CLOSING)
        return;
    end_by(supervisor, number);
    if (watcher->setup.grace_ms < 0) {
        lives_kill(supervisor, why);
        return;
    }
    supervisor->phase = PHASE_STOPPING;
    supervisor->kill_at = clock_ms() + watcher->setup.grace_ms;
    watcher->is_start_over = true;
    watcher->stop_signal = number;
    outbox_report(&watcher->outbox, ROOST_EVENT_STOPPING, NULL, ROOST_OK, "%s", why);
    end_all(supervisor, number);
}

void lives_close(struct supervisor *supervisor, int32_t status)
{
    if (supervisor->phase == PHASE_RUNNING && !supervisor->has_failed && status != 0) {
        supervisor->has_failed = true;
        supervisor->failure = outbox_event(ROOST_EVENT_FINISHED, NULL);
        if (status > 128)
            supervisor->failure.signal = status - 128;
        else
            supervisor->failure.exit_code = status;
    }
    if (supervisor->phase == PHASE_RUNNING)
        supervisor->phase = PHASE_CLOSING; /* so that the stop is no failure */
    lives_stop(supervisor, SIGTERM, "closed by its driver");
}

void lives_kill(struct supervisor *supervisor, const char *why)
{
    struct watcher *watcher = &supervisor->watcher;
    if (supervisor->phase == PHASE_KILLING)
        return;
    end_by(supervisor, SIGKILL);
    supervisor->phase = PHASE_KILLING;
    supervisor->give_up_at = clock_ms() + supervisor->host->kill_ms;
    watcher->is_start_over = true;
    outbox_report(&watcher->outbox, ROOST_EVENT_STOPPING, NULL, ROOST_OK, "%s", why);
    end_all(supervisor, SIGKILL);
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
    outbox_put(&supervisor->watcher.outbox, &event);
    if (!supervisor->has_failed && supervisor->phase <= PHASE_CLOSING) {
        supervisor->has_failed = true;
        supervisor->failure = event;
    }
    lives_stop(supervisor, SIGTERM, "");
}

/* A process that will not live again has failed. */
static void fail_worker(struct supervisor *supervisor, const struct worker *worker,
                        const struct roost_event *event)
{
    struct watcher *watcher = &supervisor->watcher;
    if (supervisor->phase != PHASE_RUNNING)
        return; /* what comes after the first failure, or after a stop, is its consequence */
    if (!supervisor->has_failed) {
        supervisor->has_failed = true;
        supervisor->failure = *event;
    }
    if (watcher->setup.keeps_going)
        return;
    char why[128];
    snprintf(why, sizeof why, "%s/%d failed", worker_component(watcher, worker)->name,
             worker->rank);
    lives_stop(supervisor, SIGTERM, why);
}

/* A service that ends well has left the job without it. */
static void fail_service(struct supervisor *supervisor, const struct worker *worker)
{
    struct roost_event event = outbox_event(ROOST_EVENT_PROBLEM, worker);
    event.code = ROOST_ERR_WORKER;
    snprintf(event.message, sizeof event.message,
             "this service ended by itself, with status 0, before the job was done");
    outbox_put(&supervisor->watcher.outbox, &event);
    fail_worker(supervisor, worker, &event);
}

/* --- beginnings and ends --- */

void lives_began(struct supervisor *supervisor, struct worker *worker, int driver_end)
{
    struct watcher *watcher = &supervisor->watcher;
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    worker_note_life(watcher, worker, worker->life);
    if (driver_end < 0)
        outbox_put(&watcher->outbox, &event);
    else
        outbox_put_with(&watcher->outbox, &event, driver_end);
}

static bool is_failure(const struct roost_event *event)
{
    return event->exit_code != 0;
}

/* Whether another life follows this one. */
static bool may_live_again(const struct supervisor *supervisor, const struct worker *worker,
                           const struct roost_event *event)
{
    const struct spec_component *component = worker_component(&supervisor->watcher, worker);
    if (supervisor->phase != PHASE_RUNNING)
        return false;
    if (component->restart == SPEC_RESTART_ALWAYS)
        return worker->quick_ends < QUICK_MOST;
    return component->restart == SPEC_RESTART_ON_FAILURE && is_failure(event) &&
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
    outbox_put(&supervisor->watcher.outbox, &event);
}

static void close_life(struct supervisor *supervisor, struct worker *worker,
                       const struct roost_event *event)
{
    worker_close(&supervisor->watcher, worker);
    outbox_put(&supervisor->watcher.outbox, event);
    records_add(supervisor, event);
}

void lives_ended(struct supervisor *supervisor, struct worker *worker,
                 const struct roost_event *event)
{
    worker->quick_ends = event->lasted / 1000000 < QUICK_MS ? worker->quick_ends + 1 : 0;
    close_life(supervisor, worker, event);
    supervisor->host->ended(supervisor, worker);
    if (may_live_again(supervisor, worker, event)) {
        rest(supervisor, worker);
        return;
    }
    worker_end(&supervisor->watcher, worker);
    if (is_failure(event)) {
        fail_worker(supervisor, worker, event);
    } else if (worker_component(&supervisor->watcher, worker)->restart == SPEC_RESTART_ALWAYS &&
               supervisor->phase == PHASE_RUNNING) {
        lives_fail(supervisor, worker, ROOST_ERR_WORKER,
                   "it ended %d times in a row within %d seconds of its start", QUICK_MOST,
                   QUICK_MS / 1000);
    } else if (worker_component(&supervisor->watcher, worker)->is_service &&
               supervisor->phase == PHASE_RUNNING) {
        fail_service(supervisor, worker);
    }
    ready_ended(supervisor, worker);
    services_look(supervisor);
}

void lives_lose(struct supervisor *supervisor, struct worker *worker, const char *why)
{
    if (worker->state == WORKER_ENDED)
        return;
    if (worker->state == WORKER_ASKED)
        supervisor->watcher.components[worker->component].asked--;
    if (worker->state == WORKER_RUNNING) {
        struct roost_event event = outbox_event(ROOST_EVENT_ENDED, worker);
        event.end = ROOST_END_LOST;
        event.ended_at = clock_read(CLOCK_REALTIME);
        event.lasted = clock_read(CLOCK_MONOTONIC) - worker->started;
        snprintf(event.message, sizeof event.message, "%s", why);
        close_life(supervisor, worker, &event);
    }
    worker_end(&supervisor->watcher, worker);
    services_look(supervisor);
}

/* --- the clock --- */

/* A process that was killed long ago and is still there holds nothing up: it is reported by its number, its
 * life is recorded as lost, and the run ends without it. */
static void give_up(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    bool is_first = true;
    for (int32_t i = 0; i < watcher->spec.process_count; i++) {
        struct worker *worker = &watcher->workers[i];
        if (worker->state == WORKER_ASKED)
            lives_lose(supervisor, worker, "");
        if (worker->state != WORKER_RUNNING)
            continue;
        struct roost_event problem = outbox_event(ROOST_EVENT_PROBLEM, worker);
        problem.code = ROOST_ERR_ENGINE;
        supervisor->host->describe_survivor(supervisor, worker, problem.message,
                                            sizeof problem.message);
        outbox_put(&watcher->outbox, &problem);
        if (is_first) /* the first decides the status, whatever failed before it */
            supervisor->failure = problem;
        is_first = false;
        supervisor->has_failed = supervisor->has_given_up = true;
        lives_lose(supervisor, worker, "");
    }
}

/* Does what the end of the run asks for; returns as lives_tick does. */
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

/* Starts new lives; returns as lives_tick does. */
static int64_t tick_rests(struct supervisor *supervisor)
{
    struct watcher *watcher = &supervisor->watcher;
    int64_t now = clock_ms(), wait = -1;
    for (int32_t i = 0; i < watcher->spec.process_count; i++) {
        struct worker *worker = &watcher->workers[i];
        if (worker->state != WORKER_RESTING)
            continue;
        if (now < worker->restart_at)
            wait = clock_sooner(wait, worker->restart_at - now);
        else
            (void)order_start(supervisor, worker);
    }
    return wait;
}

int64_t lives_tick(struct supervisor *supervisor)
{
    int64_t wait = -1;
    if (supervisor->phase == PHASE_RUNNING && supervisor->watcher.left != supervisor->watcher.alive)
        wait = tick_rests(supervisor);
    /* Looked at last: a life that cannot begin ends the run. */
    return supervisor->phase <= PHASE_CLOSING ? wait : tick_end(supervisor);
}
