/* worker_serve.c - handlers by name, called for one request after the other. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "rpc/worker_internal.h"

static struct handler *find(const struct roost_worker *worker, const char *method)
{
    for (size_t i = 0; i < worker->handler_count; i++)
        if (strcmp(worker->handlers[i].method, method) == 0)
            return &worker->handlers[i];
    return NULL;
}

enum roost_code roost_worker_on(struct roost_worker *worker, const char *method,
                                roost_handler *handler, void *context, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct handler *known = find(worker, method);
    if (known) {
        known->call = handler;
        known->context = context;
        return ROOST_OK;
    }
    if (worker->handler_count == worker->handler_cap) {
        size_t cap = worker->handler_cap ? 2 * worker->handler_cap : 8;
        struct handler *handlers = realloc(worker->handlers, cap * sizeof *handlers);
        if (!handlers)
            return diag_nomem(&diag);
        worker->handlers = handlers;
        worker->handler_cap = cap;
    }
    size_t size = strlen(method) + 1;
    struct handler *added = &worker->handlers[worker->handler_count];
    *added = (struct handler){malloc(size), handler, context};
    if (!added->method)
        return diag_nomem(&diag);
    memcpy(added->method, method, size);
    worker->handler_count++;
    return ROOST_OK;
}

static void refuse_method(const struct roost_worker *worker, struct roost_request *request)
{
    struct text words = TEXT_INIT;
    text_printf(&words, "this worker has no method '%s'; it has ", roost_request_method(request));
    for (size_t i = 0; i < worker->handler_count; i++)
        text_printf(&words, "%s'%s'", i ? ", " : "", worker->handlers[i].method);
    if (worker->handler_count == 0)
        text_puts(&words, "none");
    const char *string = text_string(&words);
    struct roost_bytes bytes = {string ? string : "no memory", string ? words.len : 9};
    (void)!roost_request_fail(request, &bytes, 1, NULL);
    text_release(&words);
    roost_request_free(request);
}

enum roost_code roost_worker_serve(struct roost_worker *worker, struct roost_error *err)
{
    struct roost_request *request = NULL;
    enum roost_code code = worker->has_spoken ? ROOST_OK : roost_worker_ready(worker, NULL, 0, err);
    /* A driver that has gone meanwhile is the usual end, not a failure. */
    while (code == ROOST_OK && !roost_worker_is_over(worker)) {
        code = roost_worker_next(worker, -1, &request, err);
        if (!request)
            continue;
        const struct handler *handler = find(worker, roost_request_method(request));
        if (handler)
            handler->call(request, handler->context);
        else
            refuse_method(worker, request);
    }
    return code;
}
