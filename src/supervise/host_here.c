/* host_here.c - the supervisor's host for a run on one machine: passes on to here.c. */
#include <stdio.h>

#include "supervise/forks.h"
#include "supervise/proc.h"
#include "supervise/supervisor.h"

enum { KILL_MS = 5000, FILES_EACH = 1 /* a pidfd */ };

static struct here *here_of(const struct supervisor *supervisor)
{
    return supervisor->host_data;
}

/* --- what happened --- */

static void began(void *owner, struct worker *worker, const struct start *start, int driver_end)
{
    (void)start;
    lives_began(owner, worker, driver_end);
}

static void ended(void *owner, struct worker *worker, const struct roost_event *event)
{
    lives_ended(owner, worker, event);
}

static void failed(void *owner, const struct worker *worker, enum roost_code code,
                   const char *message)
{
    lives_fail(owner, worker, code, "%s", message);
}

static const struct here_calls calls = {began, ended, failed};

/* --- what is to be done --- */

static int prepare(struct supervisor *supervisor, struct message *message)
{
    struct watcher *watcher = &supervisor->watcher;
    struct here *here = arena_zeroed(&watcher->arena, struct here, 1);
    if (!here)
        return watcher_refuse_with(watcher, ROOST_ERR_MEMORY, "out of memory", "");
    here_init(here, watcher, &calls, supervisor);
    supervisor->host_data = here;
    int status = here_prepare(here, message->fd, FILES_EACH);
    if (status == 0)
        status = control_open(supervisor);
    return status ? status : watcher_expect(watcher, MSG_START, message) ? 0 : 1;
}

static void do_nothing(struct supervisor *supervisor)
{
    (void)supervisor;
}

static bool begin(struct supervisor *supervisor, struct worker *worker)
{
    return here_begin(here_of(supervisor), worker);
}

static void signal_worker(struct supervisor *supervisor, const struct worker *worker,
                          int32_t number)
{
    here_signal(here_of(supervisor), worker, number);
}

static bool is_ready(struct supervisor *supervisor, struct worker *worker)
{
    return here_is_ready(here_of(supervisor), worker);
}

static void look_at_disk(struct supervisor *supervisor, struct worker *worker)
{
    worker_look_at_disk(&supervisor->watcher, worker);
}

static bool is_stopped(const struct supervisor *supervisor, const struct worker *worker)
{
    (void)supervisor;
    return strchr("Tt", proc_stat(worker->pid).state) != NULL;
}

static const char *no_node(const struct supervisor *supervisor, const struct worker *worker)
{
    (void)supervisor;
    (void)worker;
    return NULL;
}

static void describe_survivor(const struct supervisor *supervisor, const struct worker *worker,
                              char *out, size_t size)
{
    (void)supervisor;
    here_describe_survivor(worker, out, size);
}

static void reap(struct supervisor *supervisor)
{
    here_reap(here_of(supervisor));
}

static bool serve(struct supervisor *supervisor, int fd)
{
    return forks_read(here_of(supervisor), fd);
}

static void release(struct supervisor *supervisor)
{
    if (here_of(supervisor))
        here_release(here_of(supervisor));
}

const struct host host_here = {
    .prepare = prepare,
    .check = do_nothing,
    .begin = begin,
    .signal = signal_worker,
    .is_ready = is_ready,
    .ended = look_at_disk,
    .is_stopped = is_stopped,
    .node = no_node,
    .describe_survivor = describe_survivor,
    .reap = reap,
    .serve = serve,
    .flush = do_nothing,
    .end = do_nothing,
    .release = release,
    .kill_ms = KILL_MS,
};
