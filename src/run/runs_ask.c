/* runs_ask.c - asks a living run through its control socket, and reports why it cannot be asked. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "rpc/control_socket.h"
#include "run/runs.h"
#include "supervise/cgroup.h"
#include "supervise/clock.h"
#include "json/json_writer.h"

enum { QUEUE_MS = 10000 };

int runs_connect(const struct run_list *list, const struct run_entry *entry)
{
    char name[CONTROL_NAME_MAX];
    errno = ENOENT;
    if (list->runtime_dir < 0 || !is_name(sv_from(entry->id)) ||
        snprintf(name, sizeof name, "%s.sock", entry->id) >= (int)sizeof name)
        return -1;
    int fd;
    int64_t deadline = clock_ms() + QUEUE_MS;
    while ((fd = control_connect(list->runtime_dir, name)) < 0 && errno == EAGAIN &&
           clock_ms() < deadline)
        clock_pause_ms(10); /* so many are waiting that the kernel takes no more */
    return fd;
}

void runs_explain(const struct run_list *list, const struct run_entry *entry, int error,
                  struct diag *diag)
{
    bool is_frozen = error == 0 && cgroup_is_frozen(entry->cgroup);
    const char *why = is_frozen                                  ? "its control group is frozen"
                      : error == 0                               ? "it gives no answer"
                      : list->runtime_dir < 0                    ? list->unreachable.message
                      : error == ENOENT || error == ECONNREFUSED ? "its socket is not there"
                      : error == EPERM                           ? "another user has its socket"
                                                                 : strerror(error);
    diag_error(diag, ROOST_ERR_ENGINE, (struct place){0},
               "run %s is running but cannot be reached: %s", entry->id, why);
    if (is_frozen)
        diag_hint(diag, "`roost stop --now %s` ends it; 0 in %s/cgroup.freeze lets it go on",
                  entry->id, entry->cgroup);
    else if (error == 0)
        diag_hint(diag, "try again, or end the program that started it");
    else
        diag_hint(diag,
                  "set XDG_RUNTIME_DIR as it was where the run was started, or end the program "
                  "that started it");
}

/* Reads one line. False when the other end hung up instead, or gave no answer in time; at once when it
 * cannot, because it is frozen, and is not to be killed. */
static bool read_line(int fd, int32_t pid, struct insist *insist, const char *cgroup,
                      struct text *out)
{
    enum { ANSWER_MS = 30000, FROZEN_MS = 3000, SILENT_MS = 10000 };
    int64_t start = clock_ms();
    bool is_kill = insist->path != NULL;
    while (clock_ms() < start + ANSWER_MS) {
        char bytes[16 * 1024];
        poll(&(struct pollfd){fd, POLLIN, 0}, 1, 500);
        ssize_t got = read(fd, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        if (got > 0)
            text_append(out, bytes, (size_t)got);
        if (got > 0 && bytes[got - 1] == '\n')
            return true;
        if (is_kill) {
            (void)cgroup_insist(insist);
            if (clock_ms() > start + SILENT_MS && pid > 1) {
                /* The guardian ends the run. Its socket is open, so the number is still its own. */
                insist->has_acted = kill(pid, SIGKILL) == 0;
            }
        }
        if (!is_kill && clock_ms() > start + FROZEN_MS && cgroup_is_frozen(cgroup))
            return false;
    }
    return false;
}

bool runs_ask(struct run_list *list, const struct run_entry *entry, int fd, const char *question,
              struct strview *out)
{
    int32_t pid = control_peer(fd);
    if (pid > 1)
        (void)kill(pid, SIGCONT); /* a stopped run reads nothing */
    char bytes[64];
    struct text line = text_fixed(bytes, sizeof bytes);
    struct json_writer json = json_writer_on(&line, JSON_COMPACT);
    json_open_object(&json);
    json_put_string(json_key(&json, "ask"), question);
    json_close(&json);
    text_char(&line, '\n');
    struct text answer = TEXT_INIT;
    struct insist insist = {.path = strcmp(question, "kill") == 0 ? entry->cgroup : NULL};
    if (!file_write(fd, line.bytes, line.len))
        return false;
    bool is_whole = read_line(fd, pid, &insist, entry->cgroup, &answer);
    const char *text = is_whole ? text_string(&answer) : NULL;
    char *kept = text ? arena_copy(&list->arena, (struct strview){text, answer.len}) : NULL;
    *out = (struct strview){kept, kept ? answer.len : 0};
    text_release(&answer);
    return kept || insist.has_acted; /* one that had to be killed does not answer */
}

/* Until the other end hangs up. */
static void await_end(int fd)
{
    for (;;) {
        char byte[256];
        ssize_t got = read(fd, byte, sizeof byte);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            return;
        poll(&(struct pollfd){fd, POLLIN, 0}, 1, -1);
    }
}

void runs_await(const struct run_list *list, const struct run_entry *entry, int fd)
{
    /* A run may close the connection of an asker that only waits, to make room for others; at its end a
     * run removes its socket first. */
    do {
        await_end(fd);
        close(fd);
    } while ((fd = runs_connect(list, entry)) >= 0);
}
