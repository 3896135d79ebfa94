/* outbox.h - events on their way to the driver.
 *
 * The driver may be slow, or stopped in a debugger, and workers must not notice that. Events wait here and
 * go out as the socket takes them. */
#ifndef SUPERVISE_OUTBOX_H
#define SUPERVISE_OUTBOX_H

#include <roost/launch.h>

#include "base/text.h"

struct worker;

/* A descriptor that goes out with the event that begins at `at` of the outbox. */
struct attachment {
    size_t at;
    int fd;
};

struct outbox {
    int socket;         /* to the driver; borrowed */
    struct text events; /* as MSG_EVENTS has them */
    size_t sent;
    size_t mark;                    /* see outbox_flush_marked */
    struct attachment *attachments; /* in the order of their events */
    size_t attachment_count, attachment_room;
    bool is_held;   /* the owner sends something else before more events */
    bool is_closed; /* the driver is gone: events are dropped */
    bool has_lost;  /* an event was lost for want of memory; the outbox is closed then */
};

/* An event about a worker (may be NULL), with every field filled in that the worker has. */
struct roost_event outbox_event(enum roost_event_kind kind, const struct worker *worker);

/* Queues an event. Without memory for it the outbox closes and has_lost is set: a driver that does not
 * get every event gets none, and the owner ends the run. */
void outbox_put(struct outbox *outbox, const struct roost_event *event);

/* The same with a descriptor, which it takes. */
void outbox_put_with(struct outbox *outbox, const struct roost_event *event, int fd);

/* The same for an event with a message. */
void outbox_report(struct outbox *outbox, enum roost_event_kind kind, const struct worker *worker,
                   enum roost_code code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Sends as many events as the socket takes now. Closes the outbox when the driver is gone. */
void outbox_flush(struct outbox *outbox);

/* The same, but only events that were there at the last outbox_mark. */
void outbox_flush_marked(struct outbox *outbox);
void outbox_mark(struct outbox *outbox);

void outbox_release(struct outbox *outbox);

static inline bool outbox_is_empty(const struct outbox *outbox)
{
    return outbox->sent == outbox->events.len;
}

/* The receiver's half: the next event of a MSG_EVENTS, from *read of its bytes on; false when there is
 * none. */
bool outbox_take_event(const char *bytes, size_t len, size_t *read, struct roost_event *out);

#endif
