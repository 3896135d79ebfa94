/* part_logs.c - a part sends what its workers write to where the run's logs are.
 *
 * Workers write their own files, as on one machine, and wait for nobody: what cannot be sent now is read
 * again later. A round sends what was there when it began, so that a worker that never stops writing
 * does not keep events from being told. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "supervise/part_logs.h"
#include "supervise/supervisor.h"

enum { LOOK_EVERY_MS = 50 };

static struct shipped *shipped_of(struct supervisor *supervisor, int32_t worker, int stream)
{
    return &supervisor->shipped[2 * worker + stream];
}

static void begin_round(struct supervisor *supervisor)
{
    for (int32_t i = 0; i < supervisor->spec.process_count; i++) {
        const struct worker *worker = &supervisor->workers[i];
        for (int stream = 0; worker->has_logs && stream < 2; stream++) {
            struct shipped *log = shipped_of(supervisor, i, stream);
            struct stat info;
            if (log->fd < 0)
                log->fd = worker_open_log(supervisor, worker, stream, O_RDONLY);
            if (log->fd >= 0 && fstat(log->fd, &info) == 0)
                log->until = info.st_size;
        }
    }
    supervisor->ship_mark = supervisor->outbox.len;
    supervisor->is_shipping = true;
}

/* Sends what is missing of one stream; false when there is no room now. */
static bool ship(struct supervisor *supervisor, int32_t index, int stream)
{
    struct shipped *log = shipped_of(supervisor, index, stream);
    const struct worker *worker = &supervisor->workers[index];
    struct {
        struct log_piece head;
        char bytes[PART_BODY_MAX - sizeof(struct log_piece)];
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
        enum channel_result result =
            channel_send(supervisor->channel, MSG_LOG, &piece, sizeof piece.head + (size_t)got, -1);
        if (result == CHANNEL_AGAIN)
            return false;
        log->sent += got;
    }
    return true;
}

bool part_logs_ship(struct supervisor *supervisor)
{
    if (!supervisor->shipped)
        return true;
    if (!supervisor->is_shipping)
        begin_round(supervisor);
    for (int32_t i = 0; i < supervisor->spec.process_count; i++)
        for (int stream = 0; stream < 2; stream++)
            if (!ship(supervisor, i, stream))
                return false;
    supervisor->is_shipping = false;
    return true;
}

int64_t part_logs_tick(const struct supervisor *supervisor)
{
    return supervisor->setup.is_part && supervisor->alive > 0 ? LOOK_EVERY_MS : -1;
}

void part_logs_release(struct supervisor *supervisor)
{
    for (int32_t i = 0; supervisor->shipped && i < 2 * supervisor->spec.process_count; i++)
        if (supervisor->shipped[i].fd >= 0)
            close(supervisor->shipped[i].fd);
}
