/* forks.c - the supervisor asks the forkers of components for workers, and accepts only answers that it can
 * verify. */
#include "supervise/forks.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/file.h"
#include "rpc/socket_pair.h"
#include "supervise/clock.h"

enum { AT_ONCE = 4 }; /* requests under way: the socket has room for them */

struct forked {
    int32_t rank, life, pid;
};

bool forks_are_busy(const struct component_run *run)
{
    return run->forking >= AT_ONCE;
}

void forks_close(struct here *here, struct component_run *run)
{
    if (run->forker < 0)
        return;
    watcher_unwatch(here->watcher, run->forker);
    close(run->forker);
    run->forker = -1;
}

/* Reports, once for each component, that it does not start quickly, and why. The note is about the
 * component, and its worker group shows it. */
__attribute__((format(printf, 3, 4))) static void report_cold(struct here *here, int32_t component,
                                                              const char *format, ...)
{
    struct component_run *run = &here->watcher->components[component];
    struct roost_event event = outbox_event(ROOST_EVENT_NOTE, NULL);
    char why[160];
    va_list list;
    if (run->has_reported_cold)
        return;
    run->has_reported_cold = true;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    event.component = component;
    snprintf(event.message, sizeof event.message, "%s starts cold: %s",
             here->watcher->spec.components[component].name, why);
    outbox_put(&here->watcher->outbox, &event);
}

/* --- which workers can be forked --- */

static struct strview name_of(const char *entry)
{
    return (struct strview){entry, strcspn(entry, "=")};
}

static bool has_entry(const struct spec_list *list, const char *entry)
{
    const char *at = list->first;
    for (uint32_t i = 0; i < list->count; i++, at = spec_next(at))
        if (strcmp(at, entry) == 0)
            return true;
    return false;
}

/* Whether each process of the component has this variable in its own way. */
static bool is_own(const struct spec_component *component, struct strview name)
{
    const char *pattern = component->own.first;
    for (uint32_t i = 0; i < component->own.count; i++, pattern = spec_next(pattern))
        if (sv_matches(name, pattern))
            return true;
    return false;
}

/* The name of a variable that one list has and the other has not, or with another value; empty when there is
 * none. What each process has in its own way does not count: the warm program has none of it. */
static struct strview find_other(const struct spec_component *component,
                                 const struct spec_list *list, const struct spec_list *other)
{
    const char *at = list->first;
    for (uint32_t i = 0; i < list->count; i++, at = spec_next(at))
        if (!is_own(component, name_of(at)) && !has_entry(other, at))
            return name_of(at);
    return (struct strview){0};
}

static bool is_same_command(const struct spec_list *a, const struct spec_list *b)
{
    return a->count == b->count && a->len == b->len && memcmp(a->first, b->first, a->len) == 0;
}

/* A fork has what the warm program imported, and any library may read any variable when it is imported:
 * so both must have the same. Reports the first difference, once, and returns false then. */
static bool may_fork(struct here *here, const struct worker *worker, const struct start *start)
{
    const struct spec_component *component = worker_component(here->watcher, worker);
    const struct spec_process *first = &here->watcher->spec.processes[component->first_process];
    const struct spec_process *process = worker_process(here->watcher, worker);
    if (start->handed_count != 1) {
        report_cold(here, worker->component, "rank %d has ports that are handed over",
                    worker->rank);
        return false;
    }
    if (!is_same_command(&process->argv, &first->argv)) {
        report_cold(here, worker->component, "rank %d has another command than rank 0",
                    worker->rank);
        return false;
    }
    struct strview other = find_other(component, &process->env, &first->env);
    if (other.len == 0)
        other = find_other(component, &first->env, &process->env);
    if (other.len > 0)
        report_cold(here, worker->component, "rank %d has another %s than rank 0", worker->rank,
                    quote(other).text);
    return other.len == 0;
}

/* --- the forker --- */

/* The environment of a process without what is its own; NULL without memory. */
static char **shared_environment(const struct spec_component *component, const struct start *start)
{
    size_t count = 0;
    while (start->env[count])
        count++;
    char **shared = calloc(count + 1, sizeof *shared), **at = shared;
    for (char *const *entry = start->env; shared && *entry; entry++)
        if (!is_own(component, name_of(*entry)))
            *at++ = *entry;
    return shared;
}

static bool open_forker(struct here *here, const struct worker *worker, const struct start *start,
                        const int logs[2])
{
    const struct spec_component *component = worker_component(here->watcher, worker);
    struct component_run *run = &here->watcher->components[worker->component];
    char *argv[FORKER_WORDS_MAX + 1] = {NULL};
    int ends[2];
    const char *word = component->forker.first;
    for (uint32_t i = 0; i < component->forker.count; i++, word = spec_next(word))
        argv[i] = (char *)(uintptr_t)word;
    char **env = shared_environment(component, start);
    if (!env || !socket_pair_open(ends)) {
        free(env);
        return false;
    }
    struct spawn spawn = {.paths = (const char *const[]){argv[0], NULL},
                          .argv = argv,
                          .env = env,
                          .fd = {here->watcher->null, logs[0], logs[1]},
                          .handed = &ends[1],
                          .handed_count = 1,
                          .nofile = &here->nofile};
    struct spawned spawned = spawn_process(&spawn);
    free(env);
    close(ends[1]);
    if (spawned.pidfd >= 0)
        close(spawned
                  .pidfd); /* its end is the end of its socket; it is reaped like any adopted one */
    if (spawned.failed == SPAWN_OK && watcher_watch(here->watcher, ends[0], EPOLLIN)) {
        run->forker = ends[0];
        return true;
    }
    close(ends[0]);
    return false;
}

/* The environment as a file in memory: it may be as large as exec allows, which no message is. */
static int environment_file(const struct start *start)
{
    struct text entries = TEXT_INIT;
    for (char *const *entry = start->env; *entry; entry++)
        spec_put_string(&entries, sv_from(*entry));
    int file = entries.has_failed ? -1 : memfd_create("roost-environment", MFD_CLOEXEC);
    if (file >= 0 && (!file_write(file, entries.bytes, entries.len) || lseek(file, 0, SEEK_SET))) {
        close(file);
        file = -1;
    }
    text_release(&entries);
    return file;
}

static bool ask(const struct here *here, const struct worker *worker, const struct start *start,
                const int logs[2], int forker)
{
    int32_t numbers[3] = {worker->rank, worker->life, (int32_t)getpid()};
    struct text body = TEXT_INIT;
    text_append(&body, (const char *)numbers, sizeof numbers);
    spec_put_string(&body, sv_from(worker_process(here->watcher, worker)->cwd));
    int fds[4] = {logs[0], logs[1], start->ends[1], environment_file(start)};
    bool is_sent =
        !body.has_failed && fds[3] >= 0 &&
        socket_pair_send_many(forker, FORK_ONE, body.bytes, body.len, fds, 4) == SOCKET_PAIR_OK;
    if (fds[3] >= 0)
        close(fds[3]);
    text_release(&body);
    return is_sent;
}

bool forks_take(struct here *here, struct worker *worker, struct start *start, const int logs[2])
{
    const struct spec_component *component = worker_component(here->watcher, worker);
    struct component_run *run = &here->watcher->components[worker->component];
    if (component->forker.count == 0 || run->is_cold || start->ends[1] < 0)
        return false;
    if (!may_fork(here, worker, start))
        return false;
    if (run->forker < 0 && !open_forker(here, worker, start, logs)) {
        report_cold(here, worker->component, "its warm program cannot be started: %s",
                    strerror(errno));
        run->is_cold = true;
        return false;
    }
    if (!ask(here, worker, start, logs, run->forker)) {
        report_cold(here, worker->component, "its warm program cannot be asked: %s",
                    strerror(errno));
        return false;
    }
    worker->state = WORKER_FORKING;
    worker->driver_end = start->ends[0];
    start->ends[0] = -1;
    run->forking++;
    return true;
}

/* --- messages of a forker --- */

static void adopt(struct here *here, int32_t component, const struct forked *forked)
{
    const struct spec_component *spec = &here->watcher->spec.components[component];
    if (forked->rank < 0 || forked->rank >= spec->process_count || forked->pid <= 0)
        return;
    struct worker *worker = &here->watcher->workers[spec->first_process + forked->rank];
    if (worker->state != WORKER_FORKING || worker->life != forked->life) {
        (void)kill(forked->pid,
                   SIGKILL); /* the run was ended meanwhile; it is our own descendant */
        return;
    }
    here->watcher->components[component].forking--;
    struct spawned spawned = {.pid = forked->pid, .pidfd = pidfd_open(forked->pid, 0)};
    here_began(here, worker, &spawned, NULL, worker->driver_end);
}

/* Workers that were to be forked are executed instead. */
static void go_cold(struct here *here, int32_t component, const char *why)
{
    const struct spec_component *spec = &here->watcher->spec.components[component];
    struct component_run *run = &here->watcher->components[component];
    forks_close(here, run);
    run->forking = 0;
    if (run->is_cold)
        return;
    run->is_cold = true;
    report_cold(here, component, "%s", why);
    for (int32_t i = 0; i < spec->process_count; i++) {
        struct worker *worker = &here->watcher->workers[spec->first_process + i];
        if (worker->state != WORKER_FORKING)
            continue;
        close(worker->driver_end);
        worker->state = WORKER_WAITING;
        if (here->watcher->is_start_over)
            worker->life--;
        else
            (void)here_begin(here, worker);
    }
}

static void read_one(struct here *here, int32_t component)
{
    struct component_run *run = &here->watcher->components[component];
    struct message message;
    struct forked forked;
    enum socket_pair_result result = SOCKET_PAIR_OK;
    while (run->forker >= 0 &&
           (result = socket_pair_receive(run->forker, &message)) == SOCKET_PAIR_OK) {
        if (message.fd >= 0)
            close(message.fd);
        if (message.type == FORK_STARTED && message.len == sizeof forked) {
            memcpy(&forked, message.body, sizeof forked);
            adopt(here, component, &forked);
        } else if (message.type == FORK_COLD) {
            char why[160];
            snprintf(why, sizeof why, "%.*s", (int)message.len, message.body);
            go_cold(here, component, why);
        }
    }
    if (run->forker >= 0 && result != SOCKET_PAIR_AGAIN)
        go_cold(here, component, "its warm program has ended");
}

bool forks_read(struct here *here, int fd)
{
    bool is_theirs = fd < 0;
    for (int32_t c = 0; c < here->watcher->spec.component_count; c++) {
        struct component_run *run = &here->watcher->components[c];
        if (run->forker < 0 || (fd >= 0 && run->forker != fd))
            continue;
        is_theirs = true;
        read_one(here, c);
        /* A component whose workers live once needs no forker any more; a restart would. */
        if (run->forking == 0 &&
            run->next_rank == here->watcher->spec.components[c].process_count &&
            here->watcher->spec.components[c].restart == SPEC_RESTART_NEVER)
            forks_close(here, run);
    }
    return is_theirs;
}
