/* outbox.c - what the supervisor tells: events to the driver, records to the run's own file.
 *
 * The driver may be slow, or stopped in a debugger; workers must not feel it. Events wait here and go
 * out as the channel takes them. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "launch/local/supervisor.h"
#include "rpc/channel.h"

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

void outbox_put(struct supervisor *supervisor, const struct roost_event *event)
{
    if (supervisor->is_driver_gone)
        return;
    int32_t len = (int32_t)(offsetof(struct roost_event, message) + strlen(event->message) + 1);
    if (outbox_is_empty(supervisor)) {
        supervisor->outbox.len = 0;
        supervisor->outbox_sent = 0;
    }
    spec_put_int(&supervisor->outbox, len);
    text_append(&supervisor->outbox, (const char *)event, (size_t)len);
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

/* Whole events, as many as one message holds. */
static size_t packet_len(const struct text *outbox, size_t from)
{
    size_t to = from;
    while (to < outbox->len) {
        int32_t len;
        memcpy(&len, outbox->bytes + to, sizeof len);
        if (to - from + sizeof len + (size_t)len > CHANNEL_BODY_MAX)
            break;
        to += sizeof len + (size_t)len;
    }
    return to - from;
}

void outbox_flush(struct supervisor *supervisor)
{
    struct text *outbox = &supervisor->outbox;
    while (!supervisor->is_driver_gone && supervisor->outbox_sent < outbox->len) {
        size_t len = packet_len(outbox, supervisor->outbox_sent);
        enum channel_result result = channel_send(supervisor->channel, MSG_EVENTS,
                                                  outbox->bytes + supervisor->outbox_sent, len, -1);
        if (result == CHANNEL_AGAIN)
            return;
        if (result != CHANNEL_OK)
            supervisor->is_driver_gone = true;
        supervisor->outbox_sent += len;
    }
}

static void put_time(struct text *out, const char *key, int64_t ns)
{
    text_printf(out, ",\"%s\":%lld.%09lld", key, (long long)(ns / 1000000000),
                (long long)(ns % 1000000000));
}

void outbox_record(struct supervisor *supervisor, const struct roost_event *event)
{
    struct text line = TEXT_INIT;
    if (event->kind == ROOST_EVENT_FINISHED) {
        text_printf(&line, "{\"end\":true,\"failed\":%s",
                    supervisor->has_failed ? "true" : "false");
        put_time(&line, "ended", event->ended_at);
    } else {
        text_printf(&line, "{\"component\":\"%s\",\"rank\":%d,\"life\":%d,\"pid\":%d",
                    supervisor->spec.components[event->component].name, event->rank, event->life,
                    event->pid);
        if (event->exit_code >= 0)
            text_printf(&line, ",\"code\":%d,\"signal\":null", event->exit_code);
        else
            text_printf(&line, ",\"code\":null,\"signal\":%d", event->signal);
        text_printf(&line, ",\"core\":%s,\"reason\":\"%s\"", event->has_core ? "true" : "false",
                    roost_end_word(event->end));
        put_time(&line, "started", event->started_at);
        put_time(&line, "ended", event->ended_at);
    }
    text_puts(&line, "}\n");
    const char *bytes = text_string(&line);
    /* One write a line: an appended line is whole or, on a full disk, not there. */
    if (bytes && write(supervisor->records, bytes, line.len) != (ssize_t)line.len)
        outbox_say(supervisor, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_IO,
                   "cannot write the exit record of a process: %s", strerror(errno));
    text_release(&line);
}
