/* request.c - a request: its bytes, and its one answer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/worker_internal.h"

enum {
    PAYLOAD_ALIGN = 16,
    PAYLOAD_STEP = 1 << 20, /* memory for more is taken as the bytes come */
};

static size_t size_of(const struct roost_request *request, size_t payload_cap)
{
    return sizeof *request + request->payload_at + payload_cap;
}

struct roost_request *request_new(struct roost_worker *worker, const struct frame *frame)
{
    size_t payload_at = (frame->method_len + PAYLOAD_ALIGN) / PAYLOAD_ALIGN * PAYLOAD_ALIGN;
    size_t cap = frame->payload_len < PAYLOAD_STEP ? (size_t)frame->payload_len : PAYLOAD_STEP;
    cap = frame->region ? 0 : cap;
    struct roost_request *request = malloc(sizeof *request + payload_at + cap);
    if (!request)
        return NULL;
    *request = (struct roost_request){.worker = worker,
                                      .id = frame->call,
                                      .region = frame->region,
                                      .payload_len = (size_t)frame->payload_len,
                                      .payload_at = payload_at,
                                      .payload_cap = cap,
                                      .method_len = frame->method_len};
    request->body[frame->method_len] = '\0';
    if (!frame->region)
        return request;
    pthread_mutex_lock(&worker->lock);
    const struct mapping *mapping = mappings_use(worker, frame->region, frame->payload_len);
    if (mapping) {
        request->shared = mapping->at;
        request->error = mapping->error;
    }
    pthread_mutex_unlock(&worker->lock);
    return request;
}

char *request_room(struct roost_request **request, size_t *out_room)
{
    struct roost_request *it = *request;
    if (it->body_len < it->method_len) {
        *out_room = it->method_len - it->body_len;
        return it->body + it->body_len;
    }
    size_t have = it->body_len - it->method_len;
    if (have == it->payload_cap) {
        size_t cap = it->payload_len / 2 < have ? it->payload_len : 2 * have;
        struct roost_request *larger = realloc(it, size_of(it, cap));
        if (!larger)
            return NULL;
        *request = it = larger;
        it->payload_cap = cap;
    }
    *out_room = it->payload_cap - have;
    return it->body + it->payload_at + have;
}

void request_passed(struct roost_request *request, size_t len)
{
    request->body_len += len;
}

const char *roost_request_method(const struct roost_request *request)
{
    return request->body;
}

struct roost_bytes roost_request_payload(const struct roost_request *request)
{
    const char *at = request->region ? request->shared : request->body + request->payload_at;
    return (struct roost_bytes){at, request->payload_len};
}

uint64_t roost_request_id(const struct roost_request *request)
{
    return request->id;
}

/* --- answers --- */

static enum roost_code answer(struct roost_request *request, unsigned flags,
                              const struct roost_bytes *bytes, size_t count,
                              struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    uint64_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += bytes[i].len;
    /* The driver would take it for garbage, and this worker for broken. */
    if (len > FRAME_ANSWER_MAX) {
        diag_error(&diag, ROOST_ERR_LIMIT, NOWHERE,
                   "an answer of %" PRIu64 " bytes is too large: at most %" PRIu64, len,
                   FRAME_ANSWER_MAX);
        diag_hint(&diag, "answer in several calls, or write it to a file");
        return ROOST_ERR_LIMIT;
    }
    if (atomic_exchange(&request->is_answered, true)) {
        diag_error(&diag, ROOST_ERR_USAGE, NOWHERE, "the request was answered before");
        diag_hint(&diag, "answer each request once");
        return ROOST_ERR_USAGE;
    }
    struct frame frame = frame_of(FRAME_ANSWER, request->worker->life);
    frame.call = request->id;
    frame.flags = (uint16_t)flags;
    return worker_send(request->worker, frame, bytes, count, &diag);
}

enum roost_code roost_request_reply(struct roost_request *request, const struct roost_bytes *bytes,
                                    size_t count, struct roost_error *err)
{
    return answer(request, 0, bytes, count, err);
}

enum roost_code roost_request_fail(struct roost_request *request, const struct roost_bytes *bytes,
                                   size_t count, struct roost_error *err)
{
    return answer(request, FRAME_FLAG_ERROR, bytes, count, err);
}

void request_refuse(struct roost_worker *worker, uint64_t id, const char *why)
{
    struct roost_bytes bytes = {why, strlen(why)};
    struct diag nobody = diag_start(NULL, NULL);
    struct frame frame = frame_of(FRAME_ANSWER, worker->life);
    frame.call = id;
    frame.flags = FRAME_FLAG_ERROR;
    (void)worker_send(worker, frame, &bytes, 1, &nobody);
}

/* The driver may write the memory again. */
static void give_back(struct roost_request *request)
{
    struct roost_worker *worker = request->worker;
    struct diag nobody = diag_start(NULL, NULL);
    pthread_mutex_lock(&worker->lock);
    mappings_drop(worker, request->region);
    pthread_mutex_unlock(&worker->lock);
    struct frame frame = frame_of(FRAME_RELEASE, worker->life);
    frame.region = request->region;
    (void)worker_send(worker, frame, NULL, 0, &nobody);
}

void roost_request_free(struct roost_request *request)
{
    static const char words[] = "the worker did not answer";
    if (!request)
        return;
    struct roost_bytes bytes = {words, sizeof words - 1};
    /* A child has a copy of its own; what the driver is told is its parent's business. */
    bool is_ours = !roost_worker_is_forked(request->worker);
    if (is_ours && !atomic_load(&request->is_answered))
        (void)!answer(request, FRAME_FLAG_ERROR, &bytes, 1, NULL);
    if (is_ours && request->region)
        give_back(request);
    free(request);
}
