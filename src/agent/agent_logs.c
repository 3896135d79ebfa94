/* agent_logs.c - an agent sends the logs of its workers to the machine that has the run's logs.
 *
 * Workers write their own files, as on one machine, and wait for nothing: bytes that cannot be sent now are
 * read again later. A round sends the bytes that existed when it began, so that a worker that never stops
 * writing does not delay events. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_internal.h"

enum { LOOK_EVERY_MS = 50 };

bool agent_logs_prepare(struct agent *agent)
{
    int64_t count = 2 * (int64_t)agent->watcher.spec.process_count;
    agent->shipped = arena_zeroed(&agent->watcher.arena, struct shipped, count + 1);
    for (int64_t i = 0; agent->shipped && i < count; i++)
        agent->shipped[i].fd = -1;
    return agent->shipped != NULL;
}

static void begin_round(struct agent *agent)
{
    struct watcher *watcher = &agent->watcher;
    for (int32_t i = 0; i < watcher->spec.process_count; i++) {
        const struct worker *worker = &watcher->workers[i];
        for (int stream = 0; worker->has_logs && stream < 2; stream++) {
            struct shipped *log = &agent->shipped[2 * i + stream];
            struct stat info;
            if (log->fd < 0)
                log->fd = worker_open_log(watcher, worker, stream, O_RDONLY);
            if (log->fd >= 0 && fstat(log->fd, &info) == 0)
                log->until = info.st_size;
        }
    }
    outbox_mark(&watcher->outbox);
    watcher->outbox.is_held = true;
}

/* Sends what is missing of one stream; false when the socket has no room now. */
static bool ship(struct agent *agent, int32_t index, int stream)
{
    struct shipped *log = &agent->shipped[2 * index + stream];
    const struct worker *worker = &agent->watcher.workers[index];
    struct {
        struct log_piece head;
        char bytes[AGENT_BODY_MAX - sizeof(struct log_piece)];
    } piece = {.head = {worker->component, worker->rank, stream, 0}};
    while (log->sent < log->until) {
        int64_t left = log->until - log->sent;
        size_t size = left < (int64_t)sizeof piece.bytes ? (size_t)left : sizeof piece.bytes;
        ssize_t got = pread(log->fd, piece.bytes, size, log->sent);
        if (got <= 0) { /* it was cut short, or cannot be read: there is no more in this round */
            log->until = log->sent;
            return true;
        }
        piece.head.offset = log->sent;
        enum socket_pair_result result = socket_pair_send(
            agent->watcher.outbox.socket, MSG_LOG, &piece, sizeof piece.head + (size_t)got, -1);
        if (result == SOCKET_PAIR_AGAIN)
            return false;
        log->sent += got;
    }
    return true;
}

bool agent_logs_ship(struct agent *agent)
{
    if (!agent->watcher.outbox.is_held)
        begin_round(agent);
    for (int32_t i = 0; i < agent->watcher.spec.process_count; i++)
        for (int stream = 0; stream < 2; stream++)
            if (!ship(agent, i, stream))
                return false;
    agent->watcher.outbox.is_held = false;
    return true;
}

int64_t agent_logs_tick(const struct agent *agent)
{
    return agent->watcher.alive > 0 ? LOOK_EVERY_MS : -1;
}

void agent_logs_release(struct agent *agent)
{
    for (int32_t i = 0; agent->shipped && i < 2 * agent->watcher.spec.process_count; i++)
        if (agent->shipped[i].fd >= 0)
            close(agent->shipped[i].fd);
}
