/* parts_internal.h - what parts.c (a run's life), parts_events.c (its workers') and parts_open.c (its birth)
 * share. */
#ifndef SUPERVISE_PARTS_INTERNAL_H
#define SUPERVISE_PARTS_INTERNAL_H

#include "rpc/channel.h"
#include "supervise/parts.h"

struct parts {
    struct bridge_spec spec;
    int32_t count;
    bool *is_gone; /* [count] */
    int32_t gone_count;
    bool is_ending; /* parts were told to end: that they do is no loss */
    int channel;    /* to the bridge, -1 = it is gone */
    int32_t bridge_pid;
    bool is_reaped;
    char ground
        [ROOST_EVENT_MESSAGE_MAX]; /* what the bridge said before the run began: it cannot go on */
    char bridge_end[32];           /* how the bridge ended: "signal 9", "" = not known */
    int64_t heard_at;              /* ms: when a part said something last */
    struct text outgoing;          /* messages that wait, each led by its length */
    size_t outgoing_sent;
    struct message inbox;
};

/* Waits a moment for the bridge's end to be known, and returns it in words. */
const char *parts_bridge_end(struct supervisor *supervisor);

static inline int32_t parts_of(const struct supervisor *supervisor, const struct worker *worker)
{
    return worker_process(supervisor, worker)->part;
}

/* --- parts_events.c --- */

/* An event of a part, and bytes that a worker of it has written. */
void parts_take_event(struct supervisor *supervisor, int32_t part, struct roost_event *event);
void parts_take_log(struct supervisor *supervisor, int32_t part, const char *body, size_t len);

/* Says what is not the end of the run, but does not let it end well. */
void parts_problem(struct supervisor *supervisor, const struct roost_event *event);

#endif
