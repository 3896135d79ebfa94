/* agent.c - the process that looks after the workers on one node of a run on several nodes.
 *
 * It obeys: it starts a life when the supervisor asks for it, passes signals on, reports when a worker is
 * ready and how a life ended, and sends what workers write. Whether another life follows, and whether the
 * run goes on, is decided by the supervisor. Only when the supervisor, the bridge or its own guardian is
 * gone does an agent act by itself: it kills its workers and ends. */
#include "agent/agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "agent/agent_dir.h"
#include "agent/agent_internal.h"
#include "agent/digest.h"
#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/start.h"
#include "supervise/sweep.h"

enum {
    FILES_EACH = 3, /* descriptors for each worker: its pidfd and its two logs */
    READY_EVERY_MS = 25,
    KILL_MS = 5000, /* for killed processes to be gone */
    SWEEP_MS = 5000,
};

/* --- what it reports --- */

/* The supervisor decides what follows. */
static void failed(void *owner, const struct worker *worker, enum roost_code code,
                   const char *message)
{
    struct agent *agent = owner;
    outbox_report(&agent->watcher.outbox, (enum roost_event_kind)EVENT_FAILED, worker, code, "%s",
                  message);
}

static void began(void *owner, struct worker *worker, const struct start *start, int driver_end)
{
    struct agent *agent = owner;
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    if (start) {
        struct digest digest =
            digest_executed(worker_process(&agent->watcher, worker), start->strings, start->env);
        memcpy(event.message, digest.text, sizeof digest.text);
    }
    if (driver_end < 0)
        outbox_put(&agent->watcher.outbox, &event);
    else
        outbox_put_with(&agent->watcher.outbox, &event, driver_end);
}

static bool is_awaited(const struct agent *agent, const struct worker *worker)
{
    return worker->state == WORKER_RUNNING && !worker->is_ready &&
           worker_component(&agent->watcher, worker)->ready != SPEC_READY_AT_ONCE;
}

/* Whether it is ready now, which is reported then. */
static bool look(struct agent *agent, struct worker *worker)
{
    worker->is_ready = here_is_ready(&agent->here, worker);
    if (worker->is_ready) {
        struct roost_event event = outbox_event(ROOST_EVENT_READY, worker);
        outbox_put(&agent->watcher.outbox, &event);
    }
    return worker->is_ready;
}

static void ended(void *owner, struct worker *worker, const struct roost_event *event)
{
    struct agent *agent = owner;
    struct watcher *watcher = &agent->watcher;
    /* It may have made its file, or printed its line, since the last look. */
    if (is_awaited(agent, worker) && worker_component(watcher, worker)->ready != SPEC_READY_PORT)
        (void)look(agent, worker);
    worker_close(watcher, worker);
    outbox_put(&watcher->outbox, event);
    worker_look_at_disk(watcher, worker);
    worker_end(watcher, worker);
}

static const struct here_calls calls = {began, ended, failed};

/* What a worker wrote goes out before its end is reported. */
static void flush(struct agent *agent)
{
    struct outbox *outbox = &agent->watcher.outbox;
    if (!outbox->is_closed && agent_logs_ship(agent))
        outbox_flush_marked(outbox);
}

/* --- what it does --- */

static void begin(struct agent *agent, const struct life_request *request)
{
    struct watcher *watcher = &agent->watcher;
    struct worker *worker = worker_at(watcher, request->component, request->rank);
    if (!worker || agent->is_over || request->life <= worker->life ||
        (worker->state != WORKER_WAITING && worker->state != WORKER_ENDED))
        return;
    if (worker->state == WORKER_ENDED) {
        watcher->left++;
        watcher->components[worker->component].left++;
    }
    worker->state = WORKER_WAITING;
    worker->life = request->life;
    (void)here_begin(&agent->here, worker);
}

static void signal_one(struct agent *agent, const struct life_request *request)
{
    struct worker *worker = worker_at(&agent->watcher, request->component, request->rank);
    if (request->signal <= 0 || request->signal >= NSIG || !worker ||
        worker->state != WORKER_RUNNING || (request->life && request->life != worker->life))
        return;
    if (request->signal == SIGKILL)
        worker->was_told_to_end = true;
    here_signal(&agent->here, worker, request->signal);
}

/* Kills all workers, and ends with the last of them. */
static void kill_all(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    agent->is_over = true;
    if (agent->is_killing)
        return;
    agent->is_killing = watcher->is_start_over = true;
    agent->give_up_at = clock_ms() + KILL_MS;
    for (int32_t i = 0; i < watcher->spec.process_count; i++) {
        struct worker *worker = &watcher->workers[i];
        if (worker->state == WORKER_RUNNING) {
            worker->was_told_to_end = true;
            here_signal(&agent->here, worker, SIGKILL);
        } else if (worker->state != WORKER_ENDED) {
            if (worker->state == WORKER_FORKING)
                close(worker->driver_end);
            worker_end(watcher, worker);
        }
    }
}

static void obey(struct agent *agent, const struct message *message)
{
    struct life_request request = {0};
    if (message->fd >= 0)
        close(message->fd);
    if (message->len == sizeof request)
        memcpy(&request, message->body, sizeof request);
    if (message->type == MSG_END)
        kill_all(agent);
    else if (message->type == MSG_BEGIN && message->len == sizeof request)
        begin(agent, &request);
    else if (message->type == MSG_SIGNAL_ONE && message->len == sizeof request)
        signal_one(agent, &request);
}

/* --- the loop --- */

/* The process that started the agent is gone, by its socket or by its pidfd. */
static void lose_driver(struct agent *agent)
{
    agent->watcher.outbox.is_closed = true;
    watcher_unwatch(&agent->watcher, agent->watcher.outbox.socket);
    kill_all(agent);
}

static void read_driver(struct agent *agent)
{
    struct message message;
    enum socket_pair_result result;
    while ((result = socket_pair_receive(agent->watcher.outbox.socket, &message)) == SOCKET_PAIR_OK)
        obey(agent, &message);
    if (result != SOCKET_PAIR_AGAIN)
        lose_driver(agent);
}

static void read_signals(struct agent *agent)
{
    int number;
    while ((number = watcher_read_signal(&agent->watcher))) {
        if (number == SIGCHLD || agent->is_killing)
            continue;
        char message[64];
        snprintf(message, sizeof message, "the supervisor of the run was sent signal %d", number);
        failed(agent, NULL, ROOST_ERR_ENGINE, message);
    }
    here_reap(&agent->here); /* one SIGCHLD may stand for many */
}

static void serve_fd(struct agent *agent, int fd)
{
    struct watcher *watcher = &agent->watcher;
    if (fd == watcher->outbox.socket) {
        read_driver(agent);
    } else if (fd == watcher->signals) {
        read_signals(agent);
    } else if (fd == GUARDIAN_DRIVER) {
        watcher_unwatch(watcher, fd);
        lose_driver(agent);
    } else if (!forks_read(&agent->here, fd) && fd == watcher->guardian) {
        watcher_unwatch(watcher, fd);
        failed(agent, NULL, ROOST_ERR_ENGINE, "the guardian of the run is gone");
        kill_all(agent);
    }
}

/* Reports workers that have become ready. Returns when to look again, in ms from now; -1 = never. */
static int64_t tick_ready(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    int64_t wait = -1;
    for (int32_t i = 0; !agent->is_killing && i < watcher->spec.process_count; i++) {
        struct worker *worker = &watcher->workers[i];
        if (is_awaited(agent, worker) && !look(agent, worker))
            wait = READY_EVERY_MS;
    }
    return wait;
}

/* A process that was killed long ago and is still there does not keep the agent: it is reported by its number,
 * and its life as lost. */
static void give_up(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    for (int32_t i = 0; i < watcher->spec.process_count; i++) {
        struct worker *worker = &watcher->workers[i];
        if (worker->state != WORKER_RUNNING)
            continue;
        struct roost_event problem = outbox_event(ROOST_EVENT_PROBLEM, worker);
        problem.code = ROOST_ERR_ENGINE;
        here_describe_survivor(worker, problem.message, sizeof problem.message);
        struct roost_event end = outbox_event(ROOST_EVENT_ENDED, worker);
        end.end = ROOST_END_LOST;
        end.ended_at = clock_read(CLOCK_REALTIME);
        end.lasted = clock_read(CLOCK_MONOTONIC) - worker->started;
        outbox_put(&watcher->outbox, &problem);
        outbox_put(&watcher->outbox, &end);
        worker_close(watcher, worker);
        worker_end(watcher, worker);
        agent->has_given_up = true;
    }
}

static int64_t tick_end(struct agent *agent)
{
    if (!agent->is_killing)
        return -1;
    int64_t left = agent->give_up_at - clock_ms();
    if (left <= 0)
        give_up(agent);
    return left > 0 ? left : 0;
}

static void serve(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    while (!agent->is_over || watcher->alive > 0) {
        int fds[WATCHER_FDS_MAX];
        int64_t wait = clock_sooner(tick_end(agent), tick_ready(agent));
        wait = clock_sooner(wait, agent_logs_tick(agent));
        flush(agent);
        if (watcher->outbox.has_lost) /* a supervisor that misses an event gets no more */
            kill_all(agent);
        if (agent->is_over && watcher->alive == 0)
            return;
        int count = watcher_wait(watcher, wait, fds);
        for (int i = 0; i < count; i++)
            serve_fd(agent, fds[i]);
    }
}

/* --- its start and its end --- */

/* The path of the node's own runtime directory: the driver, on another machine, does not know it. */
static void find_runtime(struct watcher *watcher)
{
    char link[32];
    char *path = watcher->setup.runtime_dir;
    snprintf(link, sizeof link, "/proc/self/fd/%d", watcher->runtime_dir);
    ssize_t len = readlink(link, path, sizeof watcher->setup.runtime_dir - 1);
    path[len > 0 ? len : 0] = '\0';
}

/* Everything up to the first worker; 0, or the exit status. */
static int prepare(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    if (!watcher_open(watcher))
        return watcher_refuse_to_open(watcher, "what the supervisor of the run needs", errno);
    struct message *message = arena_array(&watcher->arena, struct message, 1);
    int status = message ? watcher_greet(watcher, message) : 1;
    if (status)
        return status;
    find_runtime(watcher);
    status = here_prepare(&agent->here, message->fd, FILES_EACH);
    if (status == 0)
        status = watcher_expect(watcher, MSG_START, message) ? 0 : 1;
    if (status == 0)
        status = watcher_read_spec(watcher, message->fd);
    if (status == 0 && !agent_logs_prepare(agent))
        status = watcher_refuse_with(watcher, ROOST_ERR_MEMORY, "out of memory", "");
    return status;
}

/* Ends what workers left behind, and sends the last logs and events. */
static int finish(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    bool is_empty = sweep_descendants(agent->has_given_up ? 0 : SWEEP_MS);
    struct roost_event first;
    /* The kernel ends everything in a control group, also what this user may not kill: the guardian asks it
     * to. */
    if (!is_empty && !agent->has_given_up && watcher->cgroup->dir < 0)
        (void)watcher_name_survivors(watcher, &first);
    /* One more event, for one more round: processes that were swept just now may have written something. */
    struct roost_event end = outbox_event(ROOST_EVENT_FINISHED, NULL);
    end.ended_at = clock_read(CLOCK_REALTIME);
    outbox_put(&watcher->outbox, &end);
    here_release(&agent->here);
    for (flush(agent); !watcher->outbox.is_closed && !outbox_is_empty(&watcher->outbox);
         flush(agent))
        if (!watcher_await_room(watcher))
            break;
    return is_empty ? 0 : GUARDIAN_NOT_EMPTY;
}

int agent_main(int guardian, struct cgroup *cgroup)
{
    struct agent agent = {0};
    watcher_init(&agent.watcher, guardian, cgroup);
    here_init(&agent.here, &agent.watcher, &calls, &agent);
    int status = prepare(&agent);
    if (status == 0) {
        watcher_report_guard(&agent.watcher);
        serve(&agent);
        status = finish(&agent);
    }
    here_release(&agent.here);
    /* A guardian that was stopped must run to clean up; without one this process does it. */
    if (watcher_is_orphan(&agent.watcher)) {
        (void)cgroup_leave(cgroup);
        agent_dir_remove(agent.watcher.run_dir);
    } else {
        (void)pidfd_send_signal(guardian, SIGCONT, NULL, 0);
    }
    agent_logs_release(&agent);
    watcher_release(&agent.watcher);
    return status;
}
