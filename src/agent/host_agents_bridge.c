/* host_agents_bridge.c - the bridge of a run on several nodes, in the supervisor: its start, its end, and the
 * time until the first worker, in which the supervisor only passes messages between driver and agents. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host_agents_internal.h"
#include "supervise/clock.h"
#include "supervise/spawn.h"

enum { BRIDGE_END_MS = 1000 };

/* --- the bridge --- */

static char **list_strings(const struct spec_list *list, const char *more)
{
    char **strings = calloc((size_t)list->count + 2, sizeof *strings);
    const char *string = list->first;
    uint32_t i = 0;
    for (; strings && i < list->count; i++, string = spec_next(string))
        strings[i] = (char *)(uintptr_t)string;
    if (strings && more)
        strings[i] = (char *)(uintptr_t)more;
    return strings;
}

/* The bridge writes messages for people to the driver's standard error. */
static bool start_bridge(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    char token[64];
    int ends[2];
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", supervisor->watcher.setup.run_id);
    if (!socket_pair_open(ends))
        return false;
    char **argv = list_strings(&agents->spec.words, NULL);
    char **env = list_strings(&agents->spec.env, token);
    struct spawned spawned = {.failed = SPAWN_CLONE, .error = ENOMEM, .pidfd = -1};
    if (argv && env) {
        struct spawn spawn = {.paths = (const char *const[]){argv[0], NULL},
                              .argv = argv,
                              .env = env,
                              .fd = {supervisor->watcher.null, supervisor->watcher.null, 2},
                              .handed = &ends[1],
                              .handed_count = 1};
        spawned = spawn_process(&spawn);
    }
    free(argv);
    free(env);
    close(ends[1]);
    agents->socket = ends[0];
    agents->bridge_pid = spawned.pid;
    if (spawned.pidfd >= 0)
        close(spawned.pidfd); /* its end is the end of its socket */
    errno = spawned.error;
    return spawned.failed == SPAWN_OK;
}

static bool send_join(const struct agents *agents)
{
    struct roost_agent_head head = {-1, ROOST_AGENT_JOIN};
    const char *text = agents->spec.join.first;
    size_t len = strlen(text);
    int file = memfd_create("roost-join", MFD_CLOEXEC);
    bool is_good =
        file >= 0 && write(file, text, len) == (ssize_t)len &&
        socket_pair_send(agents->socket, MSG_AGENT, &head, sizeof head, file) == SOCKET_PAIR_OK;
    if (file >= 0)
        close(file);
    return is_good;
}

bool bridge_open(struct supervisor *supervisor, int fd)
{
    struct agents *agents = calloc(1, sizeof *agents);
    if (!agents) {
        close(fd);
        return false;
    }
    supervisor->host_data = agents;
    *agents = (struct agents){.socket = -1, .count = supervisor->watcher.setup.agent_count};
    agents->is_gone = arena_zeroed(&supervisor->watcher.arena, bool, agents->count);
    if (!bridge_spec_open(&agents->spec, fd) || !agents->is_gone ||
        agents->spec.nodes.count != (uint32_t)agents->count) {
        errno = ENOMEM;
        return false;
    }
    if (!start_bridge(supervisor))
        return false;
    /* A bridge that has ended at once is found to be gone later. */
    return (send_join(agents) || errno == EPIPE) &&
           watcher_watch(&supervisor->watcher, agents->socket, EPOLLIN);
}

void bridge_reaped(struct agents *agents, const siginfo_t *info)
{
    if (info->si_pid != agents->bridge_pid)
        return;
    agents->is_reaped = true;
    snprintf(agents->bridge_end, sizeof agents->bridge_end, "%s %d",
             info->si_code == CLD_EXITED ? "status" : "signal", info->si_status);
}

const char *bridge_end(struct agents *agents)
{
    int64_t deadline = clock_ms() + BRIDGE_END_MS;
    while (!agents->is_reaped && clock_ms() < deadline) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)agents->bridge_pid, &info, WEXITED | WNOHANG) != 0)
            break;
        if (info.si_pid)
            bridge_reaped(agents, &info);
        else
            clock_pause_ms(5);
    }
    return agents->bridge_end[0] ? agents->bridge_end : "nobody saw how";
}

/* --- the relay --- */

/* Sends a message on, however long the receiver takes; takes its descriptor. */
static bool hand_on(struct supervisor *supervisor, int socket, const struct message *message)
{
    enum socket_pair_result result;
    while ((result = socket_pair_send(socket, message->type, message->body, message->len,
                                      message->fd)) == SOCKET_PAIR_AGAIN) {
        struct pollfd fds[2] = {{socket, POLLOUT, 0}, {supervisor->watcher.guardian, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            break;
    }
    if (message->fd >= 0)
        close(message->fd);
    return result == SOCKET_PAIR_OK;
}

static void refuse_lost_bridge(struct supervisor *supervisor)
{
    struct roost_error err = {.code = ROOST_ERR_ENGINE};
    snprintf(err.message, sizeof err.message,
             "the bridge to the nodes has ended before the run began (%s)",
             bridge_end(agents_of(supervisor)));
    snprintf(err.hint, sizeof err.hint, "set ROOST_PYTHON to a Python that has roost and ray");
    (void)socket_pair_send(supervisor->watcher.outbox.socket, MSG_REFUSED, &err, sizeof err, -1);
}

static void note_gone(struct agents *agents, const struct message *message)
{
    struct roost_agent_head head;
    memcpy(&head, message->body, sizeof head);
    if (head.type == ROOST_AGENT_GONE && head.agent == -1)
        snprintf(agents->ground, sizeof agents->ground, "%.*s", (int)(message->len - sizeof head),
                 message->body + sizeof head);
    if (head.type != ROOST_AGENT_GONE || head.agent < 0 || head.agent >= agents->count ||
        agents->is_gone[head.agent])
        return;
    agents->is_gone[head.agent] = true;
    agents->gone_count++;
}

/* Everything that has come from the bridge; false when it is gone. */
static bool relay_back(struct supervisor *supervisor)
{
    struct agents *agents = agents_of(supervisor);
    enum socket_pair_result result;
    while ((result = socket_pair_receive(agents->socket, &agents->inbox)) == SOCKET_PAIR_OK) {
        if (agents->inbox.type != MSG_AGENT || agents->inbox.len < sizeof(struct roost_agent_head))
            break;
        note_gone(agents, &agents->inbox);
        if (!hand_on(supervisor, supervisor->watcher.outbox.socket, &agents->inbox))
            return false;
    }
    if (result == SOCKET_PAIR_AGAIN)
        return true;
    refuse_lost_bridge(supervisor);
    return false;
}

/* Everything that has come from the driver; *out_is_started when that was the last of it. */
static bool relay_forth(struct supervisor *supervisor, struct message *out, bool *out_is_started)
{
    enum socket_pair_result result;
    while ((result = socket_pair_receive(supervisor->watcher.outbox.socket, out)) ==
           SOCKET_PAIR_OK) {
        *out_is_started = out->type == MSG_START && out->fd >= 0;
        if (*out_is_started)
            return true;
        if (out->type == MSG_AGENT && !hand_on(supervisor, agents_of(supervisor)->socket, out)) {
            refuse_lost_bridge(supervisor);
            return false;
        }
    }
    return result == SOCKET_PAIR_AGAIN;
}

bool bridge_relay(struct supervisor *supervisor, struct message *out)
{
    bool is_started = false;
    while (!is_started) {
        struct pollfd fds[4] = {{supervisor->watcher.outbox.socket, POLLIN, 0},
                                {agents_of(supervisor)->socket, POLLIN, 0},
                                {supervisor->watcher.guardian, POLLIN, 0},
                                {GUARDIAN_DRIVER, POLLIN, 0}};
        if (poll(fds, 4, -1) < 0 && errno != EINTR)
            return false;
        if (fds[2].revents || fds[3].revents)
            return false;
        if ((fds[1].revents && !relay_back(supervisor)) ||
            (fds[0].revents && !relay_forth(supervisor, out, &is_started)))
            return false;
    }
    return true;
}
