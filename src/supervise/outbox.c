/* outbox.c - the queue of events in supervisor and agent, and how a receiver reads it.
 *
 * An event is truncated after its text and preceded by its length, so that a thousand short events cost
 * little. */
#include "supervise/outbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/socket_pair.h"
#include "supervise/messages.h"
#include "supervise/spec.h"
#include "supervise/watcher.h"

struct roost_event outbox_event(enum roost_event_kind kind, const struct worker *worker)
{
    struct roost_event event = {.kind = kind, .component = -1, .rank = -1, .exit_code = -1};
    if (worker) {
        event.component = worker->component;
        event.rank = worker->rank;
        event.life = worker->life;
        event.pid = worker->pid;
        event.started_at = worker->started_at;
    }
    return event;
}

/* --- queueing --- */

static int32_t event_len(const struct roost_event *event)
{
    return (int32_t)(offsetof(struct roost_event, message) + strlen(event->message) + 1);
}

static void lose_event(struct outbox *outbox)
{
    outbox->events.has_failed = false;
    outbox->is_closed = outbox->has_lost = true;
}

void outbox_put(struct outbox *outbox, const struct roost_event *event)
{
    if (outbox->is_closed)
        return;
    int32_t len = event_len(event);
    if (outbox_is_empty(outbox))
        outbox->events.len = outbox->sent = outbox->mark = 0;
    if (!text_reserve(&outbox->events, sizeof len + (size_t)len)) {
        lose_event(outbox);
        return;
    }
    spec_put_int(&outbox->events, len);
    text_append(&outbox->events, (const char *)event, (size_t)len);
}

static bool attach(struct outbox *outbox, size_t at, int fd)
{
    if (outbox->attachment_count == outbox->attachment_room) {
        size_t room = outbox->attachment_room ? 2 * outbox->attachment_room : 64;
        struct attachment *grown = reallocarray(outbox->attachments, room, sizeof *grown);
        if (!grown)
            return false;
        outbox->attachments = grown;
        outbox->attachment_room = room;
    }
    outbox->attachments[outbox->attachment_count++] = (struct attachment){at, fd};
    return true;
}

void outbox_put_with(struct outbox *outbox, const struct roost_event *event, int fd)
{
    outbox_put(outbox, event);
    size_t len = sizeof(int32_t) + (size_t)event_len(event);
    if (outbox->is_closed) {
        close(fd);
    } else if (!attach(outbox, outbox->events.len - len, fd)) {
        close(fd);
        lose_event(outbox);
    }
}

void outbox_report(struct outbox *outbox, enum roost_event_kind kind, const struct worker *worker,
                   enum roost_code code, const char *format, ...)
{
    struct roost_event event = outbox_event(kind, worker);
    va_list list;
    event.code = code;
    va_start(list, format);
    vsnprintf(event.message, sizeof event.message, format, list);
    va_end(list);
    outbox_put(outbox, &event);
}

void outbox_release(struct outbox *outbox)
{
    for (size_t i = 0; i < outbox->attachment_count; i++)
        close(outbox->attachments[i].fd);
    free(outbox->attachments);
    text_release(&outbox->events);
}

/* --- sending --- */

/* Whole events, as many as one message holds, up to the next one that has a descriptor: a message carries
 * one descriptor, for its first event. */
static size_t packet_len(const struct text *events, size_t from, size_t end, size_t next_attachment)
{
    size_t to = from;
    while (to < end && (to == from || to < next_attachment)) {
        int32_t len;
        memcpy(&len, events->bytes + to, sizeof len);
        if (to - from + sizeof len + (size_t)len > AGENT_BODY_MAX)
            break;
        to += sizeof len + (size_t)len;
    }
    return to - from;
}

static void flush_until(struct outbox *outbox, size_t end)
{
    size_t attached = 0; /* attachments that are sent */
    while (!outbox->is_closed && outbox->sent < end) {
        const struct attachment *attachment = &outbox->attachments[attached];
        bool has_fd = attached < outbox->attachment_count && attachment->at == outbox->sent;
        size_t next = attached + has_fd;
        size_t len =
            packet_len(&outbox->events, outbox->sent, end,
                       next < outbox->attachment_count ? outbox->attachments[next].at : SIZE_MAX);
        enum socket_pair_result result =
            socket_pair_send(outbox->socket, MSG_EVENTS, outbox->events.bytes + outbox->sent, len,
                             has_fd ? attachment->fd : -1);
        if (result == SOCKET_PAIR_AGAIN)
            break;
        if (result != SOCKET_PAIR_OK)
            outbox->is_closed = true;
        outbox->sent += len;
        if (has_fd)
            close(outbox->attachments[attached++].fd);
    }
    if (attached == 0)
        return;
    outbox->attachment_count -= attached;
    memmove(outbox->attachments, outbox->attachments + attached,
            outbox->attachment_count * sizeof *outbox->attachments);
}

void outbox_flush(struct outbox *outbox)
{
    flush_until(outbox, outbox->events.len);
}

void outbox_mark(struct outbox *outbox)
{
    outbox->mark = outbox->events.len;
}

void outbox_flush_marked(struct outbox *outbox)
{
    flush_until(outbox, outbox->mark);
}

/* --- receiving --- */

bool outbox_take_event(const char *bytes, size_t len, size_t *read, struct roost_event *out)
{
    int32_t size;
    size_t least = offsetof(struct roost_event, message) + 1;
    size_t left = len - *read;
    if (left < sizeof size)
        return false;
    memcpy(&size, bytes + *read, sizeof size);
    if (size < (int32_t)least || (size_t)size > sizeof *out || (size_t)size > left - sizeof size) {
        *read = len; /* not an event of ours: nothing after it can be trusted */
        return false;
    }
    *out = (struct roost_event){0};
    memcpy(out, bytes + *read + sizeof size, (size_t)size);
    out->message[sizeof out->message - 1] = '\0';
    *read += sizeof size + (size_t)size;
    return true;
}
