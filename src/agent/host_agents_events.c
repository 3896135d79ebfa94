/* host_agents_events.c - handles the agents' reports in the supervisor, as if the workers ran on this machine.
 * An agent's report counts only for its own workers. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/digest.h"
#include "agent/host_agents_internal.h"
#include "supervise/clock.h"

/* A worker of this agent; NULL = it is not one. */
static struct worker *find_worker(struct supervisor *supervisor, int32_t agent, int32_t component,
                                  int32_t rank)
{
    struct worker *worker = worker_at(&supervisor->watcher, component, rank);
    return worker && agent_of(supervisor, worker) == agent ? worker : NULL;
}

/* The files are there from a worker's first moment, as on one machine. */
static bool make_logs(struct supervisor *supervisor, struct worker *worker)
{
    int logs[2];
    if (worker->has_logs)
        return true;
    if (!worker_open_logs(&supervisor->watcher, worker, logs))
        return false;
    close(logs[0]);
    close(logs[1]);
    return true;
}

static void report_logs(struct supervisor *supervisor, struct worker *worker)
{
    if (worker->has_reported_cut)
        return;
    worker->has_reported_cut = true;
    outbox_report(&supervisor->watcher.outbox, ROOST_EVENT_PROBLEM, worker, ROOST_ERR_IO,
                  "its logs cannot be kept in '%s/%d' of the run's folder: %s",
                  worker_component(&supervisor->watcher, worker)->name, worker->rank,
                  strerror(errno));
}

void agents_take_log(struct supervisor *supervisor, int32_t agent, const char *body, size_t len)
{
    struct log_piece head;
    if (len < sizeof head)
        return;
    memcpy(&head, body, sizeof head);
    struct worker *worker = find_worker(supervisor, agent, head.component, head.rank);
    if (!worker || head.stream < 0 || head.stream > 1 || head.offset < 0)
        return;
    int fd = make_logs(supervisor, worker)
                 ? worker_open_log(&supervisor->watcher, worker, head.stream, O_WRONLY)
                 : -1;
    for (size_t done = sizeof head; fd >= 0 && done < len;) {
        ssize_t wrote =
            pwrite(fd, body + done, len - done, head.offset + (int64_t)(done - sizeof head));
        if (wrote <= 0) {
            close(fd);
            fd = -1;
        } else {
            done += (size_t)wrote;
        }
    }
    if (fd >= 0)
        close(fd);
    else
        report_logs(supervisor, worker);
}

static void begins(struct supervisor *supervisor, struct worker *worker,
                   const struct roost_event *event)
{
    if (worker->state != WORKER_ASKED || worker->life != event->life)
        return;
    supervisor->watcher.components[worker->component].asked--;
    worker->started_at = event->started_at;
    worker->started = clock_read(CLOCK_MONOTONIC);
    if (!make_logs(supervisor, worker))
        report_logs(supervisor, worker);
    worker_begin(&supervisor->watcher, worker, event->pid, -1);
    lives_began(supervisor, worker, -1);
    const char *what =
        digest_difference(worker_process(&supervisor->watcher, worker)->env.first, event->message);
    if (what)
        lives_fail(supervisor, worker, ROOST_ERR_ENGINE,
                   "it is not as planned: its %s on %s %s not what was sent there", what,
                   agent_node(supervisor, agent_of(supervisor, worker)),
                   strcmp(what, "command") == 0 ? "is" : "are");
}

static void ends(struct supervisor *supervisor, struct worker *worker, struct roost_event *event)
{
    if (worker->state != WORKER_RUNNING || worker->life != event->life)
        return;
    bool is_ours = event->signal == SIGKILL || event->signal == supervisor->watcher.stop_signal;
    if (event->end == ROOST_END_CRASHED && worker->was_told_to_end && is_ours)
        event->end = ROOST_END_KILLED;
    lives_ended(supervisor, worker, event);
}

static void fails(struct supervisor *supervisor, int32_t agent, struct worker *worker,
                  const struct roost_event *event)
{
    if (worker && worker->state == WORKER_ASKED)
        lives_lose(supervisor, worker, "");
    if (supervisor->has_failed && supervisor->phase != PHASE_RUNNING)
        return; /* all were asked to start at once: what one lacks the others often lack too */
    lives_fail(supervisor, worker, event->code, "%s: %s", agent_node(supervisor, agent),
               event->message);
}

void agents_report(struct supervisor *supervisor, const struct roost_event *event)
{
    outbox_put(&supervisor->watcher.outbox, event);
    if (event->code == ROOST_ERR_IO || supervisor->has_failed)
        return;
    supervisor->has_failed = true;
    supervisor->failure = *event;
}

void agents_take_event(struct supervisor *supervisor, int32_t agent, struct roost_event *event)
{
    struct worker *worker = find_worker(supervisor, agent, event->component, event->rank);
    switch ((int)event->kind) {
    case ROOST_EVENT_STARTED:
        if (worker)
            begins(supervisor, worker, event);
        break;
    case ROOST_EVENT_ENDED:
        if (worker)
            ends(supervisor, worker, event);
        break;
    case ROOST_EVENT_READY:
        if (worker && worker->life == event->life)
            worker->is_ready = true;
        break;
    case EVENT_FAILED: fails(supervisor, agent, worker, event); break;
    case ROOST_EVENT_PROBLEM: agents_report(supervisor, event); break;
    case ROOST_EVENT_NOTE:
        outbox_report(&supervisor->watcher.outbox, ROOST_EVENT_NOTE, NULL, ROOST_OK, "%s: %s",
                      agent_node(supervisor, agent), event->message);
        break;
    default: break;
    }
}
