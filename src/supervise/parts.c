/* parts.c - the way to the parts and back: what workers on other nodes are told, who is gone, the end. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/parts_internal.h"

enum {
    END_MS = 30000,   /* for parts to end: they sweep what their workers left */
    CLOSE_MS = 30000, /* for the bridge to give everything back */
};

const char *parts_node(const struct supervisor *supervisor, const struct worker *worker)
{
    return spec_string(&supervisor->parts->spec.nodes, parts_of(supervisor, worker));
}

/* --- out --- */

static void put(struct parts *parts, int32_t part, int32_t type, const void *body, size_t len)
{
    struct roost_part_head head = {part, type};
    if (parts->channel < 0)
        return;
    spec_put_int(&parts->outgoing, (int32_t)(sizeof head + len));
    text_append(&parts->outgoing, (const char *)&head, sizeof head);
    text_append(&parts->outgoing, body, len);
}

void parts_flush(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    if (!parts || parts->channel < 0)
        return;
    enum channel_result result = CHANNEL_OK;
    while (parts->outgoing_sent < parts->outgoing.len && result == CHANNEL_OK) {
        int32_t len;
        const char *at = parts->outgoing.bytes + parts->outgoing_sent;
        memcpy(&len, at, sizeof len);
        result = channel_send(parts->channel, MSG_PART, at + sizeof len, (size_t)len, -1);
        if (result == CHANNEL_OK)
            parts->outgoing_sent += sizeof len + (size_t)len;
    }
    bool has_more = parts->outgoing_sent < parts->outgoing.len;
    if (!has_more)
        parts->outgoing.len = parts->outgoing_sent = 0;
    struct epoll_event wanted = {.events = has_more ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                 .data = {.fd = parts->channel}};
    (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_MOD, parts->channel, &wanted);
}

bool parts_begin(struct supervisor *supervisor, struct worker *worker)
{
    int32_t part = parts_of(supervisor, worker);
    struct tell tell = {worker->component, worker->rank, worker->life, 0};
    worker->state = WORKER_ASKED;
    worker->was_told = false;
    supervisor->components[worker->component].asked++;
    if (part < supervisor->parts->count && !supervisor->parts->is_gone[part]) {
        put(supervisor->parts, part, MSG_BEGIN, &tell, sizeof tell);
        return true;
    }
    lives_lose(supervisor, worker, "");
    lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "the part of the run on %s is lost",
               parts_node(supervisor, worker));
    return false;
}

void parts_signal(struct supervisor *supervisor, const struct worker *worker, int32_t number)
{
    struct tell tell = {worker->component, worker->rank, worker->life, number};
    put(supervisor->parts, parts_of(supervisor, worker), MSG_TELL, &tell, sizeof tell);
}

/* --- what is gone --- */

/* A part is gone with everything that it had. */
static void lose_part(struct supervisor *supervisor, int32_t part, const char *why)
{
    struct parts *parts = supervisor->parts;
    if (parts->is_gone[part])
        return;
    parts->is_gone[part] = true;
    parts->gone_count++;
    if (parts->is_ending)
        return;
    char words[ROOST_EVENT_MESSAGE_MAX];
    snprintf(words, sizeof words, "the part of the run on %s is lost%s%s",
             spec_string(&parts->spec.nodes, part), *why ? ": " : "", why);
    if (supervisor->setup.keeps_going && supervisor->phase == PHASE_RUNNING) {
        struct roost_event event = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        event.code = ROOST_ERR_ENGINE;
        memcpy(event.message, words, sizeof words);
        parts_problem(supervisor, &event);
    } else {
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%s", words);
    }
    for (int32_t i = 0; i < supervisor->spec.process_count; i++)
        if (parts_of(supervisor, &supervisor->workers[i]) == part)
            lives_lose(supervisor, &supervisor->workers[i], words);
}

static void lose_bridge(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    (void)epoll_ctl(supervisor->epoll, EPOLL_CTL_DEL, parts->channel, NULL);
    close(parts->channel);
    parts->channel = -1;
    if (!parts->is_ending)
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "the bridge to the nodes has ended (%s)",
                   parts_bridge_end(supervisor));
    bool was_ending = parts->is_ending;
    parts->is_ending = true; /* said once, not for every node */
    for (int32_t part = 0; part < parts->count; part++)
        lose_part(supervisor, part, "");
    for (int32_t i = 0; !was_ending && i < supervisor->spec.process_count; i++)
        lives_lose(supervisor, &supervisor->workers[i], "the bridge to the nodes has ended");
}

void parts_check(struct supervisor *supervisor)
{
    if (supervisor->parts && supervisor->parts->ground[0])
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%s", supervisor->parts->ground);
}

/* --- in --- */

static void refuse_late(struct supervisor *supervisor, int32_t part, const char *body, size_t len)
{
    struct roost_error err;
    if (len != sizeof err)
        return;
    memcpy(&err, body, sizeof err);
    err.message[sizeof err.message - 1] = '\0';
    lives_fail(supervisor, NULL, err.code, "%s: %s",
               spec_string(&supervisor->parts->spec.nodes, part), err.message);
}

static void take(struct supervisor *supervisor, const struct message *message)
{
    struct roost_part_head head;
    if (message->fd >= 0)
        close(message->fd);
    if (message->type != MSG_PART || message->len < sizeof head)
        return;
    memcpy(&head, message->body, sizeof head);
    const char *body = message->body + sizeof head;
    size_t len = message->len - sizeof head, read = 0;
    if (head.part == -1 && head.type == ROOST_PART_GONE && !supervisor->parts->is_ending)
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%.*s", (int)len, body);
    if (head.part < 0 || head.part >= supervisor->parts->count)
        return;
    /* Ends are told behind all that was written, which may be much: who sends it is not silent. */
    supervisor->parts->heard_at = clock_ms();
    supervisor->give_up_at = supervisor->parts->heard_at + PARTS_SILENT_MS;
    struct roost_event event;
    char why[ROOST_EVENT_MESSAGE_MAX];
    switch (head.type) {
    case MSG_EVENTS:
        while (message_take_event(body, len, &read, &event))
            parts_take_event(supervisor, head.part, &event);
        break;
    case MSG_LOG: parts_take_log(supervisor, head.part, body, len); break;
    case MSG_REFUSED: refuse_late(supervisor, head.part, body, len); break;
    case ROOST_PART_GONE:
        snprintf(why, sizeof why, "%.*s", (int)len, body);
        lose_part(supervisor, head.part, why);
        break;
    default: break;
    }
}

bool parts_hear(struct supervisor *supervisor, int fd)
{
    struct parts *parts = supervisor->parts;
    if (!parts || fd != parts->channel || fd < 0)
        return false;
    enum { AT_ONCE = 256 }; /* then the driver is heard again */
    for (int i = 0; i < AT_ONCE; i++) {
        enum channel_result result = channel_receive(parts->channel, &parts->inbox);
        if (result == CHANNEL_OK) {
            take(supervisor, &parts->inbox);
            continue;
        }
        if (result != CHANNEL_AGAIN)
            lose_bridge(supervisor);
        break;
    }
    return true;
}

/* --- the end --- */

/* Waits while `is_left`, so many ms after the last word, hearing everybody; not when nobody is there any
 * more to end for. */
static void wait_while(struct supervisor *supervisor, bool (*is_left)(struct parts *), int64_t ms)
{
    supervisor->parts->heard_at = clock_ms();
    while (is_left(supervisor->parts) && !supervisor->is_driver_gone) {
        int64_t left = supervisor->parts->heard_at + ms - clock_ms();
        if (left <= 0)
            return;
        supervisor_wait(supervisor, left);
        outbox_flush(supervisor);
    }
}

static bool has_parts(struct parts *parts)
{
    return parts->channel >= 0 && parts->gone_count < parts->count;
}

static bool has_bridge(struct parts *parts)
{
    return !parts->is_reaped;
}

void parts_end(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    if (!parts)
        return;
    parts->is_ending = true;
    for (int32_t part = 0; part < parts->count; part++)
        if (!parts->is_gone[part])
            put(parts, part, MSG_END, "", 0);
    wait_while(supervisor, has_parts, END_MS);
    for (int32_t part = 0; part < parts->count; part++)
        if (!parts->is_gone[part] && parts->channel >= 0 && !supervisor->is_driver_gone)
            outbox_say(supervisor, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_ENGINE,
                       "%s does not say that it has ended everything: what is left there has "
                       "ROOST_RUN_ID=%s",
                       spec_string(&parts->spec.nodes, part), supervisor->setup.run_id);
    put(parts, -1, ROOST_PART_CLOSE, "", 0);
    wait_while(supervisor, has_bridge, CLOSE_MS);
}

void parts_release(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    if (!parts)
        return;
    if (parts->channel >= 0)
        close(parts->channel);
    text_release(&parts->outgoing);
    bridge_spec_release(&parts->spec);
    free(parts);
    supervisor->parts = NULL;
}
