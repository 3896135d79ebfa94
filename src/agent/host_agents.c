/* host_agents.c - the supervisor's side of a run on several nodes: orders go out to the agents through the
 * bridge, their reports come in, and agents that are gone take their workers with them. */
#include "agent/host_agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host_agents_internal.h"
#include "supervise/clock.h"

enum {
    END_MS = 30000,    /* for agents to end: they sweep what their workers left */
    CLOSE_MS = 30000,  /* for the bridge to give everything back */
    SILENT_MS = 15000, /* how long agents may be silent about processes that were killed */
};

/* --- out --- */

static void put(struct agents *agents, int32_t agent, int32_t type, const void *body, size_t len)
{
    struct roost_agent_head head = {agent, type};
    if (agents->socket < 0)
        return;
    spec_put_int(&agents->outgoing, (int32_t)(sizeof head + len));
    text_append(&agents->outgoing, (const char *)&head, sizeof head);
    text_append(&agents->outgoing, body, len);
}

static void pass_on(struct supervisor *supervisor, const char *message, size_t len)
{
    struct roost_agent_head head;
    if (len < sizeof head)
        return;
    memcpy(&head, message, sizeof head);
    if (head.agent == -1 && head.type == ROOST_AGENT_TELL)
        put(agents_of(supervisor), -1, ROOST_AGENT_TELL, message + sizeof head, len - sizeof head);
}

static void flush(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    if (agents->socket < 0)
        return;
    enum socket_pair_result result = SOCKET_PAIR_OK;
    while (agents->outgoing_sent < agents->outgoing.len && result == SOCKET_PAIR_OK) {
        int32_t len;
        const char *at = agents->outgoing.bytes + agents->outgoing_sent;
        memcpy(&len, at, sizeof len);
        result = socket_pair_send(agents->socket, MSG_AGENT, at + sizeof len, (size_t)len, -1);
        if (result == SOCKET_PAIR_OK)
            agents->outgoing_sent += sizeof len + (size_t)len;
    }
    bool has_more = agents->outgoing_sent < agents->outgoing.len;
    if (!has_more)
        agents->outgoing.len = agents->outgoing_sent = 0;
    struct epoll_event wanted = {.events = has_more ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                 .data = {.fd = agents->socket}};
    (void)epoll_ctl(supervisor->watcher.epoll, EPOLL_CTL_MOD, agents->socket, &wanted);
}

static bool begin(struct supervisor *supervisor, struct worker *worker)
{
    struct agents *agents = agents_of(supervisor);
    int32_t agent = agent_of(supervisor, worker);
    struct life_request request = {worker->component, worker->rank, worker->life, 0};
    worker->state = WORKER_ASKED;
    worker->was_told_to_end = false;
    supervisor->watcher.components[worker->component].asked++;
    if (agent < agents->count && !agents->is_gone[agent]) {
        put(agents, agent, MSG_BEGIN, &request, sizeof request);
        return true;
    }
    lives_lose(supervisor, worker, "");
    lives_fail(supervisor, worker, ROOST_ERR_ENGINE, "the agent on %s is lost",
               agent_node(supervisor, agent));
    return false;
}

static void signal_worker(struct supervisor *supervisor, const struct worker *worker,
                          int32_t number)
{
    struct life_request request = {worker->component, worker->rank, worker->life, number};
    put(agents_of(supervisor), agent_of(supervisor, worker), MSG_SIGNAL_ONE, &request,
        sizeof request);
}

/* --- what is gone --- */

/* An agent is gone with everything that it had. */
static void lose_agent(struct supervisor *supervisor, int32_t agent, const char *why)
{
    struct agents *agents = agents_of(supervisor);
    if (agents->is_gone[agent])
        return;
    agents->is_gone[agent] = true;
    agents->gone_count++;
    if (agents->is_ending)
        return;
    char words[ROOST_EVENT_MESSAGE_MAX];
    snprintf(words, sizeof words, "the agent on %s is lost%s%s", agent_node(supervisor, agent),
             *why ? ": " : "", why);
    if (supervisor->watcher.setup.keeps_going && supervisor->phase == PHASE_RUNNING) {
        struct roost_event event = outbox_event(ROOST_EVENT_PROBLEM, NULL);
        event.code = ROOST_ERR_ENGINE;
        memcpy(event.message, words, sizeof words);
        agents_report(supervisor, &event);
    } else {
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%s", words);
    }
    for (int32_t i = 0; i < supervisor->watcher.spec.process_count; i++)
        if (agent_of(supervisor, &supervisor->watcher.workers[i]) == agent)
            lives_lose(supervisor, &supervisor->watcher.workers[i], words);
}

static void lose_bridge(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    watcher_unwatch(&supervisor->watcher, agents->socket);
    close(agents->socket);
    agents->socket = -1;
    if (!agents->is_ending)
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "the bridge to the nodes has ended (%s)",
                   bridge_end(agents));
    bool was_ending = agents->is_ending;
    agents->is_ending = true; /* reported once, not for every node */
    for (int32_t agent = 0; agent < agents->count; agent++)
        lose_agent(supervisor, agent, "");
    for (int32_t i = 0; !was_ending && i < supervisor->watcher.spec.process_count; i++)
        lives_lose(supervisor, &supervisor->watcher.workers[i],
                   "the bridge to the nodes has ended");
}

/* The bridge may have said, while the driver was still starting the run, that it cannot go on. The driver
 * reads such a message only while it waits for others. */
static void check(struct supervisor *supervisor)
{
    if (agents_of(supervisor)->ground[0])
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%s", agents_of(supervisor)->ground);
}

/* --- in --- */

static void refuse_late(struct supervisor *supervisor, int32_t agent, const char *body, size_t len)
{
    struct roost_error err;
    if (len != sizeof err)
        return;
    memcpy(&err, body, sizeof err);
    err.message[sizeof err.message - 1] = '\0';
    lives_fail(supervisor, NULL, err.code, "%s: %s", agent_node(supervisor, agent), err.message);
}

static void take(struct supervisor *supervisor, const struct message *message)
{
    struct agents *agents = agents_of(supervisor);
    struct roost_agent_head head;
    if (message->fd >= 0)
        close(message->fd);
    if (message->type != MSG_AGENT || message->len < sizeof head)
        return;
    memcpy(&head, message->body, sizeof head);
    const char *body = message->body + sizeof head;
    size_t len = message->len - sizeof head, read = 0;
    if (head.agent == -1 && head.type == ROOST_AGENT_GONE && !agents->is_ending)
        lives_fail(supervisor, NULL, ROOST_ERR_ENGINE, "%.*s", (int)len, body);
    if (head.agent < 0 || head.agent >= agents->count)
        return;
    /* An agent reports an end after all that the worker wrote, which may be much: while it sends, it is not
     * silent. */
    agents->heard_at = clock_ms();
    supervisor->give_up_at = agents->heard_at + SILENT_MS;
    struct roost_event event;
    char why[ROOST_EVENT_MESSAGE_MAX];
    switch (head.type) {
    case MSG_EVENTS:
        while (outbox_take_event(body, len, &read, &event))
            agents_take_event(supervisor, head.agent, &event);
        break;
    case MSG_LOG: agents_take_log(supervisor, head.agent, body, len); break;
    case MSG_REFUSED: refuse_late(supervisor, head.agent, body, len); break;
    case ROOST_AGENT_GONE:
        snprintf(why, sizeof why, "%.*s", (int)len, body);
        lose_agent(supervisor, head.agent, why);
        break;
    default: break;
    }
}

static bool serve(struct supervisor *supervisor, int fd)
{
    struct agents *agents = agents_of(supervisor);
    if (fd != agents->socket || fd < 0)
        return false;
    enum { AT_ONCE = 256 }; /* then the driver has its turn */
    for (int i = 0; i < AT_ONCE; i++) {
        enum socket_pair_result result = socket_pair_receive(agents->socket, &agents->inbox);
        if (result == SOCKET_PAIR_OK) {
            take(supervisor, &agents->inbox);
            continue;
        }
        if (result != SOCKET_PAIR_AGAIN)
            lose_bridge(supervisor);
        break;
    }
    return true;
}

static void reap(struct supervisor *supervisor)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
        bridge_reaped(agents_of(supervisor), &info);
        info.si_pid = 0;
    }
}

/* --- workers, as agents reported them --- */

static bool is_ready(struct supervisor *supervisor, struct worker *worker)
{
    (void)supervisor;
    return worker->is_ready;
}

static void ended(struct supervisor *supervisor, struct worker *worker)
{
    (void)supervisor; /* its agent has looked at the disk of the node */
    (void)worker;
}

static bool is_stopped(const struct supervisor *supervisor, const struct worker *worker)
{
    (void)supervisor; /* agents do not report it */
    (void)worker;
    return false;
}

static const char *node(const struct supervisor *supervisor, const struct worker *worker)
{
    return agent_node(supervisor, agent_of(supervisor, worker));
}

static void describe_survivor(const struct supervisor *supervisor, const struct worker *worker,
                              char *out, size_t size)
{
    snprintf(out, size, "process %d of %s cannot be killed: no word of its end", worker->pid,
             node(supervisor, worker));
}

/* --- the start and the end --- */

static int prepare(struct supervisor *supervisor, struct message *message)
{
    if (!bridge_open(supervisor, message->fd)) {
        char words[160];
        snprintf(words, sizeof words, "cannot start the bridge to the nodes: %s", strerror(errno));
        return watcher_refuse_with(&supervisor->watcher, ROOST_ERR_ENGINE, words,
                                   "set ROOST_PYTHON to a Python that has roost and ray");
    }
    return bridge_relay(supervisor, message) ? control_open(supervisor) : 1;
}

/* Serves the loop while `is_left`, at most so many ms after the last message of an agent; no longer when the
 * driver is gone. */
static void wait_while(struct supervisor *supervisor, bool (*is_left)(struct agents *), int64_t ms)
{
    struct agents *agents = agents_of(supervisor);
    agents->heard_at = clock_ms();
    while (is_left(agents) && !supervisor->watcher.outbox.is_closed) {
        int64_t left = agents->heard_at + ms - clock_ms();
        if (left <= 0)
            return;
        supervisor_wait(supervisor, left);
        outbox_flush(&supervisor->watcher.outbox);
    }
}

static bool has_agents(struct agents *agents)
{
    return agents->socket >= 0 && agents->gone_count < agents->count;
}

static bool has_bridge(struct agents *agents)
{
    return !agents->is_reaped;
}

static void end(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    agents->is_ending = true;
    for (int32_t agent = 0; agent < agents->count; agent++)
        if (!agents->is_gone[agent])
            put(agents, agent, MSG_END, "", 0);
    wait_while(supervisor, has_agents, END_MS);
    for (int32_t agent = 0; agent < agents->count; agent++)
        if (!agents->is_gone[agent] && agents->socket >= 0 && !supervisor->watcher.outbox.is_closed)
            outbox_report(&supervisor->watcher.outbox, ROOST_EVENT_PROBLEM, NULL, ROOST_ERR_ENGINE,
                          "%s does not say that it has ended everything: what is left there has "
                          "ROOST_RUN_ID=%s",
                          agent_node(supervisor, agent), supervisor->watcher.setup.run_id);
    put(agents, -1, ROOST_AGENT_CLOSE, "", 0);
    wait_while(supervisor, has_bridge, CLOSE_MS);
}

static void release(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    if (!agents)
        return;
    if (agents->socket >= 0)
        close(agents->socket);
    text_release(&agents->outgoing);
    bridge_spec_release(&agents->spec);
    free(agents);
    supervisor->host_data = NULL;
}

const struct host host_agents = {
    .prepare = prepare,
    .check = check,
    .begin = begin,
    .signal = signal_worker,
    .pass_on = pass_on,
    .is_ready = is_ready,
    .ended = ended,
    .is_stopped = is_stopped,
    .node = node,
    .describe_survivor = describe_survivor,
    .reap = reap,
    .serve = serve,
    .flush = flush,
    .end = end,
    .release = release,
    .kill_ms = SILENT_MS,
};
