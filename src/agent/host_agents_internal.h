/* host_agents_internal.h - what host_agents.c (the host), host_agents_events.c (what agents report) and
 * host_agents_bridge.c (the bridge, and the time before the first worker) share. */
#ifndef AGENT_HOST_AGENTS_INTERNAL_H
#define AGENT_HOST_AGENTS_INTERNAL_H

#include <signal.h>

#include "agent/host_agents.h"
#include "supervise/supervisor.h"

struct agents {
    struct bridge_spec spec;
    int32_t count;
    bool *is_gone; /* [count] */
    int32_t gone_count;
    bool is_ending; /* agents were told to end: their ends are not losses */
    int socket;     /* to the bridge, -1 = it is gone */
    int32_t bridge_pid;
    bool is_reaped;
    /* Why the run cannot continue, if the bridge reported that before the run began. */
    char ground[ROOST_EVENT_MESSAGE_MAX];
    char bridge_end[32];  /* how the bridge ended: "signal 9", "" = not known */
    int64_t heard_at;     /* ms: when the last message of an agent came */
    struct text outgoing; /* messages that wait, each preceded by its length */
    size_t outgoing_sent;
    struct message inbox;
};

static inline struct agents *agents_of(const struct supervisor *supervisor)
{
    return supervisor->host_data;
}

/* The agent that has a worker. */
static inline int32_t agent_of(const struct supervisor *supervisor, const struct worker *worker)
{
    return worker_process(&supervisor->watcher, worker)->agent;
}

/* How messages call the node of an agent: "node 2 (10.0.0.3)". */
static inline const char *agent_node(const struct supervisor *supervisor, int32_t agent)
{
    return spec_string(&agents_of(supervisor)->spec.nodes, agent);
}

/* --- host_agents_bridge.c --- */

/* Starts the bridge that the file describes, which it takes, and tells it to join; false with errno. */
bool bridge_open(struct supervisor *supervisor, int fd);

/* Passes messages between driver and agents until the driver sends MSG_START, which is left in *out. False
 * when one of them is gone, after reporting the reason to the driver. */
bool bridge_relay(struct supervisor *supervisor, struct message *out);

/* A child has been reaped; notes it when it was the bridge. */
void bridge_reaped(struct agents *agents, const siginfo_t *info);

/* Waits a moment for the bridge's end to be known, and returns it in words. */
const char *bridge_end(struct agents *agents);

/* --- host_agents_events.c --- */

/* Takes an event of an agent, and bytes that one of its workers has written. */
void agents_take_event(struct supervisor *supervisor, int32_t agent, struct roost_event *event);
void agents_take_log(struct supervisor *supervisor, int32_t agent, const char *body, size_t len);

/* Reports a problem that does not end the run at once. The run fails, unless the code is ROOST_ERR_IO. */
void agents_report(struct supervisor *supervisor, const struct roost_event *event);

#endif
