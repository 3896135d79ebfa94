/* parts_open.c - the bridge of a run on several nodes: its start, and the time until the first process, in
 * which the driver speaks to the parts and this process only hands on. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise/clock.h"
#include "supervise/parts_internal.h"
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

/* It says to people what it has to say on the driver's standard error. */
static bool start_bridge(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    char token[64];
    int ends[2];
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", supervisor->setup.run_id);
    if (!channel_pair(ends))
        return false;
    char **argv = list_strings(&parts->spec.words, NULL);
    char **env = list_strings(&parts->spec.env, token);
    struct spawned spawned = {.failed = SPAWN_CLONE, .error = ENOMEM, .pidfd = -1};
    if (argv && env) {
        struct spawn spawn = {.paths = (const char *const[]){argv[0], NULL},
                              .argv = argv,
                              .env = env,
                              .fd = {supervisor->null, supervisor->null, 2},
                              .handed = &ends[1],
                              .handed_count = 1,
                              .nofile = &supervisor->nofile};
        spawned = spawn_process(&spawn);
    }
    free(argv);
    free(env);
    close(ends[1]);
    parts->channel = ends[0];
    parts->bridge_pid = spawned.pid;
    if (spawned.pidfd >= 0)
        close(spawned.pidfd); /* its end is the end of its channel */
    errno = spawned.error;
    return spawned.failed == SPAWN_OK;
}

static bool send_join(const struct parts *parts)
{
    struct roost_part_head head = {-1, ROOST_PART_JOIN};
    const char *text = parts->spec.join.first;
    size_t len = strlen(text);
    int file = memfd_create("roost-join", MFD_CLOEXEC);
    bool is_good = file >= 0 && write(file, text, len) == (ssize_t)len &&
                   channel_send(parts->channel, MSG_PART, &head, sizeof head, file) == CHANNEL_OK;
    if (file >= 0)
        close(file);
    return is_good;
}

bool parts_open(struct supervisor *supervisor, int fd)
{
    struct parts *parts = calloc(1, sizeof *parts);
    if (!parts) {
        close(fd);
        return false;
    }
    supervisor->parts = parts;
    *parts = (struct parts){.channel = -1, .count = supervisor->setup.part_count};
    parts->is_gone = arena_zeroed(&supervisor->arena, bool, parts->count);
    if (!bridge_spec_open(&parts->spec, fd) || !parts->is_gone ||
        parts->spec.nodes.count != (uint32_t)parts->count) {
        errno = ENOMEM;
        return false;
    }
    if (getrlimit(RLIMIT_NOFILE, &supervisor->nofile) != 0 || !start_bridge(supervisor))
        return false;
    /* One that has ended at once will be found gone. */
    return (send_join(parts) || errno == EPIPE) &&
           supervisor_watch(supervisor, parts->channel, EPOLLIN);
}

void parts_reaped(struct supervisor *supervisor, const siginfo_t *info)
{
    struct parts *parts = supervisor->parts;
    if (!parts || info->si_pid != parts->bridge_pid)
        return;
    parts->is_reaped = true;
    snprintf(parts->bridge_end, sizeof parts->bridge_end, "%s %d",
             info->si_code == CLD_EXITED ? "status" : "signal", info->si_status);
}

const char *parts_bridge_end(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    int64_t deadline = clock_ms() + BRIDGE_END_MS;
    while (!parts->is_reaped && clock_ms() < deadline) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)parts->bridge_pid, &info, WEXITED | WNOHANG) != 0)
            break;
        if (info.si_pid)
            parts_reaped(supervisor, &info);
        else
            clock_pause_ms(5);
    }
    return parts->bridge_end[0] ? parts->bridge_end : "nobody saw how";
}

/* --- the relay --- */

/* Sends it on, however long the other takes; it takes the descriptor. */
static bool hand_on(struct supervisor *supervisor, int channel, const struct message *message)
{
    enum channel_result result;
    while ((result = channel_send(channel, message->type, message->body, message->len,
                                  message->fd)) == CHANNEL_AGAIN) {
        struct pollfd fds[2] = {{channel, POLLOUT, 0}, {supervisor->guardian, POLLIN, 0}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        if (fds[1].revents)
            break;
    }
    if (message->fd >= 0)
        close(message->fd);
    return result == CHANNEL_OK;
}

static void refuse_lost_bridge(struct supervisor *supervisor)
{
    struct roost_error err = {.code = ROOST_ERR_ENGINE};
    snprintf(err.message, sizeof err.message,
             "the bridge to the nodes has ended before the run began (%s)",
             parts_bridge_end(supervisor));
    snprintf(err.hint, sizeof err.hint, "set ROOST_PYTHON to a Python that has roost and ray");
    (void)channel_send(supervisor->channel, MSG_REFUSED, &err, sizeof err, -1);
}

static void note_gone(struct parts *parts, const struct message *message)
{
    struct roost_part_head head;
    memcpy(&head, message->body, sizeof head);
    if (head.type == ROOST_PART_GONE && head.part == -1)
        snprintf(parts->ground, sizeof parts->ground, "%.*s", (int)(message->len - sizeof head),
                 message->body + sizeof head);
    if (head.type != ROOST_PART_GONE || head.part < 0 || head.part >= parts->count ||
        parts->is_gone[head.part])
        return;
    parts->is_gone[head.part] = true;
    parts->gone_count++;
}

/* Everything that has come from the bridge; false when it is gone. */
static bool relay_back(struct supervisor *supervisor)
{
    struct parts *parts = supervisor->parts;
    enum channel_result result;
    while ((result = channel_receive(parts->channel, &parts->inbox)) == CHANNEL_OK) {
        if (parts->inbox.type != MSG_PART || parts->inbox.len < sizeof(struct roost_part_head))
            break;
        note_gone(parts, &parts->inbox);
        if (!hand_on(supervisor, supervisor->channel, &parts->inbox))
            return false;
    }
    if (result == CHANNEL_AGAIN)
        return true;
    refuse_lost_bridge(supervisor);
    return false;
}

/* Everything that has come from the driver; *out_is_started when that was the last of it. */
static bool relay_forth(struct supervisor *supervisor, struct message *out, bool *out_is_started)
{
    enum channel_result result;
    while ((result = channel_receive(supervisor->channel, out)) == CHANNEL_OK) {
        *out_is_started = out->type == MSG_START && out->fd >= 0;
        if (*out_is_started)
            return true;
        if (out->type == MSG_PART && !hand_on(supervisor, supervisor->parts->channel, out)) {
            refuse_lost_bridge(supervisor);
            return false;
        }
    }
    return result == CHANNEL_AGAIN;
}

bool parts_relay(struct supervisor *supervisor, struct message *out)
{
    bool is_started = false;
    while (!is_started) {
        struct pollfd fds[4] = {{supervisor->channel, POLLIN, 0},
                                {supervisor->parts->channel, POLLIN, 0},
                                {supervisor->guardian, POLLIN, 0},
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
