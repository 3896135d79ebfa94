/* ready.c - when a component may be relied on: at once when all its processes have started, or when
 * each has opened a port, made a file or printed a line.
 *
 * All three are looked at again and again at short intervals: the port and the file have no event
 * that can be trusted on every file system and address family, and a component is waited for only
 * while it starts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "port/port_socket.h"
#include "supervise/clock.h"
#include "supervise/supervisor.h"

enum { LOOK_EVERY_MS = 25, PROBE_MS = 1000, READ_SIZE = 64 * 1024 };

/* --- what a process can show --- */

static void stop_probing(struct worker *worker)
{
    if (worker->is_probing)
        port_probe_end(&worker->probe);
    worker->is_probing = false;
}

/* One connection is tried for a while: each new one would take a place in the queue of a server that
 * does not accept yet, and fill it. But not for ever: of its two addresses one may never answer while
 * somebody has begun to listen on the other, which has refused long ago. */
static bool has_port(struct worker *worker, int32_t port)
{
    if (worker->is_probing && clock_ms() >= worker->probe_deadline)
        stop_probing(worker);
    if (!worker->is_probing)
        worker->probe_deadline = clock_ms() + PROBE_MS;
    enum port_answer answer = worker->is_probing ? port_probe_check(&worker->probe)
                                                 : port_probe_start(&worker->probe, port);
    worker->is_probing = answer == PORT_WAITING;
    if (!worker->is_probing)
        port_probe_end(&worker->probe);
    return answer == PORT_OPEN;
}

void ready_reset(struct supervisor *supervisor, struct worker *worker)
{
    struct component_run *run = &supervisor->components[worker->component];
    if (worker->is_ready && run->state != COMPONENT_READY)
        run->ready_count--;
    worker->is_ready = false;
    stop_probing(worker);
}

static bool find_file(const struct spec_process *process, struct stat *out)
{
    if (*process->ready_what == '/' || !*process->cwd)
        return stat(process->ready_what, out) == 0;
    int dir = open(process->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return false;
    bool is_there = fstatat(dir, process->ready_what, out, 0) == 0;
    close(dir);
    return is_there;
}

static int64_t changed_at(const struct stat *info)
{
    return (int64_t)info->st_ctim.tv_sec * 1000000000 + info->st_ctim.tv_nsec;
}

void ready_mark(struct supervisor *supervisor, struct worker *worker)
{
    struct stat info;
    if (worker_component(supervisor, worker)->ready != READY_FILE)
        return;
    worker->had_file = find_file(worker_process(supervisor, worker), &info);
    worker->file_inode = worker->had_file ? (uint64_t)info.st_ino : 0;
    worker->file_changed = worker->had_file ? changed_at(&info) : 0;
}

/* Made, or made anew, since the life began. No clock is asked: that of a file server may differ. */
static bool has_file(const struct supervisor *supervisor, const struct worker *worker)
{
    struct stat info;
    if (!find_file(worker_process(supervisor, worker), &info))
        return false;
    return !worker->had_file || worker->file_inode != (uint64_t)info.st_ino ||
           worker->file_changed != changed_at(&info);
}

/* Searches what was appended to one stream since the last look. The end of what was seen is looked
 * at again, as the line may have come in two pieces. */
static bool has_line(struct supervisor *supervisor, struct worker *worker, int stream)
{
    struct strview wanted = sv_from(worker_process(supervisor, worker)->ready_what);
    int fd = worker_open_log(supervisor, worker, stream, O_RDONLY);
    char *bytes = fd >= 0 ? malloc(READ_SIZE + wanted.len) : NULL;
    bool is_found = false;
    while (bytes && !is_found) {
        int64_t back = worker->line_seen[stream] < (int64_t)wanted.len ? worker->line_seen[stream]
                                                                       : (int64_t)wanted.len;
        int64_t from = worker->line_seen[stream] - back;
        ssize_t got = file_read_at(fd, bytes, READ_SIZE + wanted.len, from);
        if (got <= back)
            break;
        is_found = memmem(bytes, (size_t)got, wanted.at, wanted.len) != NULL;
        worker->line_seen[stream] = from + got;
    }
    free(bytes);
    if (fd >= 0)
        close(fd);
    return is_found;
}

static bool looks_ready(struct supervisor *supervisor, struct worker *worker)
{
    const struct spec_process *process = worker_process(supervisor, worker);
    if (supervisor->parts) /* its part looks, and tells */
        return worker->is_ready;
    switch (worker_component(supervisor, worker)->ready) {
    case READY_PORT: return has_port(worker, process->ready_port);
    case READY_FILE: return has_file(supervisor, worker);
    case READY_LINE: return has_line(supervisor, worker, 0) || has_line(supervisor, worker, 1);
    case READY_AT_ONCE: break;
    }
    return true;
}

/* --- components --- */

struct missing {
    char text[192];
};

static struct missing what_is_missing(const struct supervisor *supervisor,
                                      const struct worker *worker)
{
    static const char *const words[][2] = {
        [READY_AT_ONCE] = {"", ""},
        [READY_PORT] = {"its port", "is not open"},
        [READY_FILE] = {"its file", "is not there"},
        [READY_LINE] = {"its line", "has not been printed"},
    };
    enum ready_kind kind = worker_component(supervisor, worker)->ready;
    const struct spec_process *process = worker_process(supervisor, worker);
    struct missing out;
    if (kind == READY_PORT && process->ready_port)
        snprintf(out.text, sizeof out.text, "%s %d %s", words[kind][0], process->ready_port,
                 words[kind][1]);
    else if (process->ready_what[0])
        snprintf(out.text, sizeof out.text, "%s '%s' %s", words[kind][0],
                 quote(sv_from(process->ready_what)).text, words[kind][1]);
    else /* what it is, only its part knows */
        snprintf(out.text, sizeof out.text, "%s %s", words[kind][0], words[kind][1]);
    return out;
}

static void is_ready_now(struct supervisor *supervisor, struct worker *worker)
{
    worker->is_ready = true;
    supervisor->components[worker->component].ready_count++;
}

void ready_told(struct supervisor *supervisor, struct worker *worker)
{
    if (!worker->is_ready)
        is_ready_now(supervisor, worker);
}

/* --- of a part: each worker is told of by itself --- */

static void tell_ready(struct supervisor *supervisor, struct worker *worker)
{
    worker->is_ready = true;
    struct roost_event event = outbox_event(ROOST_EVENT_READY, worker);
    outbox_put(supervisor, &event);
}

static bool is_awaited(const struct supervisor *supervisor, const struct worker *worker)
{
    return worker->state == WORKER_RUNNING && !worker->is_ready &&
           worker_component(supervisor, worker)->ready != READY_AT_ONCE;
}

void ready_look_last(struct supervisor *supervisor, struct worker *worker)
{
    if (is_awaited(supervisor, worker) &&
        worker_component(supervisor, worker)->ready != READY_PORT &&
        looks_ready(supervisor, worker))
        tell_ready(supervisor, worker);
}

static int64_t tick_part(struct supervisor *supervisor)
{
    int64_t wait = -1;
    for (int32_t i = 0; i < supervisor->spec.process_count; i++) {
        struct worker *worker = &supervisor->workers[i];
        if (!is_awaited(supervisor, worker))
            continue;
        if (looks_ready(supervisor, worker))
            tell_ready(supervisor, worker);
        else
            wait = LOOK_EVERY_MS;
    }
    return wait;
}

/* --- components --- */

void ready_ended(struct supervisor *supervisor, struct worker *worker)
{
    stop_probing(worker);
    if (supervisor->setup.is_part)
        return;
    const struct spec_component *component = worker_component(supervisor, worker);
    const struct component_run *run = &supervisor->components[worker->component];
    if (component->ready == READY_AT_ONCE || run->state == COMPONENT_READY || worker->is_ready ||
        supervisor->phase != PHASE_RUNNING)
        return;
    if (component->ready != READY_PORT && looks_ready(supervisor, worker))
        is_ready_now(supervisor, worker);
    else
        lives_fail(supervisor, worker, ROOST_ERR_WORKER, "it ended before it was ready: %s",
                   what_is_missing(supervisor, worker).text);
}

/* Looks at every process that is not ready yet; the first of them is told when time is up. */
static void look(struct supervisor *supervisor, int32_t index)
{
    const struct spec_component *component = &supervisor->spec.components[index];
    struct component_run *run = &supervisor->components[index];
    struct worker *missing = NULL;
    for (int32_t p = 0; p < component->process_count; p++) {
        struct worker *worker = &supervisor->workers[component->first_process + p];
        if (worker->is_ready)
            continue;
        if (worker->state == WORKER_RUNNING && looks_ready(supervisor, worker))
            is_ready_now(supervisor, worker);
        else if (!missing)
            missing = worker;
    }
    if (!missing) {
        run->state = COMPONENT_READY;
        struct roost_event event = outbox_event(ROOST_EVENT_READY, NULL);
        event.component = index;
        outbox_put(supervisor, &event);
    } else if (clock_ms() >= run->ready_deadline) {
        lives_fail(supervisor, missing, ROOST_ERR_TIMEOUT, "not ready after %d seconds: %s",
                   component->ready_timeout, what_is_missing(supervisor, missing).text);
    }
    if (run->state == COMPONENT_READY && run->log_dir >= 0) {
        close(run->log_dir);
        run->log_dir = -1;
    }
}

int64_t ready_tick(struct supervisor *supervisor)
{
    int64_t wait = -1;
    if (supervisor->phase != PHASE_RUNNING)
        return wait;
    if (supervisor->setup.is_part)
        return tick_part(supervisor);
    for (int32_t c = 0; c < supervisor->spec.component_count; c++) {
        struct component_run *run = &supervisor->components[c];
        if (run->state != COMPONENT_UP || run->asked > 0)
            continue;
        if (supervisor->spec.components[c].ready == READY_AT_ONCE) {
            run->state = COMPONENT_READY;
            struct roost_event event = outbox_event(ROOST_EVENT_READY, NULL);
            event.component = c;
            outbox_put(supervisor, &event);
        } else {
            look(supervisor, c);
        }
        wait = run->state == COMPONENT_READY ? 0 : wait < 0 ? LOOK_EVERY_MS : wait;
    }
    return wait;
}
