/* workers.c - a process of the spec becomes a process of the machine: by a program that is executed, or
 * by a fork of one that is warm already (forks.c).
 *
 * Components start together, or when all they come `after` are ready. Few at a time, so that the loop
 * keeps hearing the driver. */
#include <errno.h>
#include <unistd.h>

#include "base/search.h"
#include "rpc/channel.h"
#include "supervise/clock.h"
#include "supervise/forks.h"
#include "supervise/lost.h"
#include "supervise/parts.h"

enum { START_AT_ONCE = 16 };

/* --- pids --- */

static int32_t *bucket_of(struct supervisor *supervisor, int32_t pid)
{
    return &supervisor->worker_of_pid[pid & (supervisor->bucket_count - 1)];
}

struct worker *worker_find(struct supervisor *supervisor, int32_t pid)
{
    for (int32_t i = *bucket_of(supervisor, pid); i >= 0; i = supervisor->workers[i].next)
        if (supervisor->workers[i].pid == pid)
            return &supervisor->workers[i];
    return NULL;
}

static void remember_pid(struct supervisor *supervisor, struct worker *worker)
{
    int32_t *bucket = bucket_of(supervisor, worker->pid);
    worker->next = *bucket;
    *bucket = (int32_t)(worker - supervisor->workers);
}

void worker_forget_pid(struct supervisor *supervisor, struct worker *worker)
{
    int32_t index = (int32_t)(worker - supervisor->workers);
    int32_t *link = bucket_of(supervisor, worker->pid);
    while (*link >= 0 && *link != index)
        link = &supervisor->workers[*link].next;
    if (*link == index)
        *link = worker->next;
}

struct worker *worker_at(struct supervisor *supervisor, int32_t component, int32_t rank)
{
    if (component < 0 || component >= supervisor->spec.component_count)
        return NULL;
    const struct spec_component *spec = &supervisor->spec.components[component];
    struct worker *first = &supervisor->workers[spec->first_process];
    int32_t found = SEARCH(spec->process_count, at, first[at].rank < rank); /* in rank order */
    return found < spec->process_count && first[found].rank == rank ? &first[found] : NULL;
}

/* --- a life --- */

static void say_failed(struct supervisor *supervisor, const struct worker *worker,
                       const struct spawned *spawned)
{
    const struct spec_process *process = worker_process(supervisor, worker);
    const char *what = spawned->failed == SPAWN_CHDIR  ? process->cwd
                       : spawned->failed == SPAWN_EXEC ? process->argv.first
                                                       : NULL;
    lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "cannot %s%s%s%s: %s",
               spawn_step_word(spawned->failed), what ? " '" : "",
               what ? quote(sv_from(what)).text : "", what ? "'" : "", strerror(spawned->error));
}

/* Should we be killed, others know what had begun: before it has, as a process runs before we are told
 * its number. */
static void note_life(struct supervisor *supervisor, const struct worker *worker, int32_t life)
{
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    event.life = life;
    lost_note(supervisor->lives, (int32_t)(worker - supervisor->workers),
              worker_component(supervisor, worker)->name, &event);
}

void worker_begins(struct supervisor *supervisor, struct worker *worker,
                   const struct spawned *spawned, int driver_end)
{
    worker->pid = spawned->pid;
    worker->pidfd = spawned->pidfd;
    worker->state = WORKER_RUNNING;
    supervisor->alive++;
    if (!supervisor->parts) { /* numbers of other machines are nobody's here */
        worker->was_told = false;
        remember_pid(supervisor, worker);
    }
    ready_reset(supervisor, worker);
    struct roost_event event = outbox_event(ROOST_EVENT_STARTED, worker);
    if (supervisor->setup.is_part)
        memcpy(event.message, worker->digest.text, sizeof worker->digest.text);
    note_life(supervisor, worker, worker->life);
    if (driver_end < 0)
        outbox_put(supervisor, &event);
    else
        outbox_put_with(supervisor, &event, driver_end);
}

/* Executes the worker's program. */
static bool execute(struct supervisor *supervisor, struct worker *worker, struct start *start,
                    const int logs[2])
{
    const struct spec_process *process = worker_process(supervisor, worker);
    struct spawn spawn = {
        .paths = start->paths,
        .argv = start->strings,
        .env = start->env,
        .cwd = *process->cwd ? process->cwd : NULL,
        .fd = {supervisor->null, logs[0], logs[1]},
        .handed = start->handed,
        .handed_count = start->handed_count,
        .listen_pid = *start->listen_pid ? start->listen_pid + sizeof "LISTEN_PID=" - 1 : NULL,
        .nofile = &supervisor->nofile,
    };
    struct spawned spawned = spawn_process(&spawn);
    if (spawned.failed != SPAWN_OK) {
        say_failed(supervisor, worker, &spawned);
        return false;
    }
    worker_begins(supervisor, worker, &spawned, start->ends[0]);
    start->ends[0] = -1;
    return true;
}

bool worker_start(struct supervisor *supervisor, struct worker *worker)
{
    struct start start = {.ends = {-1, -1}};
    int logs[2];
    worker->life++;
    if (supervisor->parts)
        return parts_begin(supervisor, worker);
    if (supervisor->setup.has_channels && !channel_stream(start.ends)) {
        lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "cannot make its channel: %s",
                   strerror(errno));
        return false;
    }
    if (!worker_open_logs(supervisor, worker, logs)) {
        lives_fail(supervisor, worker, ROOST_ERR_IO, "cannot open its log files in '%s/%d': %s",
                   worker_component(supervisor, worker)->name, worker->rank, strerror(errno));
        start_release(&start);
        return false;
    }
    bool is_started = false;
    if (!start_fill(&start, supervisor, worker)) {
        lives_fail(supervisor, worker, ROOST_ERR_MEMORY, "no memory to start it");
    } else {
        worker->started_at = clock_read(CLOCK_REALTIME);
        worker->started = clock_read(CLOCK_MONOTONIC);
        if (supervisor->setup.is_part)
            worker->digest =
                digest_executed(worker_process(supervisor, worker), start.strings, start.env);
        ready_mark(supervisor, worker);
        note_life(supervisor, worker, worker->life);
        is_started = forks_take(supervisor, worker, &start, logs) ||
                     execute(supervisor, worker, &start, logs);
        if (!is_started)
            note_life(supervisor, worker, 0);
    }
    close(logs[0]);
    close(logs[1]);
    start_release(&start);
    return is_started;
}

/* --- order --- */

static const struct component_run *find_component(const struct supervisor *supervisor,
                                                  const char *name)
{
    for (int32_t i = 0; i < supervisor->spec.component_count; i++)
        if (strcmp(supervisor->spec.components[i].name, name) == 0)
            return &supervisor->components[i];
    return NULL;
}

/* Whether everything that the component comes after is ready. What does not run is not waited for. */
static bool may_start(const struct supervisor *supervisor, int32_t component)
{
    const struct spec_list *after = &supervisor->spec.components[component].after;
    const char *name = after->first;
    for (uint32_t i = 0; i < after->count; i++, name = spec_next(name)) {
        const struct component_run *other = find_component(supervisor, name);
        if (other && other->state != COMPONENT_READY)
            return false;
    }
    return true;
}

static void all_are_up(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->components[component];
    const struct spec_component *spec = &supervisor->spec.components[component];
    run->state = COMPONENT_UP;
    run->ready_deadline = clock_ms() + (int64_t)spec->ready_timeout * 1000;
    if (run->log_dir >= 0) { /* not needed for a while: descriptors are for sockets and pids */
        close(run->log_dir);
        run->log_dir = -1;
    }
}

bool workers_start_some(struct supervisor *supervisor)
{
    int32_t started = 0;
    if (supervisor->setup.is_part)
        return false; /* it is told which to start, and when */
    for (int32_t c = 0; c < supervisor->spec.component_count; c++) {
        const struct spec_component *spec = &supervisor->spec.components[c];
        struct component_run *run = &supervisor->components[c];
        if (run->state == COMPONENT_BLOCKED && may_start(supervisor, c))
            run->state = COMPONENT_STARTING;
        while (run->state == COMPONENT_STARTING) {
            if (supervisor->is_start_over)
                return false;
            if (forks_are_busy(run))
                break; /* its forker will be heard */
            if (started++ == START_AT_ONCE)
                return true;
            struct worker *worker = &supervisor->workers[spec->first_process + run->next_rank];
            if (worker->state == WORKER_WAITING) /* else its node was lost meanwhile */
                worker_start(supervisor, worker);
            if (++run->next_rank == spec->process_count)
                all_are_up(supervisor, c);
        }
    }
    return false;
}
