/* client.c - a process's connection to a keeper, shared by its threads.
 *
 * Requests get a number each; answers may come in any order, as a request for a lock waits while others
 * are answered. Of several threads that wait one reads for all. Everything is done with the lock held but
 * for waiting, so a writer that finds no room takes answers meanwhile: a keeper does not read from who
 * does not listen. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <roost/registry.h>

#include "base/private_dir.h"
#include "registry/namespaces.h"
#include "rpc/control.h"

enum {
    WRITE_MS = 30000,  /* for a keeper that takes nothing of a request */
    CANCEL_MS = 10000, /* for one that does not answer when a request is taken back */
    ANSWER_MAX = 1 << 30,
    READ_BYTES = 64 * 1024,
};

struct pending {
    struct pending *next;
    int64_t ticket;
    char *answer; /* NULL = not yet */
};

struct roost_registry {
    char name_space[ROOST_NAMESPACE_MAX + 1];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd;
    int wake; /* an eventfd: an answer was taken while another thread waits at the descriptor */
    pid_t pid;
    int64_t last_ticket;
    struct pending *pending;
    struct text inbox;
    bool is_reading; /* a thread waits at the descriptor */
    bool is_lost;
};

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- opening and closing --- */

struct roost_registry *roost_registry_open(const char *const *env, const char *name_space,
                                           struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    int fd = namespaces_connect(env, name_space, &diag);
    if (fd < 0)
        return NULL;
    struct roost_registry *registry = calloc(1, sizeof *registry);
    if (!registry) {
        close(fd);
        diag_nomem(&diag);
        return NULL;
    }
    registry->fd = fd;
    registry->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (registry->wake < 0) {
        diag_error(&diag, ROOST_ERR_ENGINE, NOWHERE, "cannot make an eventfd: %s", strerror(errno));
        diag_hint(&diag, "raise the limit of open files: ulimit -n");
        close(fd);
        free(registry);
        return NULL;
    }
    registry->pid = getpid();
    registry->inbox = (struct text)TEXT_INIT;
    snprintf(registry->name_space, sizeof registry->name_space, "%s", name_space);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&registry->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&registry->lock, NULL);
    return registry;
}

void roost_registry_close(struct roost_registry *registry)
{
    if (!registry)
        return;
    for (struct pending *it = registry->pending, *next; it; it = next) {
        next = it->next;
        free(it->answer);
        free(it);
    }
    close(registry->fd);
    close(registry->wake);
    text_release(&registry->inbox);
    if (registry->pid == getpid()) { /* in a fork they may be locked for ever */
        pthread_cond_destroy(&registry->changed);
        pthread_mutex_destroy(&registry->lock);
    }
    free(registry);
}

void roost_answer_free(char *answer)
{
    free(answer);
}

/* --- with the lock held --- */

static struct pending *find(struct roost_registry *registry, int64_t ticket)
{
    struct pending *it = registry->pending;
    while (it && it->ticket != ticket)
        it = it->next;
    return it;
}

static void forget(struct roost_registry *registry, struct pending *pending)
{
    struct pending **at = &registry->pending;
    while (*at != pending)
        at = &(*at)->next;
    *at = pending->next;
    free(pending->answer);
    free(pending);
}

/* {"id":7, the rest of an answer} goes to whoever asked, without the number. False without memory. */
static bool dispatch(struct roost_registry *registry, struct strview line)
{
    static const struct strview lead = SV("{\"id\":");
    if (!sv_starts(line, lead.at))
        return true; /* an answer that nobody asked for */
    int64_t ticket = 0;
    size_t at = lead.len;
    for (; at < line.len && line.at[at] >= '0' && line.at[at] <= '9' && at < lead.len + 18; at++)
        ticket = ticket * 10 + (line.at[at] - '0');
    struct pending *pending = find(registry, ticket);
    if (at >= line.len || line.at[at] != ',' || !pending || pending->answer)
        return true;
    size_t len = line.len - at; /* the comma becomes the brace */
    pending->answer = malloc(len + 1);
    if (!pending->answer)
        return false;
    memcpy(pending->answer, line.at + at, len);
    pending->answer[0] = '{';
    pending->answer[len] = '\0';
    return true;
}

/* Takes what has come; never waits. */
static void hear(struct roost_registry *registry)
{
    struct text *in = &registry->inbox;
    bool has_heard = false;
    while (!registry->is_lost) {
        if (in->len > ANSWER_MAX || !text_reserve(in, READ_BYTES)) {
            registry->is_lost = true;
            break;
        }
        ssize_t got = read(registry->fd, in->bytes + in->len, READ_BYTES);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (got <= 0) {
            registry->is_lost = true;
            break;
        }
        has_heard = true;
        size_t searched = in->len, used = 0;
        in->len += (size_t)got;
        for (char *end; (end = memchr(in->bytes + searched, '\n', in->len - searched));) {
            size_t stop = (size_t)(end - in->bytes);
            if (!dispatch(registry, (struct strview){in->bytes + used, stop - used}))
                registry->is_lost = true;
            used = searched = stop + 1;
        }
        memmove(in->bytes, in->bytes + used, in->len - used);
        in->len -= used;
    }
    if (!has_heard && !registry->is_lost)
        return;
    pthread_cond_broadcast(&registry->changed);
    if (registry->is_reading && write(registry->wake, &(uint64_t){1}, sizeof(uint64_t)) < 0)
        return; /* it counts to the limit: the other is being woken anyway */
}

static enum roost_code say_lost(const struct roost_registry *registry, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the managers of namespace '%s' are gone",
               registry->name_space);
    diag_hint(diag, "the process that started them has ended; make a new Cluster");
    return ROOST_ERR_ENGINE;
}

static bool send_line(struct roost_registry *registry, struct strview line)
{
    int64_t deadline = now_ms() + WRITE_MS;
    size_t sent = 0;
    while (sent < line.len && !registry->is_lost) {
        ssize_t done = control_send(registry->fd, line.at + sent, line.len - sent);
        if (done > 0) {
            sent += (size_t)done;
            deadline = now_ms() + WRITE_MS;
        } else if (done < 0 && errno != EAGAIN && errno != EINTR) {
            registry->is_lost = true;
        } else if (now_ms() >= deadline) {
            registry->is_lost = true; /* half a line cannot be taken back */
        } else {
            poll(&(struct pollfd){registry->fd, POLLIN | POLLOUT, 0}, 1, 1000);
            hear(registry);
        }
    }
    return !registry->is_lost;
}

static void wait_until(struct roost_registry *registry, int64_t deadline)
{
    struct timespec until = {deadline / 1000, (deadline % 1000) * 1000000};
    if (deadline < 0)
        pthread_cond_wait(&registry->changed, &registry->lock);
    else
        pthread_cond_timedwait(&registry->changed, &registry->lock, &until);
}

/* Waits for something to happen at all, at most until the deadline (-1 = none). */
static void wait_some(struct roost_registry *registry, int64_t deadline)
{
    if (registry->is_reading) {
        wait_until(registry, deadline);
        return;
    }
    int64_t left = deadline < 0 ? -1 : deadline - now_ms();
    registry->is_reading = true;
    pthread_mutex_unlock(&registry->lock);
    struct pollfd fds[2] = {{registry->fd, POLLIN, 0}, {registry->wake, POLLIN, 0}};
    poll(fds, 2, deadline < 0 ? -1 : (int)(left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : left));
    pthread_mutex_lock(&registry->lock);
    registry->is_reading = false;
    uint64_t count;
    (void)!read(registry->wake, &count, sizeof count);
    hear(registry);
    pthread_cond_broadcast(&registry->changed); /* somebody else must wait there now */
}

/* --- asking --- */

static bool is_ours(const struct roost_registry *registry, struct diag *diag)
{
    if (registry->pid == getpid())
        return true;
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
               "this connection to namespace '%s' belongs to the process that opened it",
               registry->name_space);
    diag_hint(diag, "open one of its own in a process that was forked");
    return false;
}

/* The request as a line, with its number in front. */
static bool make_line(struct text *out, int64_t ticket, struct strview request, struct diag *diag)
{
    struct strview rest = sv_trim(request);
    if (rest.len < 2 || rest.at[0] != '{' || memchr(rest.at, '\n', rest.len)) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
                   "a request is a JSON object of one line, not '%s'", quote(rest).text);
        diag_hint(diag, "write {\"call\": \"NodeManager.get_nodes\", \"args\": []}");
        return false;
    }
    text_printf(out, "{\"id\":%" PRId64 ",", ticket);
    text_put(out, sv_sub(rest, 1, rest.len));
    text_char(out, '\n');
    if (out->has_failed)
        diag_nomem(diag);
    return !out->has_failed;
}

static enum roost_code ask(struct roost_registry *registry, struct strview request,
                           int64_t *out_ticket, struct diag *diag)
{
    struct pending *pending = calloc(1, sizeof *pending);
    struct text line = TEXT_INIT;
    if (!pending)
        return diag_nomem(diag);
    pending->ticket = ++registry->last_ticket;
    pending->next = registry->pending;
    registry->pending = pending;
    if (!make_line(&line, pending->ticket, request, diag))
        forget(registry, pending);
    else if (!send_line(registry, (struct strview){line.bytes, line.len})) {
        forget(registry, pending);
        (void)say_lost(registry, diag);
    } else {
        *out_ticket = pending->ticket;
    }
    text_release(&line);
    return diag->first;
}

enum roost_code roost_registry_ask(struct roost_registry *registry, const char *request, size_t len,
                                   int64_t *out_ticket, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    enum roost_code code = ask(registry, (struct strview){request, len}, out_ticket, &diag);
    pthread_mutex_unlock(&registry->lock);
    return code;
}

static enum roost_code say_time(const struct roost_registry *registry, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "the managers of namespace '%s' have not answered in time", registry->name_space);
    diag_hint(diag, "what was asked for is still taken by another, or the machine is very busy");
    return ROOST_ERR_TIMEOUT;
}

/* Until the answer is there, or the deadline (-1 = none). */
static enum roost_code await(struct roost_registry *registry, int64_t ticket, int64_t deadline,
                             char **out_answer, struct diag *diag)
{
    struct pending *pending;
    while ((pending = find(registry, ticket)) && !pending->answer) {
        if (registry->is_lost)
            return say_lost(registry, diag);
        if (deadline >= 0 && now_ms() >= deadline)
            return say_time(registry, diag);
        wait_some(registry, deadline);
    }
    if (!pending) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "there is no request %" PRId64, ticket);
        diag_hint(diag, "a ticket is good for one answer");
        return ROOST_ERR_USAGE;
    }
    *out_answer = pending->answer;
    pending->answer = NULL;
    forget(registry, pending);
    return ROOST_OK;
}

enum roost_code roost_registry_wait(struct roost_registry *registry, int64_t ticket,
                                    int32_t timeout_ms, char **out_answer, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    hear(registry); /* what is there already counts, whatever the time */
    enum roost_code code =
        await(registry, ticket, timeout_ms < 0 ? -1 : now_ms() + timeout_ms, out_answer, &diag);
    pthread_mutex_unlock(&registry->lock);
    return code;
}

/* The keeper answers in the order it does things: when the request was served before it was taken back,
 * its answer comes before that of the cancel. */
static enum roost_code cancel(struct roost_registry *registry, int64_t ticket, char **out_answer,
                              struct diag *diag)
{
    char line[96], *word = NULL;
    int64_t second;
    int len = snprintf(line, sizeof line, "{\"call\":\"Registry.cancel\",\"args\":[%" PRId64 "]}",
                       ticket);
    if (!find(registry, ticket) ||
        ask(registry, (struct strview){line, (size_t)len}, &second, diag))
        return diag->first ? diag->first : say_time(registry, diag);
    if (await(registry, second, now_ms() + CANCEL_MS, &word, diag) != ROOST_OK) {
        registry->is_lost = true; /* its owner must be gone, or it may get what nobody waits for */
        control_hang_up(registry->fd);
    }
    free(word);
    struct pending *pending = find(registry, ticket);
    bool has_answer = pending && pending->answer;
    if (has_answer) {
        *out_answer = pending->answer;
        pending->answer = NULL;
    }
    if (pending)
        forget(registry, pending);
    return has_answer ? ROOST_OK : diag->first ? diag->first : say_time(registry, diag);
}

enum roost_code roost_registry_cancel(struct roost_registry *registry, int64_t ticket,
                                      char **out_answer, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    enum roost_code code = cancel(registry, ticket, out_answer, &diag);
    pthread_mutex_unlock(&registry->lock);
    return code;
}

enum roost_code roost_registry_call(struct roost_registry *registry, const char *request,
                                    size_t len, int32_t timeout_ms, char **out_answer,
                                    struct roost_error *err)
{
    int64_t ticket;
    enum roost_code code = roost_registry_ask(registry, request, len, &ticket, err);
    if (code == ROOST_OK)
        code = roost_registry_wait(registry, ticket, timeout_ms, out_answer, err);
    if (code == ROOST_ERR_TIMEOUT)
        code = roost_registry_cancel(registry, ticket, out_answer, err);
    return code;
}
