/* run.c - a run as its driver sees it: events come, orders go, and in the end nothing is left.
 *
 * The supervisor reports what happens. When it is gone without having finished, the guardian has ended
 * everything; the driver then reports each process that was alive as lost. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/file.h"
#include "run/registry_server_start.h"
#include "run/run_internal.h"
#include "run/run_news.h"
#include "supervise/clock.h"
#include "supervise/lost.h"
#include "supervise/outbox.h"
#include "supervise/proc.h"
#include "supervise/record.h"
#include "supervise/sweep.h"

enum {
    RECORDS_MAX = 256 << 20,
    SETTLE_MS = 15000,
    SWEEP_MS = 2000,
    ANSWER_MS = 10000, /* for a supervisor to report that it ends the run at once */
};

const char *roost_end_word(enum roost_end end)
{
    static const char *const words[] = {[ROOST_END_EXITED] = "exited",
                                        [ROOST_END_CRASHED] = "crashed",
                                        [ROOST_END_KILLED] = "killed-by-roost",
                                        [ROOST_END_OOM] = "oom",
                                        [ROOST_END_LOST] = "lost"};
    return words[end];
}

const char *roost_run_id(const struct roost_run *run)
{
    return run->dir.id;
}

const char *roost_run_dir(const struct roost_run *run)
{
    return run->dir.path;
}

int32_t roost_run_component_count(const struct roost_run *run)
{
    return run->component_count;
}

const char *roost_run_component(const struct roost_run *run, int32_t component)
{
    return component >= 0 && component < run->component_count ? run->components[component].name
                                                              : NULL;
}

int32_t roost_run_world_size(const struct roost_run *run, int32_t component)
{
    return component >= 0 && component < run->component_count
               ? run->components[component].world_size
               : 0;
}

/* Its number among the processes of the run; -1 = it is none of them. */
static int32_t find_process(const struct roost_run *run, int32_t component, int32_t rank)
{
    if (component < 0 || component >= run->component_count || rank < 0 ||
        rank >= run->components[component].world_size)
        return -1;
    return run->components[component].first + rank;
}

const char *roost_run_node(const struct roost_run *run, int32_t component, int32_t rank)
{
    int32_t process = find_process(run, component, rank);
    return run->node_of_process && process >= 0 ? run->node_of_process[process] : NULL;
}

int roost_run_fd(const struct roost_run *run)
{
    return run->events >= 0 ? run->events : run->socket;
}

/* --- the end --- */

/* What the guards could not do, because they were killed. */
static bool end_leftovers(struct roost_run *run)
{
    bool is_done = sweep_leftovers(run->dir.id, run->cgroup, SWEEP_MS);
    /* Then whatever hid from that: orphans have become children of this process. Not before, because agents
     * on this machine may be among them, which end by themselves. */
    return (!run->is_subreaper || sweep_descendants(SWEEP_MS)) && is_done;
}

bool run_settle(struct roost_run *run)
{
    int64_t deadline = clock_ms() + SETTLE_MS;
    run->news = NULL;
    registry_server_let_go(run->server); /* no process is left that could ask it */
    bool is_gone = sweep_await_guard(run->guardian, run->guardian_pid, deadline) &&
                   sweep_await_guard(run->supervisor, run->supervisor_pid, deadline);
    roost_registry_server_free(run->server);
    run->server = NULL;
    siginfo_t info = {0};
    bool is_guarded = run->guardian >= 0 && is_gone &&
                      waitid(P_PIDFD, (id_t)run->guardian, &info, WEXITED) == 0 &&
                      info.si_code == CLD_EXITED;
    /* A guardian that did not come to its end has left its work to others. */
    bool is_done = is_guarded || end_leftovers(run);
    /* Killed just now if it was not gone before: no zombie is left to the caller. */
    if (!is_gone && sweep_await_guard(run->guardian, run->guardian_pid, clock_ms() + SWEEP_MS))
        (void)waitid(P_PIDFD, (id_t)run->guardian, &info, WEXITED);
    int *const watched[] = {&run->guardian, &run->supervisor, &run->events};
    for (size_t i = 0; i < sizeof watched / sizeof *watched; i++) {
        if (*watched[i] >= 0)
            close(*watched[i]);
        *watched[i] = -1;
    }
    return is_done && is_gone && (!is_guarded || info.si_status != GUARDIAN_NOT_EMPTY);
}

/* --- a supervisor that cannot run --- */

/* Does not rely on a supervisor that was asked to end the run at once: see cgroup_insist; and the
 * guardian ends a run whose supervisor is killed. Returns as cgroup_insist does, -1 as long as the run
 * is not to end at once. */
static int64_t run_insist(struct roost_run *run)
{
    if (!run->insist.path || run->is_lost)
        return -1;
    int64_t wait = cgroup_insist(&run->insist);
    if (run->answer_by < 0)
        return wait;
    int64_t left = run->answer_by - clock_ms();
    if (left > 0)
        return clock_sooner(wait, left);
    (void)pidfd_send_signal(run->supervisor, SIGKILL, NULL, 0);
    run->answer_by = -1;
    return wait;
}

int32_t roost_run_timeout(struct roost_run *run)
{
    return run->is_finished ? -1 : (int32_t)run_insist(run);
}

/* --- events --- */

static void note(struct roost_run *run, const struct roost_event *event)
{
    int32_t process = find_process(run, event->component, event->rank);
    struct run_life *life = process >= 0 ? &run->lives[process] : NULL;
    run_news_note(run, process, event);
    if (event->kind == ROOST_EVENT_STARTED && life)
        *life = (struct run_life){event->life, event->pid, true, event->started_at};
    else if (event->kind == ROOST_EVENT_ENDED && life)
        life->is_alive = false;
    else if (event->kind == ROOST_EVENT_FINISHED) {
        run->is_finished = true;
        run->end = *event;
    }
}

/* The next event of the message at hand. */
static bool take(struct roost_run *run, struct roost_event *out)
{
    return run->inbox.type == MSG_EVENTS &&
           outbox_take_event(run->inbox.body, run->inbox.len, &run->inbox_read, out);
}

static char *read_records(int fd, size_t *out_len)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size <= 0 || info.st_size > RECORDS_MAX)
        return NULL;
    char *bytes = malloc((size_t)info.st_size);
    ssize_t len = bytes ? file_read_at(fd, bytes, (size_t)info.st_size, 0) : -1;
    *out_len = len > 0 ? (size_t)len : 0;
    return bytes;
}

/* Fills in how a life ended, when its supervisor had recorded it and did not come to report it. */
static void find_record(const struct roost_run *run, struct roost_event *event)
{
    const char *component = run->components[event->component].name;
    int fd = openat(run->dir.fd, RUN_RECORDS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    size_t len = 0;
    char *records = read_records(fd, &len);
    (void)record_find((struct strview){records, len}, component, event);
    free(records);
    close(fd);
}

/* The supervisor is gone: fills in what it did not report. One lost life after the other, then the end. */
static bool take_lost(struct roost_run *run, struct roost_event *out)
{
    *out = (struct roost_event){.component = -1, .rank = -1, .exit_code = -1};
    for (; run->lost < run->process_count; run->lost++) {
        const struct run_life *life = &run->lives[run->lost];
        if (!life->is_alive)
            continue;
        int32_t c = 0;
        while (run->lost >= run->components[c].first + run->components[c].world_size)
            c++;
        out->kind = ROOST_EVENT_ENDED;
        out->component = c;
        out->rank = run->lost - run->components[c].first;
        out->life = life->life;
        out->pid = life->pid;
        out->started_at = life->started_at;
        out->ended_at = clock_read(CLOCK_REALTIME);
        out->end = ROOST_END_LOST;
        find_record(run, out);
        return true;
    }
    if (run->refusal.code == ROOST_OK) {
        run->refusal.code = ROOST_ERR_ENGINE;
        snprintf(run->refusal.message, sizeof run->refusal.message,
                 "the supervisor of the run is gone");
    }
    out->kind = ROOST_EVENT_FINISHED;
    out->code = run->refusal.code;
    snprintf(out->message, sizeof out->message, "%.*s", ROOST_EVENT_MESSAGE_MAX - 1,
             run->refusal.message);
    return true;
}

/* What is left although everything was killed, with its number where that is known. */
static void name_survivor(const struct roost_run *run, char *out, size_t size)
{
    struct survivor survivor = {.pid = cgroup_first(run->cgroup)};
    if (survivor.pid > 0)
        survivor.state = proc_stat(survivor.pid).state;
    else if (!run->is_subreaper || sweep_survivors(&survivor, 1) == 0) {
        snprintf(out, size, "some processes of the run cannot be killed");
        return;
    }
    survivor_describe(&survivor, out, size);
}

static void lose(struct roost_run *run)
{
    run->is_lost = true;
    if (!run_settle(run)) {
        run->refusal.code = ROOST_ERR_ENGINE;
        name_survivor(run, run->refusal.message, sizeof run->refusal.message);
    }
    lost_record(run->dir.fd, LOST_END_FAILED);
}

/* What came with the message at hand; it is for the first event taken of it. */
static void give_fd(struct roost_run *run, int *out_fd)
{
    if (out_fd)
        *out_fd = run->inbox_fd;
    else if (run->inbox_fd >= 0)
        close(run->inbox_fd);
    run->inbox_fd = -1;
}

/* By its pid: a process that it was just starting may keep its end of the socket open. */
static bool is_supervisor_gone(const struct roost_run *run)
{
    return run->supervisor >= 0 && poll(&(struct pollfd){run->supervisor, POLLIN, 0}, 1, 0) > 0;
}

bool run_next(struct roost_run *run, int32_t timeout_ms, struct roost_event *out, int *out_fd)
{
    int64_t deadline = timeout_ms < 0 ? -1 : clock_ms() + timeout_ms;
    while (!run->is_finished) {
        if (take(run, out) || (run->is_lost && take_lost(run, out))) {
            note(run, out);
            give_fd(run, out_fd);
            if (run->is_finished && !run->is_lost && !run_settle(run) && out->code == ROOST_OK) {
                out->code = ROOST_ERR_ENGINE;
                name_survivor(run, out->message, sizeof out->message);
                run->end = *out;
            }
            return true;
        }
        run_news_flush(run);
        bool is_gone = is_supervisor_gone(run); /* looked at first: it may speak before it goes */
        enum socket_pair_result result = socket_pair_receive(run->socket, &run->inbox);
        run->inbox_read = 0;
        if (result == SOCKET_PAIR_OK) {
            run->answer_by = -1;
            give_fd(run, NULL);
            run->inbox_fd = run->inbox.fd;
            /* Something failed between the last step of roost_run_start and the first process. */
            if (run->inbox.type == MSG_REFUSED && run->inbox.len == sizeof run->refusal)
                memcpy(&run->refusal, run->inbox.body, sizeof run->refusal);
            continue;
        }
        run->inbox.len = 0;
        if (result != SOCKET_PAIR_AGAIN || is_gone) {
            lose(run);
            continue;
        }
        int64_t left = deadline < 0 ? -1 : deadline - clock_ms();
        int64_t insist = run_insist(run);
        if (deadline >= 0 && left <= 0)
            return false;
        struct pollfd fds[3] = {
            {run->socket, POLLIN, 0}, {run->supervisor, POLLIN, 0}, run_news_poll(run)};
        if (poll(fds, 3, (int)clock_sooner(left, insist)) < 0 && errno != EINTR)
            return false;
    }
    return false;
}

bool roost_run_next(struct roost_run *run, int32_t timeout_ms, struct roost_event *out)
{
    return run_next(run, timeout_ms, out, NULL);
}

/* --- orders --- */

static enum roost_code send(struct roost_run *run, enum message_type type, const void *body,
                            size_t len, struct roost_error *err)
{
    if (run->is_finished || run->is_lost)
        return ROOST_OK;
    if (type != MSG_SIGNAL && type != MSG_SIGNAL_ONE) /* a stopped supervisor must run to read it */
        (void)pidfd_send_signal(run->supervisor, SIGCONT, NULL, 0);
    for (;;) {
        enum socket_pair_result result =
            socket_pair_send(run->socket, (uint16_t)type, body, len, -1);
        if (result == SOCKET_PAIR_OK || result == SOCKET_PAIR_CLOSED)
            return ROOST_OK; /* a supervisor that is gone has ended all workers */
        if (result == SOCKET_PAIR_FAILED)
            return refuse(err, ROOST_ERR_ENGINE, "cannot reach the supervisor of the run: %s",
                          strerror(errno));
        poll(&(struct pollfd){run->socket, POLLOUT, 0}, 1, 100);
        (void)run_insist(run);
    }
}

static enum roost_code ask(struct roost_run *run, enum message_type type, int32_t number,
                           struct roost_error *err)
{
    return send(run, type, &number, sizeof number, err);
}

enum roost_code run_signal_one(struct roost_run *run, const struct life_request *request,
                               struct roost_error *err)
{
    if (request->signal <= 0 || request->signal >= NSIG)
        return refuse(err, ROOST_ERR_USAGE, "%d is not the number of a signal", request->signal);
    return send(run, MSG_SIGNAL_ONE, request, sizeof *request, err);
}

enum roost_code roost_run_signal(struct roost_run *run, int32_t number, struct roost_error *err)
{
    if (number <= 0 || number >= NSIG)
        return refuse(err, ROOST_ERR_USAGE, "%d is not the number of a signal", number);
    return ask(run, MSG_SIGNAL, number, err);
}

enum roost_code roost_run_stop(struct roost_run *run, int32_t number, struct roost_error *err)
{
    if (number < 0 || number >= NSIG)
        return refuse(err, ROOST_ERR_USAGE, "%d is not the number of a signal", number);
    return ask(run, MSG_STOP, number, err);
}

enum roost_code roost_run_kill(struct roost_run *run, struct roost_error *err)
{
    if (!run->insist.path)
        run->answer_by = clock_ms() + ANSWER_MS;
    run->insist.path = run->cgroup;
    return ask(run, MSG_KILL, 0, err);
}

enum roost_code run_close(struct roost_run *run, int32_t status)
{
    return ask(run, MSG_CLOSE, status, NULL);
}

int roost_run_status(const struct roost_run *run, struct roost_event *out_first)
{
    if (out_first)
        *out_first = run->end;
    return record_status(&run->end);
}

void roost_run_free(struct roost_run *run)
{
    if (!run)
        return;
    if (!run->is_finished && run->socket >= 0) {
        struct roost_event event;
        enum roost_code code = roost_run_kill(run, NULL);
        (void)code; /* a supervisor that is gone has ended the run */
        while (roost_run_next(run, SETTLE_MS, &event))
            continue;
    }
    give_fd(run, NULL);
    if (run->socket >= 0)
        close(run->socket); /* a supervisor that is still there kills all workers now */
    if (run->guardian >= 0)
        (void)run_settle(run);
    run_dir_release(&run->dir);
    arena_release(&run->arena);
    free(run);
}
