/* outbox.c - what the supervisor tells: events to the driver, records to the run's own file.
 *
 * The driver may be slow, or stopped in a debugger; workers must not feel it. Events wait here and go
 * out as the channel takes them. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "rpc/channel.h"
#include "supervise/record.h"
#include "supervise/supervisor.h"

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

/* A driver that does not hear everything hears nothing more: the run ends. */
static void lose_words(struct supervisor *supervisor)
{
    supervisor->outbox.has_failed = false;
    supervisor->is_driver_gone = true;
    lives_kill(supervisor, "");
}

void outbox_put(struct supervisor *supervisor, const struct roost_event *event)
{
    if (supervisor->is_driver_gone)
        return;
    int32_t len = (int32_t)(offsetof(struct roost_event, message) + strlen(event->message) + 1);
    if (outbox_is_empty(supervisor)) {
        supervisor->outbox.len = 0;
        supervisor->outbox_sent = 0;
        supervisor->ship_mark = 0;
    }
    if (!text_reserve(&supervisor->outbox, sizeof len + (size_t)len)) {
        lose_words(supervisor);
        return;
    }
    spec_put_int(&supervisor->outbox, len);
    text_append(&supervisor->outbox, (const char *)event, (size_t)len);
}

static bool add_parcel(struct supervisor *supervisor, size_t at, int fd)
{
    if (supervisor->parcel_count == supervisor->parcel_room) {
        size_t room = supervisor->parcel_room ? 2 * supervisor->parcel_room : 64;
        struct parcel *grown = reallocarray(supervisor->parcels, room, sizeof *grown);
        if (!grown)
            return false;
        supervisor->parcels = grown;
        supervisor->parcel_room = room;
    }
    supervisor->parcels[supervisor->parcel_count++] = (struct parcel){at, fd};
    return true;
}

void outbox_put_with(struct supervisor *supervisor, const struct roost_event *event, int fd)
{
    outbox_put(supervisor, event);
    size_t len =
        sizeof(int32_t) + offsetof(struct roost_event, message) + strlen(event->message) + 1;
    if (supervisor->is_driver_gone) {
        close(fd);
    } else if (!add_parcel(supervisor, supervisor->outbox.len - len, fd)) {
        close(fd);
        lose_words(supervisor);
    }
}

void outbox_release(struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->parcel_count; i++)
        close(supervisor->parcels[i].fd);
    free(supervisor->parcels);
    text_release(&supervisor->outbox);
}

void outbox_say(struct supervisor *supervisor, enum roost_event_kind kind,
                const struct worker *worker, enum roost_code code, const char *format, ...)
{
    struct roost_event event = outbox_event(kind, worker);
    va_list list;
    event.code = code;
    va_start(list, format);
    vsnprintf(event.message, sizeof event.message, format, list);
    va_end(list);
    outbox_put(supervisor, &event);
}

/* Whole events, as many as one message holds, up to the next one that has a descriptor: a message
 * carries one, for its first event. */
static size_t packet_len(const struct text *outbox, size_t from, size_t end, size_t next_parcel)
{
    size_t to = from;
    while (to < end && (to == from || to < next_parcel)) {
        int32_t len;
        memcpy(&len, outbox->bytes + to, sizeof len);
        if (to - from + sizeof len + (size_t)len > PART_BODY_MAX)
            break;
        to += sizeof len + (size_t)len;
    }
    return to - from;
}

void outbox_flush(struct supervisor *supervisor)
{
    struct text *outbox = &supervisor->outbox;
    size_t sent = 0; /* parcels */
    size_t end = outbox->len;
    if (supervisor->setup.is_part && !supervisor->is_driver_gone) {
        /* What a process wrote is there before its end is told. */
        if (!part_logs_ship(supervisor))
            return;
        end = supervisor->ship_mark;
    }
    while (!supervisor->is_driver_gone && supervisor->outbox_sent < end) {
        const struct parcel *parcel = &supervisor->parcels[sent];
        bool has_parcel = sent < supervisor->parcel_count && parcel->at == supervisor->outbox_sent;
        size_t next = sent + has_parcel;
        size_t len =
            packet_len(outbox, supervisor->outbox_sent, end,
                       next < supervisor->parcel_count ? supervisor->parcels[next].at : SIZE_MAX);
        enum channel_result result =
            channel_send(supervisor->channel, MSG_EVENTS, outbox->bytes + supervisor->outbox_sent,
                         len, has_parcel ? parcel->fd : -1);
        if (result == CHANNEL_AGAIN)
            break;
        if (result != CHANNEL_OK)
            supervisor->is_driver_gone = true;
        supervisor->outbox_sent += len;
        if (has_parcel)
            close(supervisor->parcels[sent++].fd);
    }
    if (sent == 0)
        return;
    supervisor->parcel_count -= sent;
    memmove(supervisor->parcels, supervisor->parcels + sent,
            supervisor->parcel_count * sizeof *supervisor->parcels);
}

void outbox_record(struct supervisor *supervisor, const struct roost_event *event)
{
    struct text line = TEXT_INIT;
    if (supervisor->setup.is_part)
        return;
    if (event->kind == ROOST_EVENT_FINISHED)
        record_put_end(&line, supervisor->has_failed, event->component < 0 ? event->signal : 0,
                       event->ended_at);
    else
        record_put_life(&line, supervisor->spec.components[event->component].name, event);
    const char *bytes = text_string(&line);
    /* A line is whole or, on a full disk, not there. */
    if (bytes && !file_write(supervisor->records, bytes, line.len)) {
        int error = errno;
        (void)!ftruncate(supervisor->records, supervisor->records_len);
        outbox_say(supervisor, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_IO,
                   "cannot write the exit record of a process: %s", strerror(error));
    } else if (bytes) {
        supervisor->records_len += (int64_t)line.len;
    }
    text_release(&line);
}
