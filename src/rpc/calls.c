/* calls.c - a request to some ranks, and its outcome at each of them.
 * Keeps: every outcome is decided once, and `pending` counts those that are not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "rpc/links_internal.h"

static const char no_memory[] = "there was no memory to send it";

const char *roost_outcome_word(enum roost_outcome_kind kind)
{
    static const char *const words[] = {"pending", "value", "error", "unknown", "not_run"};
    return (size_t)kind < sizeof words / sizeof *words ? words[kind] : "?";
}

/* --- outcomes --- */

void call_settle(struct roost_call *call, size_t index, enum roost_outcome_kind kind, char *bytes,
                 size_t len)
{
    struct outcome *outcome = &call->outcomes[index];
    outcome->kind = (uint8_t)kind;
    outcome->slot = SLOT_NONE;
    outcome->bytes = bytes;
    outcome->len = len;
    if (--call->pending == 0) {
        timers_unset(&call->links->timers, &call->timer);
        call->links->has_changed = true;
    }
}

char *copy_words(const char *words)
{
    size_t size = strlen(words) + 1;
    char *copy = malloc(size);
    if (copy)
        memcpy(copy, words, size);
    return copy;
}

void call_lose(struct roost_call *call, size_t index, enum roost_outcome_kind kind, const char *why)
{
    call_settle(call, index, kind, copy_words(why), 0);
}

/* Nobody waits for the request of an outcome any more; an answer that still comes is late. Whether the request was
 * sent, wholly or in part. */
static bool forget_request(struct roost_call *call, const struct outcome *outcome)
{
    struct link *link = &call->links->link[outcome->rank];
    struct slot *slot = &link->slots[outcome->slot];
    bool is_sent = !slot->is_unsent;
    slot->call = NULL;
    if (!is_sent)
        link_free_slot(link, slot); /* no answer can come */
    return is_sent;
}

static void time_is_up(struct timer *timer)
{
    struct roost_call *call =
        (struct roost_call *)((char *)timer - offsetof(struct roost_call, timer));
    char why[64], why_not[64];
    snprintf(why, sizeof why, "no answer within %d ms", (int)call->timeout_ms);
    snprintf(why_not, sizeof why_not, "no room to ask it within %d ms", (int)call->timeout_ms);
    for (size_t i = 0; i < call->count; i++) {
        const struct outcome *outcome = &call->outcomes[i];
        if (outcome->kind != ROOST_OUTCOME_PENDING)
            continue;
        if (outcome->slot == SLOT_NONE)
            call_lose(call, i, ROOST_OUTCOME_NOT_RUN, why_not);
        else if (forget_request(call, outcome))
            call_lose(call, i, ROOST_OUTCOME_UNKNOWN, why);
        else
            call_lose(call, i, ROOST_OUTCOME_NOT_RUN, "it closed its socket");
    }
}

/* --- sending --- */

struct room {
    const struct link *link;
    const struct outcome *outcome;
    size_t len;
};

/* Also enough: it has ended, or the time of the call was up meanwhile. */
static bool has_room(void *context)
{
    const struct room *room = context;
    return room->outcome->kind != ROOST_OUTCOME_PENDING || room->link->state == LINK_ENDED ||
           room->link->is_deaf || link_has_room(room->link, room->len);
}

/* Whether the caller wants no more. It is asked without the lock: what it has to take for an answer may be
 * another thread's, who waits for ours. */
static bool is_stopped(struct links *links, const struct roost_call_options *options)
{
    if (!options->is_stopped)
        return false;
    links_leave(links);
    bool is_over = options->is_stopped(options->stop_ctx);
    links_lock(links);
    return is_over;
}

/* False when the caller has given up. */
static bool wait_for_room(struct links *links, struct room *room,
                          const struct roost_call_options *options)
{
    enum { SLICE_MS = 200 };
    while (!has_room(room)) {
        int64_t deadline = options->is_stopped ? timers_deadline(SLICE_MS) : -1;
        if (!links_wait_held(links, deadline, has_room, room) && is_stopped(links, options))
            return false;
    }
    return true;
}

/* False when the caller has given up. */
static bool call_rank(struct roost_call *call, size_t index, const struct question *question,
                      const struct roost_call_options *options)
{
    struct outcome *outcome = &call->outcomes[index];
    struct link *link = &call->links->link[outcome->rank];
    struct room room = {link, outcome, question_len(question)};
    if (!wait_for_room(call->links, &room, options))
        return false;
    if (outcome->kind != ROOST_OUTCOME_PENDING)
        return true;
    if (link->state == LINK_ENDED)
        call_lose(call, index, ROOST_OUTCOME_NOT_RUN, link->why ? link->why : "it has ended");
    else if (!link_reserve(link))
        call_lose(call, index, ROOST_OUTCOME_NOT_RUN, no_memory);
    else if (!question_send(question, link, call, index) &&
             outcome->kind == ROOST_OUTCOME_PENDING) {
        if (outcome->slot != SLOT_NONE)
            link_free_slot(link, &link->slots[outcome->slot]);
        call_lose(call, index, ROOST_OUTCOME_NOT_RUN, no_memory);
    }
    return true;
}

/* --- making a call --- */

static bool check_options(const struct links *links, const struct roost_call_options *options,
                          struct diag *diag)
{
    int32_t count = links->options.rank_count;
    if (!options->method || strlen(options->method) > FRAME_METHOD_MAX) {
        diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
                   options->method ? "the name of the method has more than %d bytes"
                                   : "a call needs the name of a method of at most %d bytes",
                   FRAME_METHOD_MAX);
        diag_hint(diag, "name a method of the worker; what it works on goes into the payload");
        return false;
    }
    for (size_t i = 0; options->ranks && i < options->rank_count; i++)
        if (options->ranks[i] < 0 || options->ranks[i] >= count) {
            diag_error(diag, ROOST_ERR_FIT, NOWHERE, "rank %d cannot be called: it is not there",
                       (int)options->ranks[i]);
            diag_hint(diag, "the group has %d rank%s, counted from 0", (int)count,
                      count == 1 ? "" : "s");
            return false;
        }
    return true;
}

/* The ranks in the order asked, each at most once. */
static bool set_ranks(struct roost_call *call, const struct roost_call_options *options,
                      struct diag *diag)
{
    uint64_t mark = ++call->links->call_count;
    for (size_t i = 0; i < call->count; i++) {
        int32_t rank = options->ranks ? options->ranks[i] : (int32_t)i;
        struct link *link = &call->links->link[rank];
        if (link->marked == mark) {
            diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "rank %d is named twice in one call",
                       (int)rank);
            diag_hint(diag, "name each rank once, or make two calls");
            return false;
        }
        link->marked = mark;
        call->outcomes[i] = (struct outcome){.rank = rank, .slot = SLOT_NONE};
    }
    return true;
}

static struct roost_call *call_new(struct links *links, const struct roost_call_options *options,
                                   struct diag *diag)
{
    size_t count = options->ranks ? options->rank_count : (size_t)links->options.rank_count;
    struct roost_call *call = malloc(sizeof *call + count * sizeof(struct outcome));
    if (!call || !timers_reserve(&links->timers, 1)) {
        free(call);
        diag_nomem(diag);
        return NULL;
    }
    *call = (struct roost_call){.links = links,
                                .timer.fire = time_is_up,
                                .timeout_ms = options->timeout_ms,
                                .count = count,
                                .pending = count};
    if (set_ranks(call, options, diag))
        return call;
    timers_give_back(&links->timers, 1);
    free(call);
    return NULL;
}

struct roost_call *links_call(struct links *links, const struct roost_call_options *options,
                              struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct question question;
    if (!check_options(links, options, &diag))
        return NULL;
    if (!question_init(&question, links, options)) {
        diag_nomem(&diag);
        return NULL;
    }
    links_lock(links);
    struct roost_call *call = call_new(links, options, &diag);
    if (call && options->timeout_ms > 0 && call->count)
        links_set_timer(links, &call->timer, timers_deadline(options->timeout_ms));
    bool is_given_up = false;
    for (size_t i = 0; call && !is_given_up && i < call->count; i++)
        is_given_up = !call_rank(call, i, &question, options);
    links_leave(links);
    question_release(&question, links);
    if (!is_given_up)
        return call;
    diag_error(&diag, ROOST_ERR_TIMEOUT, NOWHERE, "the call was given up before every rank had it");
    diag_hint(&diag, "ranks that are far behind take no more calls until they have answered");
    roost_call_free(call);
    return NULL;
}

/* --- looking at it --- */

static bool is_settled(void *context)
{
    const struct roost_call *call = context;
    return call->pending == 0;
}

bool roost_call_wait(struct roost_call *call, int32_t timeout_ms)
{
    return links_wait(call->links, timeout_ms, is_settled, call);
}

bool roost_call_is_done(struct roost_call *call)
{
    links_lock(call->links);
    if (call->pending)
        links_pump_held(call->links);
    bool is_done = call->pending == 0;
    links_leave(call->links);
    return is_done;
}

size_t roost_call_count(const struct roost_call *call)
{
    return call->count;
}

struct roost_outcome roost_call_outcome(struct roost_call *call, size_t index)
{
    struct roost_outcome result = {.rank = -1, .bytes = {"", 0}, .why = ""};
    links_lock(call->links);
    if (index < call->count) {
        const struct outcome *outcome = &call->outcomes[index];
        bool is_lost =
            outcome->kind == ROOST_OUTCOME_UNKNOWN || outcome->kind == ROOST_OUTCOME_NOT_RUN;
        result.rank = outcome->rank;
        result.kind = (enum roost_outcome_kind)outcome->kind;
        if (is_lost)
            result.why = outcome->bytes ? outcome->bytes : "there was no memory to tell why";
        else if (outcome->bytes)
            result.bytes = (struct roost_bytes){outcome->bytes, outcome->len};
    }
    links_leave(call->links);
    return result;
}

void roost_call_free(struct roost_call *call)
{
    if (!call)
        return;
    struct links *links = call->links;
    links_lock(links);
    for (size_t i = 0; i < call->count; i++)
        if (call->outcomes[i].kind == ROOST_OUTCOME_PENDING && call->outcomes[i].slot != SLOT_NONE)
            (void)forget_request(call, &call->outcomes[i]);
    timers_unset(&links->timers, &call->timer);
    timers_give_back(&links->timers, 1);
    for (size_t i = 0; i < call->count; i++)
        free(call->outcomes[i].bytes);
    links_leave(links);
    free(call);
}
