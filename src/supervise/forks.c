/* forks.c - asking forkers, and believing them only what can be checked. */
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
#include "config/variables.h"
#include "rpc/channel.h"
#include "supervise/clock.h"

enum { AT_ONCE = 4 }; /* requests under way: the channel has room for them */

struct born {
    int32_t rank, life, pid;
};

bool forks_are_busy(const struct component_run *run)
{
    return run->forking >= AT_ONCE;
}

void forks_close(struct supervisor *supervisor, struct component_run *run)
{
    if (run->forker < 0)
        return;
    (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, run->forker, NULL);
    close(run->forker);
    run->forker = -1;
}

/* Once for each component: what was to start quickly does not, and why. It is a note of the component, which
 * its group tells. */
__attribute__((format(printf, 3, 4))) static void say_cold(struct supervisor *supervisor,
                                                           int32_t component, const char *format,
                                                           ...)
{
    struct component_run *run = &supervisor->components[component];
    struct roost_event event = outbox_event(ROOST_EVENT_NOTE, NULL);
    char why[160];
    va_list list;
    if (run->has_said_cold)
        return;
    run->has_said_cold = true;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    event.component = component;
    snprintf(event.message, sizeof event.message, "%s starts cold: %s",
             supervisor->spec.components[component].name, why);
    outbox_put(supervisor, &event);
}

/* --- who can be forked --- */

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

/* The name of a variable that one list has and the other has not, or not so; empty when there is none. What
 * each process has in its own way does not count: the warm program has none of it. */
static struct strview find_other(const struct spec_list *list, const struct spec_list *other)
{
    const char *at = list->first;
    for (uint32_t i = 0; i < list->count; i++, at = spec_next(at))
        if (!is_variable_of_one_process(name_of(at)) && !has_entry(other, at))
            return name_of(at);
    return (struct strview){0};
}

static bool is_same_command(const struct spec_list *a, const struct spec_list *b)
{
    return a->count == b->count && a->len == b->len && memcmp(a->first, b->first, a->len) == 0;
}

/* A fork has what the warm program imported, and any library may read any variable when it is imported: so
 * both must have the same. Says what is not, once, and returns false then. */
static bool may_fork(struct supervisor *supervisor, const struct worker *worker,
                     const struct start *start)
{
    const struct spec_component *component = worker_component(supervisor, worker);
    const struct spec_process *first = &supervisor->spec.processes[component->first_process];
    const struct spec_process *process = worker_process(supervisor, worker);
    if (start->handed_count != 1) {
        say_cold(supervisor, worker->component, "rank %d has ports that are handed over",
                 worker->rank);
        return false;
    }
    if (!is_same_command(&process->argv, &first->argv)) {
        say_cold(supervisor, worker->component, "rank %d has another command than rank 0",
                 worker->rank);
        return false;
    }
    struct strview other = find_other(&process->env, &first->env);
    if (other.len == 0)
        other = find_other(&first->env, &process->env);
    if (other.len > 0)
        say_cold(supervisor, worker->component, "rank %d has another %s than rank 0", worker->rank,
                 quote(other).text);
    return other.len == 0;
}

/* --- the forker --- */

/* The environment of a process without what is its own; NULL without memory. */
static char **shared_environment(const struct start *start)
{
    size_t count = 0;
    while (start->env[count])
        count++;
    char **shared = calloc(count + 1, sizeof *shared), **at = shared;
    for (char *const *entry = start->env; shared && *entry; entry++)
        if (!is_variable_of_one_process(name_of(*entry)))
            *at++ = *entry;
    return shared;
}

static bool open_forker(struct supervisor *supervisor, const struct worker *worker,
                        const struct start *start, const int logs[2])
{
    const struct spec_component *component = worker_component(supervisor, worker);
    struct component_run *run = &supervisor->components[worker->component];
    char *argv[FORKER_WORDS_MAX + 1] = {NULL};
    int ends[2];
    const char *word = component->forker.first;
    for (uint32_t i = 0; i < component->forker.count; i++, word = spec_next(word))
        argv[i] = (char *)(uintptr_t)word;
    char **env = shared_environment(start);
    if (!env || !channel_pair(ends)) {
        free(env);
        return false;
    }
    struct spawn spawn = {.paths = (const char *const[]){argv[0], NULL},
                          .argv = argv,
                          .env = env,
                          .fd = {supervisor->null, logs[0], logs[1]},
                          .handed = &ends[1],
                          .handed_count = 1,
                          .nofile = &supervisor->nofile};
    struct spawned spawned = spawn_process(&spawn);
    free(env);
    close(ends[1]);
    if (spawned.pidfd >= 0)
        close(
            spawned
                .pidfd); /* its end is the end of its channel; it is reaped like any adopted one */
    if (spawned.failed == SPAWN_OK && supervisor_watch(supervisor, ends[0], EPOLLIN)) {
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

static bool ask(const struct supervisor *supervisor, const struct worker *worker,
                const struct start *start, const int logs[2], int forker)
{
    int32_t numbers[3] = {worker->rank, worker->life, (int32_t)getpid()};
    struct text body = TEXT_INIT;
    text_append(&body, (const char *)numbers, sizeof numbers);
    spec_put_string(&body, sv_from(worker_process(supervisor, worker)->cwd));
    int fds[4] = {logs[0], logs[1], start->ends[1], environment_file(start)};
    bool is_sent = !body.has_failed && fds[3] >= 0 &&
                   channel_send_many(forker, FORK_ONE, body.bytes, body.len, fds, 4) == CHANNEL_OK;
    if (fds[3] >= 0)
        close(fds[3]);
    text_release(&body);
    return is_sent;
}

bool forks_take(struct supervisor *supervisor, struct worker *worker, struct start *start,
                const int logs[2])
{
    const struct spec_component *component = worker_component(supervisor, worker);
    struct component_run *run = &supervisor->components[worker->component];
    if (component->forker.count == 0 || run->is_cold || start->ends[1] < 0)
        return false;
    if (!may_fork(supervisor, worker, start))
        return false;
    if (run->forker < 0 && !open_forker(supervisor, worker, start, logs)) {
        say_cold(supervisor, worker->component, "its warm program cannot be started: %s",
                 strerror(errno));
        run->is_cold = true;
        return false;
    }
    if (!ask(supervisor, worker, start, logs, run->forker)) {
        say_cold(supervisor, worker->component, "its warm program cannot be asked: %s",
                 strerror(errno));
        return false;
    }
    worker->state = WORKER_FORKING;
    worker->driver_end = start->ends[0];
    start->ends[0] = -1;
    run->forking++;
    return true;
}

/* --- what it says --- */

static void bear(struct supervisor *supervisor, int32_t component, const struct born *born)
{
    const struct spec_component *spec = &supervisor->spec.components[component];
    if (born->rank < 0 || born->rank >= spec->process_count || born->pid <= 0)
        return;
    struct worker *worker = &supervisor->workers[spec->first_process + born->rank];
    if (worker->state != WORKER_FORKING || worker->life != born->life) {
        (void)kill(born->pid, SIGKILL); /* the run was ended meanwhile; it is our own descendant */
        return;
    }
    supervisor->components[component].forking--;
    struct spawned spawned = {.pid = born->pid, .pidfd = pidfd_open(born->pid, 0)};
    worker_begins(supervisor, worker, &spawned, worker->driver_end);
}

/* Those that were to be forked are executed. */
static void go_cold(struct supervisor *supervisor, int32_t component, const char *why)
{
    const struct spec_component *spec = &supervisor->spec.components[component];
    struct component_run *run = &supervisor->components[component];
    forks_close(supervisor, run);
    run->forking = 0;
    if (run->is_cold)
        return;
    run->is_cold = true;
    say_cold(supervisor, component, "%s", why);
    for (int32_t i = 0; i < spec->process_count; i++) {
        struct worker *worker = &supervisor->workers[spec->first_process + i];
        if (worker->state != WORKER_FORKING)
            continue;
        close(worker->driver_end);
        worker->state = WORKER_WAITING;
        worker->life--;
        if (!supervisor->is_start_over)
            (void)worker_start(supervisor, worker);
    }
}

static void hear_one(struct supervisor *supervisor, int32_t component)
{
    struct component_run *run = &supervisor->components[component];
    struct message message;
    struct born born;
    enum channel_result result = CHANNEL_OK;
    while (run->forker >= 0 && (result = channel_receive(run->forker, &message)) == CHANNEL_OK) {
        if (message.fd >= 0)
            close(message.fd);
        if (message.type == FORK_BORN && message.len == sizeof born) {
            memcpy(&born, message.body, sizeof born);
            bear(supervisor, component, &born);
        } else if (message.type == FORK_COLD) {
            char why[160];
            snprintf(why, sizeof why, "%.*s", (int)message.len, message.body);
            go_cold(supervisor, component, why);
        }
    }
    if (run->forker >= 0 && result != CHANNEL_AGAIN)
        go_cold(supervisor, component, "its warm program has ended");
}

bool forks_hear(struct supervisor *supervisor, int fd)
{
    bool is_theirs = fd < 0;
    for (int32_t c = 0; c < supervisor->spec.component_count; c++) {
        struct component_run *run = &supervisor->components[c];
        if (run->forker < 0 || (fd >= 0 && run->forker != fd))
            continue;
        is_theirs = true;
        hear_one(supervisor, c);
        /* Who lives once needs no forker any more; the next life is another matter. */
        if (run->forking == 0 && run->next_rank == supervisor->spec.components[c].process_count &&
            supervisor->spec.components[c].restart == RESTART_NEVER)
            forks_close(supervisor, run);
    }
    return is_theirs;
}
