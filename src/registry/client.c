/* client.c - sends requests to a registry server. Each request gets a ticket; the caller waits for the answer of
 * a ticket, or cancels it. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "registry/client_internal.h"
#include "rpc/control_socket.h"
#include "json/json_writer.h"

enum {
    CANCEL_MS = 10000
}; /* for a registry server that does not answer when a request is taken back */

static enum roost_code say_lost(const struct roost_registry_client *registry, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "the managers of namespace '%s' are gone",
               registry->name_space);
    diag_hint(diag, "they were killed, or ended with the process that started them; ask again when "
                    "it has launched once more, or make a new Cluster");
    return ROOST_ERR_ENGINE;
}

static bool is_ours(const struct roost_registry_client *registry, struct diag *diag)
{
    if (registry->pid == getpid())
        return true;
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
               "this connection to namespace '%s' belongs to the process that opened it",
               registry->name_space);
    diag_hint(diag, "open one of its own in a process that was forked");
    return false;
}

/* The request as a line, with its number in front. The request is JSON already, so it is spliced. */
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

static enum roost_code ask(struct roost_registry_client *registry, struct strview request,
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
        connection_forget(registry, pending);
    else if (!connection_send(registry, (struct strview){line.bytes, line.len})) {
        connection_forget(registry, pending);
        (void)say_lost(registry, diag);
    } else {
        *out_ticket = pending->ticket;
    }
    text_release(&line);
    return diag->first;
}

enum roost_code roost_registry_client_ask(struct roost_registry_client *registry,
                                          const char *request, size_t len, int64_t *out_ticket,
                                          struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    enum roost_code code = ask(registry, (struct strview){request, len}, out_ticket, &diag);
    pthread_mutex_unlock(&registry->lock);
    return code;
}

static enum roost_code say_time(const struct roost_registry_client *registry, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "the managers of namespace '%s' have not answered in time", registry->name_space);
    diag_hint(diag, "what was asked for is still taken by another, or the machine is very busy");
    return ROOST_ERR_TIMEOUT;
}

/* The registry server had the request, and nobody has to wait but for a lock. */
static enum roost_code say_taken(const struct roost_registry_client *registry, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "a device that was asked for in namespace '%s' is still taken by another",
               registry->name_space);
    diag_hint(diag, "it is free once its holder releases it or ends: allow more time");
    return ROOST_ERR_TIMEOUT;
}

/* Until the answer is there, or the deadline (-1 = none). */
static enum roost_code await(struct roost_registry_client *registry, int64_t ticket,
                             int64_t deadline, char **out_answer, struct diag *diag)
{
    struct pending *pending;
    while ((pending = connection_find(registry, ticket)) && !pending->answer) {
        if (registry->is_lost)
            return say_lost(registry, diag);
        if (deadline >= 0 && connection_now() >= deadline)
            return say_time(registry, diag);
        connection_wait(registry, deadline);
    }
    if (!pending) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "there is no request %" PRId64, ticket);
        diag_hint(diag, "a ticket is good for one answer");
        return ROOST_ERR_USAGE;
    }
    *out_answer = pending->answer;
    pending->answer = NULL;
    connection_forget(registry, pending);
    return ROOST_OK;
}

enum roost_code roost_registry_client_wait(struct roost_registry_client *registry, int64_t ticket,
                                           int32_t timeout_ms, char **out_answer,
                                           struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    connection_hear(registry); /* what is there already counts, whatever the time */
    enum roost_code code = await(
        registry, ticket, timeout_ms < 0 ? -1 : connection_now() + timeout_ms, out_answer, &diag);
    pthread_mutex_unlock(&registry->lock);
    return code;
}

/* Asks about another request, and hangs up when there is no answer: its owner must be gone then, or it may
 * get what nobody waits for. *out_yes: whether the answer is true. */
static enum roost_code ask_about(struct roost_registry_client *registry, const char *call,
                                 int64_t ticket, bool *out_yes, struct diag *diag)
{
    char bytes[128], *word = NULL;
    int64_t second = 0;
    *out_yes = false;
    struct text line = text_fixed(bytes, sizeof bytes);
    struct json_writer json = json_writer_on(&line, JSON_COMPACT);
    json_open_object(&json);
    json_put_string(json_key(&json, "call"), call);
    json_open_array(json_key(&json, "args"));
    json_put_int(&json, ticket);
    json_close(&json);
    json_close(&json);
    if (ask(registry, (struct strview){line.bytes, line.len}, &second, diag) != ROOST_OK)
        return diag->first;
    if (await(registry, second, connection_now() + CANCEL_MS, &word, diag) != ROOST_OK) {
        registry->is_lost = true;
        control_hang_up(registry->fd);
    }
    *out_yes = word && strstr(word, "\"value\":true");
    free(word);
    return ROOST_OK;
}

/* The registry server answers in the order it does things: when the request was served before it was taken back,
 * its answer comes before that of the cancel. */
static enum roost_code cancel(struct roost_registry_client *registry, int64_t ticket,
                              char **out_answer, struct diag *diag)
{
    bool has_waited;
    if (!connection_find(registry, ticket) ||
        ask_about(registry, "Registry.cancel", ticket, &has_waited, diag) != ROOST_OK)
        return diag->first ? diag->first : say_time(registry, diag);
    struct pending *pending = connection_find(registry, ticket);
    bool has_answer = pending && pending->answer;
    if (has_answer) {
        *out_answer = pending->answer;
        pending->answer = NULL;
    }
    if (pending)
        connection_forget(registry, pending);
    if (has_answer || diag->first)
        return has_answer ? ROOST_OK : diag->first;
    return has_waited ? say_taken(registry, diag) : say_time(registry, diag);
}

enum roost_code roost_registry_client_cancel(struct roost_registry_client *registry, int64_t ticket,
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

enum roost_code roost_registry_client_undo(struct roost_registry_client *registry, int64_t ticket,
                                           struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!is_ours(registry, &diag))
        return diag.first;
    pthread_mutex_lock(&registry->lock);
    bool unused;
    (void)ask_about(registry, "Registry.undo", ticket, &unused, &diag);
    pthread_mutex_unlock(&registry->lock);
    return diag.first;
}

enum roost_code roost_registry_client_call(struct roost_registry_client *registry,
                                           const char *request, size_t len, int32_t timeout_ms,
                                           char **out_answer, struct roost_error *err)
{
    int64_t ticket = 0;
    enum roost_code code = roost_registry_client_ask(registry, request, len, &ticket, err);
    if (code == ROOST_OK)
        code = roost_registry_client_wait(registry, ticket, timeout_ms, out_answer, err);
    if (code == ROOST_ERR_TIMEOUT)
        code = roost_registry_client_cancel(registry, ticket, out_answer, err);
    return code;
}
