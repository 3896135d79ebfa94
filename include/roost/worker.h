/* worker.h - the worker's side of calls: a process that its driver can call.
 *
 * A process of a group finds a channel to its driver among its descriptors. It opens it, says that it
 * is ready, and answers one request after the other until the driver has gone:
 *
 *     struct roost_worker *worker = roost_worker_open((const char *const *)environ, &err);
 *     roost_worker_on(worker, "add", add, NULL, &err);
 *     return roost_worker_serve(worker, &err) == ROOST_OK ? 0 : 1;
 *
 * Each request gets exactly one answer. The bytes of requests and answers are the caller's own: roost
 * moves them and looks at none. Requests may be answered in any order and from any thread; taking the
 * next one is for one thread at a time. A process that the worker forks is not the worker: there nothing is
 * sent, roost_worker_next and every answer fail, and requests can only be freed. */
#ifndef ROOST_WORKER_H
#define ROOST_WORKER_H

#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_worker;
struct roost_request;

/* Bytes that stand one behind the other in what is sent. */
struct roost_bytes {
    const void *at;
    size_t len;
};

/* Opens the channel that `env` ("NAME=value", NULL-terminated; ROOST_CHANNEL) names. The descriptor is
 * taken: children of this process do not inherit it. NULL when the process was not started with one. */
ROOST_API struct roost_worker *roost_worker_open(const char *const *env, struct roost_error *err);

/* The same for a descriptor that is at hand; takes it, also on failure. `life` is what
 * the driver numbered this life with: its answers are dropped once another life has begun. */
ROOST_API struct roost_worker *roost_worker_new(int fd, int32_t life, struct roost_error *err);

/* Closes the channel. Requests that were taken must have been freed before. */
ROOST_API void roost_worker_free(struct roost_worker *worker);

/* Tells the driver that requests are welcome; `bytes` reach who waits for the group. */
ROOST_API enum roost_code roost_worker_ready(struct roost_worker *worker,
                                             const struct roost_bytes *bytes, size_t count,
                                             struct roost_error *err) ROOST_MUST_USE;

/* Tells the driver that this worker cannot serve, and why: waiting for the group fails with `bytes`. */
ROOST_API enum roost_code roost_worker_refuse(struct roost_worker *worker,
                                              const struct roost_bytes *bytes, size_t count,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Takes the next request, waiting `timeout_ms` for it (-1 = as long as it takes, or until a signal was
 * handled: *out may be NULL then, and now and then without one; ask again). *out is NULL when none came in
 * time, or, with roost_worker_is_over, when none will come any more. Fails when what came is not a request:
 * the worker is of no use then. */
ROOST_API enum roost_code roost_worker_next(struct roost_worker *worker, int32_t timeout_ms,
                                            struct roost_request **out,
                                            struct roost_error *err) ROOST_MUST_USE;

/* The driver has closed its side. */
ROOST_API bool roost_worker_is_over(const struct roost_worker *worker);

/* This process is a child of the one that opened the channel. */
ROOST_API bool roost_worker_is_forked(const struct roost_worker *worker);

/* Readable (poll) when a request may be there. A request may also be in memory already: ask
 * roost_worker_next with no timeout until it gives none. */
ROOST_API int roost_worker_fd(const struct roost_worker *worker);

/* What is asked; all borrowed from the request. The payload may be memory that the driver shares with
 * several workers: it is read-only, and stays as it is until the request is freed. */
ROOST_API const char *roost_request_method(const struct roost_request *request);
ROOST_API struct roost_bytes roost_request_payload(const struct roost_request *request);
ROOST_API uint64_t roost_request_id(const struct roost_request *request);

/* Answers with a value, or with an error; the second answer to a request is refused. */
ROOST_API enum roost_code roost_request_reply(struct roost_request *request,
                                              const struct roost_bytes *bytes, size_t count,
                                              struct roost_error *err) ROOST_MUST_USE;
ROOST_API enum roost_code roost_request_fail(struct roost_request *request,
                                             const struct roost_bytes *bytes, size_t count,
                                             struct roost_error *err) ROOST_MUST_USE;

/* Gives its payload back. One that has not been answered is answered with an error. */
ROOST_API void roost_request_free(struct roost_request *request);

/* --- handlers by name --- */

/* Answers the request, by roost_request_reply or _fail, now or later; it owns the request. */
typedef void roost_handler(struct roost_request *request, void *context);

/* Has `handler` called for a method; the name is copied. */
ROOST_API enum roost_code roost_worker_on(struct roost_worker *worker, const char *method,
                                          roost_handler *handler, void *context,
                                          struct roost_error *err) ROOST_MUST_USE;

/* Says that it is ready and hands out requests until the driver has gone. A method without a handler is
 * answered with an error that names those there are. */
ROOST_API enum roost_code roost_worker_serve(struct roost_worker *worker,
                                             struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
