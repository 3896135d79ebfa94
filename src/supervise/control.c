/* control.c - the supervisor's control socket: answers `roost ps` and `roost stop`, one line of JSON
 * for each line of JSON.
 *
 * Askers are processes of this user, and may be slow or silent. So only a few are served at a time. Each may
 * send a short question; the answer waits in memory until the asker reads it or a time limit passes. An
 * asker that neither asks nor reads is dropped for the next one. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rpc/control_socket.h"
#include "supervise/clock.h"
#include "supervise/supervisor.h"
#include "json/json_writer.h"

enum {
    ASKER_MS = 60000, /* for an answer to be taken */
    IDLE_MS = 1000,   /* after which a silent asker may have to make room */
};

static const char *const worker_words[] = {[WORKER_WAITING] = "waiting",
                                           [WORKER_RUNNING] = "running",
                                           [WORKER_RESTING] = "restarting",
                                           [WORKER_ENDED] = "ended"};
static const char *const component_words[] = {[COMPONENT_BLOCKED] = "blocked",
                                              [COMPONENT_STARTING] = "starting",
                                              [COMPONENT_UP] = "up",
                                              [COMPONENT_READY] = "ready"};
static const char *const phase_words[] = {[PHASE_RUNNING] = "running",
                                          [PHASE_CLOSING] = "stopping",
                                          [PHASE_STOPPING] = "stopping",
                                          [PHASE_KILLING] = "stopping"};

int control_open(struct supervisor *supervisor)
{
    char name[CONTROL_NAME_MAX];
    snprintf(name, sizeof name, "%s.sock", supervisor->watcher.setup.run_id);
    for (int i = 0; i < ASKER_COUNT; i++)
        supervisor->askers[i] = (struct asker){.fd = -1};
    supervisor->control = control_listen(supervisor->watcher.runtime_dir, name);
    if (supervisor->control >= 0 &&
        watcher_watch(&supervisor->watcher, supervisor->control, EPOLLIN))
        return 0;
    return watcher_refuse_to_open(&supervisor->watcher, "the control socket of the run", errno);
}

/* The loop watches the socket only while there is room: later askers wait in the kernel's queue. */
static void listen_for_more(struct supervisor *supervisor, bool has_room)
{
    struct epoll_event event = {.events = has_room ? EPOLLIN : 0,
                                .data = {.fd = supervisor->control}};
    (void)epoll_ctl(supervisor->watcher.epoll, EPOLL_CTL_MOD, supervisor->control, &event);
}

static void let_go(struct supervisor *supervisor, struct asker *asker)
{
    listen_for_more(supervisor, true);
    watcher_unwatch(&supervisor->watcher, asker->fd);
    close(asker->fd);
    text_release(&asker->answer);
    *asker = (struct asker){.fd = -1};
}

void control_close(struct supervisor *supervisor)
{
    char name[CONTROL_NAME_MAX];
    snprintf(name, sizeof name, "%s.sock", supervisor->watcher.setup.run_id);
    if (supervisor->control < 0)
        return;
    (void)unlinkat(supervisor->watcher.runtime_dir, name, 0);
    for (int i = 0; i < ASKER_COUNT; i++)
        if (supervisor->askers[i].fd >= 0)
            let_go(supervisor, &supervisor->askers[i]);
    close(supervisor->control);
    supervisor->control = -1;
}

/* --- answers --- */

/* A worker that a forker or an agent was asked for is still waiting. */
static enum worker_state shown_state(const struct worker *worker)
{
    return worker->state == WORKER_FORKING || worker->state == WORKER_ASKED ? WORKER_WAITING
                                                                            : worker->state;
}

/* By SIGSTOP, Ctrl-Z or a debugger: alive, but not running. */
static bool is_stopped(const struct supervisor *supervisor, const struct worker *worker)
{
    return worker->state == WORKER_RUNNING && supervisor->host->is_stopped(supervisor, worker);
}

static void put_component(struct json_writer *json, const struct supervisor *supervisor,
                          int32_t index)
{
    const struct spec_component *component = &supervisor->watcher.spec.components[index];
    int32_t counts[WORKER_ENDED + 1] = {0}, stopped = 0;
    for (int32_t p = 0; p < component->process_count; p++) {
        const struct worker *worker = &supervisor->watcher.workers[component->first_process + p];
        if (is_stopped(supervisor, worker))
            stopped++;
        else
            counts[shown_state(worker)]++;
    }
    json_open_object(json);
    json_put_string(json_key(json, "name"), component->name);
    json_put_int(json_key(json, "world_size"), component->process_count);
    json_put_string(json_key(json, "state"),
                    component_words[supervisor->watcher.components[index].state]);
    for (int state = 0; state <= WORKER_ENDED; state++)
        if (worker_words[state])
            json_put_int(json_key(json, worker_words[state]), counts[state]);
    json_put_int(json_key(json, "stopped"), stopped);
    json_close(json);
}

static void put_process(struct json_writer *json, const struct supervisor *supervisor,
                        const struct worker *worker)
{
    const char *node = supervisor->host->node(supervisor, worker);
    json_open_object(json);
    json_put_string(json_key(json, "component"),
                    worker_component(&supervisor->watcher, worker)->name);
    json_put_int(json_key(json, "rank"), worker->rank);
    json_put_int(json_key(json, "life"), worker->life);
    json_put_int(json_key(json, "pid"), worker->pid);
    json_put_string(json_key(json, "state"),
                    is_stopped(supervisor, worker) ? "stopped" : worker_words[shown_state(worker)]);
    if (node)
        json_put_string(json_key(json, "node"), node);
    json_close(json);
}

static void put_status(struct json_writer *json, const struct supervisor *supervisor)
{
    json_put_string(json_key(json, "run"), supervisor->watcher.setup.run_id);
    json_put_string(json_key(json, "state"), phase_words[supervisor->phase]);
    json_open_array(json_key(json, "components"));
    for (int32_t i = 0; i < supervisor->watcher.spec.component_count; i++)
        put_component(json, supervisor, i);
    json_close(json);
    json_open_array(json_key(json, "processes"));
    for (int32_t i = 0; i < supervisor->watcher.spec.process_count; i++)
        put_process(json, supervisor, &supervisor->watcher.workers[i]);
    json_close(json);
}

/* The value of "ask" in the line; empty when it is not such a line. */
static void read_question(struct strview line, char *out, size_t size)
{
    struct diag diag = {0};
    struct json_reader *reader = json_reader_from_text("question", line, NULL);
    *out = '\0';
    if (reader && json_next(reader, &diag).kind == JSON_OBJECT) {
        struct json_event event;
        while ((event = json_next(reader, &diag)).kind == JSON_KEY) {
            bool is_ask = sv_is(event.text, "ask");
            event = json_next(reader, &diag);
            if (is_ask && event.kind == JSON_STRING && event.text.len < size) {
                memcpy(out, event.text.at, event.text.len);
                out[event.text.len] = '\0';
            } else if (json_skip(reader, &diag) != ROOST_OK) {
                break;
            }
        }
    }
    json_reader_free(reader);
}

static void answer(struct supervisor *supervisor, struct asker *asker, struct strview line)
{
    char question[16];
    read_question(line, question, sizeof question);
    struct json_writer json = json_writer_on(&asker->answer, JSON_COMPACT);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    if (strcmp(question, "status") == 0) {
        put_status(&json, supervisor);
    } else if (strcmp(question, "stop") == 0 || strcmp(question, "kill") == 0) {
        if (question[0] == 's')
            lives_stop(supervisor, SIGTERM, "asked by roost stop");
        else
            lives_kill(supervisor, "asked by roost stop --now");
        json_put_bool(json_key(&json, "ok"), true);
    } else {
        json_put_bool(json_key(&json, "ok"), false);
        json_put_string(json_key(&json, "error"), "ask is status, stop or kill");
    }
    json_close(&json);
    text_char(&asker->answer, '\n');
}

/* --- askers --- */

/* Sends as much of the answer as is taken now; false when the asker is gone. */
static bool send_answer(struct asker *asker)
{
    while (asker->sent < asker->answer.len) {
        ssize_t done =
            write(asker->fd, asker->answer.bytes + asker->sent, asker->answer.len - asker->sent);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == EAGAIN;
        asker->sent += (size_t)done;
    }
    asker->answer.len = 0;
    asker->sent = 0;
    return true;
}

/* Reads what there is and answers whole lines; false when the asker is gone or sends nonsense. */
static bool read_questions(struct supervisor *supervisor, struct asker *asker)
{
    size_t room = sizeof asker->question - asker->question_len;
    ssize_t got = read(asker->fd, asker->question + asker->question_len, room);
    if (got < 0)
        return errno == EAGAIN || errno == EINTR;
    if (got == 0)
        return false;
    asker->question_len += (size_t)got;
    char *end;
    while ((end = memchr(asker->question, '\n', asker->question_len))) {
        size_t len = (size_t)(end - asker->question);
        answer(supervisor, asker, (struct strview){asker->question, len});
        asker->question_len -= len + 1;
        memmove(asker->question, end + 1, asker->question_len);
    }
    return asker->question_len < sizeof asker->question && !asker->answer.has_failed;
}

/* A place for one more asker: an empty one, else that of the asker that has been silent longest. */
static struct asker *find_place(struct supervisor *supervisor)
{
    struct asker *oldest = NULL;
    for (int i = 0; i < ASKER_COUNT; i++) {
        struct asker *asker = &supervisor->askers[i];
        if (asker->fd < 0)
            return asker;
        if (!asker->answer.len && (!oldest || asker->since < oldest->since))
            oldest = asker;
    }
    return oldest;
}

static void welcome(struct supervisor *supervisor)
{
    for (;;) {
        struct asker *place = find_place(supervisor);
        if (!place || (place->fd >= 0 && clock_ms() - place->since < IDLE_MS))
            break;
        int fd = control_accept(supervisor->control);
        if (fd < 0)
            return; /* no more for now */
        if (place->fd >= 0)
            let_go(supervisor, place);
        if (!watcher_watch(&supervisor->watcher, fd, EPOLLIN))
            close(fd);
        else
            *place = (struct asker){.fd = fd, .since = clock_ms()};
    }
    listen_for_more(supervisor, false);
}

bool control_serve(struct supervisor *supervisor, int fd)
{
    if (fd == supervisor->control) {
        welcome(supervisor);
        return true;
    }
    for (int i = 0; i < ASKER_COUNT; i++) {
        struct asker *asker = &supervisor->askers[i];
        if (asker->fd != fd)
            continue;
        if (!read_questions(supervisor, asker) || !send_answer(asker)) {
            let_go(supervisor, asker);
        } else {
            asker->since = clock_ms();
            struct epoll_event event = {.events = asker->answer.len ? EPOLLOUT : EPOLLIN,
                                        .data = {.fd = fd}};
            (void)epoll_ctl(supervisor->watcher.epoll, EPOLL_CTL_MOD, fd, &event);
        }
        return true;
    }
    return false;
}

/* Drops askers that do not take their answers; silent askers make room after a moment. */
int64_t control_tick(struct supervisor *supervisor)
{
    int64_t now = clock_ms(), wait = -1;
    for (int i = 0; i < ASKER_COUNT; i++) {
        struct asker *asker = &supervisor->askers[i];
        if (asker->fd >= 0 && asker->answer.len && now - asker->since > ASKER_MS)
            let_go(supervisor, asker);
        else if (asker->fd >= 0 && asker->answer.len)
            wait = clock_sooner(wait, asker->since + ASKER_MS + 1 - now);
    }
    if (supervisor->control < 0)
        return wait;
    const struct asker *place = find_place(supervisor);
    if (!place || place->fd < 0)
        return wait;
    if (now - place->since < IDLE_MS)
        return clock_sooner(wait, place->since + IDLE_MS - now);
    listen_for_more(supervisor, true);
    return wait;
}
