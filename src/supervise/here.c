/* here.c - a worker as a process of this machine: executed, or forked from a warm program (forks.c);
 * signalled; reaped.
 *
 * Only this file reaps workers. A pid is signalled only while its process has not been reaped, so the
 * number cannot belong to another process. */
#include "supervise/here.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/oom.h"
#include "supervise/proc.h"

void here_init(struct here *here, struct watcher *watcher, const struct here_calls *calls,
               void *owner)
{
    *here = (struct here){.watcher = watcher,
                          .calls = calls,
                          .owner = owner,
                          .oom_seen = oom_count(watcher->cgroup->dir, "/proc")};
}

void here_release(struct here *here)
{
    roost_leases_free(here->leases);
    here->leases = NULL;
}

/* --- pids --- */

static int32_t *bucket_of(struct here *here, int32_t pid)
{
    return &here->worker_of_pid[pid & (here->bucket_count - 1)];
}

static struct worker *find_worker(struct here *here, int32_t pid)
{
    struct worker *workers = here->watcher->workers;
    for (int32_t i = *bucket_of(here, pid); i >= 0; i = workers[i].next)
        if (workers[i].pid == pid)
            return &workers[i];
    return NULL;
}

static void remember_pid(struct here *here, struct worker *worker)
{
    int32_t *bucket = bucket_of(here, worker->pid);
    worker->next = *bucket;
    *bucket = (int32_t)(worker - here->watcher->workers);
}

static void forget_pid(struct here *here, const struct worker *worker)
{
    struct worker *workers = here->watcher->workers;
    int32_t index = (int32_t)(worker - workers);
    int32_t *link = bucket_of(here, worker->pid);
    while (*link >= 0 && *link != index)
        link = &workers[*link].next;
    if (*link == index)
        *link = worker->next;
}

/* --- a life begins --- */

__attribute__((format(printf, 4, 5))) static bool fail(struct here *here,
                                                       const struct worker *worker,
                                                       enum roost_code code, const char *format,
                                                       ...)
{
    char message[ROOST_EVENT_MESSAGE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    here->calls->failed(here->owner, worker, code, message);
    return false;
}

static bool fail_spawn(struct here *here, const struct worker *worker,
                       const struct spawned *spawned)
{
    const struct spec_process *process = worker_process(here->watcher, worker);
    const char *what = spawned->failed == SPAWN_CHDIR  ? process->cwd
                       : spawned->failed == SPAWN_EXEC ? process->argv.first
                                                       : NULL;
    return fail(here, worker, ROOST_ERR_ENGINE, "cannot %s%s%s%s: %s",
                spawn_step_word(spawned->failed), what ? " '" : "",
                what ? quote(sv_from(what)).text : "", what ? "'" : "", strerror(spawned->error));
}

void here_began(struct here *here, struct worker *worker, const struct spawned *spawned,
                const struct start *start, int driver_end)
{
    worker_begin(here->watcher, worker, spawned->pid, spawned->pidfd);
    worker->was_told_to_end = false;
    remember_pid(here, worker);
    here->calls->began(here->owner, worker, start, driver_end);
}

/* Executes the worker's program. */
static bool execute(struct here *here, struct worker *worker, struct start *start,
                    const int logs[2])
{
    const struct spec_process *process = worker_process(here->watcher, worker);
    struct spawn spawn = {
        .paths = start->paths,
        .argv = start->strings,
        .env = start->env,
        .cwd = *process->cwd ? process->cwd : NULL,
        .fd = {here->watcher->null, logs[0], logs[1]},
        .handed = start->handed,
        .handed_count = start->handed_count,
        .listen_pid = *start->listen_pid ? start->listen_pid + sizeof "LISTEN_PID=" - 1 : NULL,
        .nofile = &here->nofile,
    };
    struct spawned spawned = spawn_process(&spawn);
    if (spawned.failed != SPAWN_OK)
        return fail_spawn(here, worker, &spawned);
    int driver_end = start->ends[0];
    start->ends[0] = -1;
    here_began(here, worker, &spawned, start, driver_end);
    return true;
}

static bool start_with(struct here *here, struct worker *worker, struct start *start,
                       const int logs[2])
{
    struct watcher *watcher = here->watcher;
    if (!start_fill(start, here, worker))
        return fail(here, worker, ROOST_ERR_MEMORY, "no memory to start it");
    worker->started_at = clock_read(CLOCK_REALTIME);
    worker->started = clock_read(CLOCK_MONOTONIC);
    here_mark_ready(here, worker);
    worker_note_life(watcher, worker, worker->life);
    bool is_started = forks_take(here, worker, start, logs) || execute(here, worker, start, logs);
    if (!is_started)
        worker_note_life(watcher, worker, 0);
    return is_started;
}

bool here_begin(struct here *here, struct worker *worker)
{
    struct start start = {.ends = {-1, -1}};
    int logs[2];
    if (here->watcher->setup.has_sockets && !socket_pair_stream(start.ends))
        return fail(here, worker, ROOST_ERR_ENGINE, "cannot make its socket: %s", strerror(errno));
    bool is_started = false;
    if (!worker_open_logs(here->watcher, worker, logs)) {
        (void)fail(here, worker, ROOST_ERR_IO, "cannot open its log files in '%s/%d': %s",
                   worker_component(here->watcher, worker)->name, worker->rank, strerror(errno));
    } else {
        is_started = start_with(here, worker, &start, logs);
        close(logs[0]);
        close(logs[1]);
    }
    start_release(&start);
    return is_started;
}

void here_signal(struct here *here, const struct worker *worker, int32_t number)
{
    (void)here;
    /* The whole group: a shell or launcher between passes no signal on. A worker leads a session of its own,
     * so the group has its number. */
    if (kill(-worker->pid, number) == 0 || errno != ESRCH)
        return;
    /* A worker that was forked leads no group until it has its session (see forks.h): until then it is
     * alone. */
    if (worker->pidfd >= 0)
        (void)pidfd_send_signal(worker->pidfd, number, NULL, 0);
    else
        (void)kill(worker->pid, number);
}

/* --- a life ends --- */

/* Whether the kernel has killed once more than is accounted for. Only its counter tells, so the next worker
 * that was killed by an unknown sender is taken for the victim. */
static bool is_out_of_memory(struct here *here)
{
    int64_t count = oom_count(here->watcher->cgroup->dir, "/proc");
    if (here->oom_seen < 0 || count <= here->oom_seen)
        return false;
    here->oom_seen++;
    return true;
}

static struct roost_event describe_end(struct here *here, const struct worker *worker,
                                       const siginfo_t *info)
{
    struct roost_event event = outbox_event(ROOST_EVENT_ENDED, worker);
    event.ended_at = clock_read(CLOCK_REALTIME);
    event.lasted = clock_read(CLOCK_MONOTONIC) - worker->started;
    if (info->si_code == CLD_EXITED) {
        event.exit_code = info->si_status;
        event.end = ROOST_END_EXITED;
        return event;
    }
    event.signal = info->si_status;
    event.has_core = info->si_code == CLD_DUMPED;
    bool is_ours = event.signal == SIGKILL || event.signal == here->watcher->stop_signal;
    if (worker->was_told_to_end && is_ours)
        event.end = ROOST_END_KILLED;
    else if (event.signal == SIGKILL && is_out_of_memory(here))
        event.end = ROOST_END_OOM;
    else
        event.end = ROOST_END_CRASHED;
    return event;
}

void here_reap(struct here *here)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        struct worker *worker = find_worker(here, info.si_pid);
        if (!worker) { /* perhaps a worker that was forked, and its message comes just now */
            (void)forks_read(here, -1);
            worker = find_worker(here, info.si_pid);
        }
        /* What a worker leaves in its group ends with it; the number is still its own. */
        if (worker)
            (void)kill(-info.si_pid, SIGKILL);
        siginfo_t reaped = {0};
        if (waitid(P_PID, (id_t)info.si_pid, &reaped, WEXITED | WNOHANG) != 0)
            return;
        if (!worker)
            continue;
        struct roost_event event = describe_end(here, worker, &info);
        forget_pid(here, worker);
        here->calls->ended(here->owner, worker, &event);
    }
}

void here_describe_survivor(const struct worker *worker, char *out, size_t size)
{
    snprintf(out, size, "process %d cannot be killed (state %c): it is left behind", worker->pid,
             proc_stat(worker->pid).state);
}
