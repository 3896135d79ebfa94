/* worker.h - the worker's side of calls: a process that its driver can call.
 *
 * A process of a worker group inherits a socket to its driver. It opens the socket, reports that it is
 * ready, and answers requests until the driver has gone:
 *
 *     struct roost_worker *worker = roost_worker_open((const char *const *)environ, &err);
 *     roost_worker_on(worker, "add", add, NULL, &err);
 *     return roost_worker_serve(worker, &err) == ROOST_OK ? 0 : 1;
 *
 * Each request gets exactly one answer. roost moves the bytes of requests and answers and never looks at
 * them. A worker may answer requests in any order and from any thread; only one thread at a time may take
 * the next request. A process that the worker forks is not the worker: it sends nothing,
 * roost_worker_next and every answer fail there, and it can only free requests. */
#ifndef ROOST_WORKER_H
#define ROOST_WORKER_H

#include <roost/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_worker;
struct roost_request;

/* A piece of what is sent. The pieces of one message follow each other without a gap. */
struct roost_bytes {
    const void *at;
    size_t len;
};

/* Opens the socket that ROOST_CALL_SOCKET in `env` ("NAME=value" texts, NULL-terminated) names. Takes the
 * descriptor: children of this process do not inherit it. NULL if the process was started without one. */
ROOST_API struct roost_worker *roost_worker_open(const char *const *env,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* The same for a given descriptor, which it takes, also on failure. `life` is the driver's number of this
 * life: the driver drops its answers once another life has begun. */
ROOST_API struct roost_worker *roost_worker_new(int fd, int32_t life,
                                                struct roost_error *err) ROOST_MUST_USE;

/* Closes the socket. The caller must have freed all requests before. */
ROOST_API void roost_worker_free(struct roost_worker *worker);

/* Reports to the driver that this worker is ready. The driver can read `bytes` in roost_rank_info. */
ROOST_API enum roost_code roost_worker_ready(struct roost_worker *worker,
                                             const struct roost_bytes *bytes, size_t count,
                                             struct roost_error *err) ROOST_MUST_USE;

/* Reports to the driver that this worker cannot serve; `bytes` say why. Waiting for the group fails then. */
ROOST_API enum roost_code roost_worker_refuse(struct roost_worker *worker,
                                              const struct roost_bytes *bytes, size_t count,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Takes the next request and waits `timeout_ms` for it. With -1 it waits until a request comes or a signal
 * was handled: *out may then be NULL, sometimes even without a signal; call again. *out is NULL if no
 * request came in time, or, with roost_worker_is_over, if none will ever come. Fails if what came is not a
 * request: the worker is useless then. */
ROOST_API enum roost_code roost_worker_next(struct roost_worker *worker, int32_t timeout_ms,
                                            struct roost_request **out,
                                            struct roost_error *err) ROOST_MUST_USE;

/* Whether the driver has closed its side. */
ROOST_API bool roost_worker_is_over(const struct roost_worker *worker);

/* Whether this process is a child of the one that opened the socket. */
ROOST_API bool roost_worker_is_forked(const struct roost_worker *worker);

/* A descriptor that is readable (poll) when there may be a request. Requests may also be in memory
 * already: call roost_worker_next with a timeout of 0 until it gives none. */
ROOST_API int roost_worker_fd(const struct roost_worker *worker);

/* What is asked, borrowed from the request. The payload may be memory that the driver shares with several
 * workers: it is read-only and does not change until the request is freed. */
ROOST_API const char *roost_request_method(const struct roost_request *request);
ROOST_API struct roost_bytes roost_request_payload(const struct roost_request *request);
ROOST_API uint64_t roost_request_id(const struct roost_request *request);

/* Answers with a value, or with an error. A second answer to a request fails. */
ROOST_API enum roost_code roost_request_reply(struct roost_request *request,
                                              const struct roost_bytes *bytes, size_t count,
                                              struct roost_error *err) ROOST_MUST_USE;
ROOST_API enum roost_code roost_request_fail(struct roost_request *request,
                                             const struct roost_bytes *bytes, size_t count,
                                             struct roost_error *err) ROOST_MUST_USE;

/* Releases the payload. A request without an answer is answered with an error. */
ROOST_API void roost_request_free(struct roost_request *request);

/* --- handlers by name --- */

/* A handler owns the request and answers it, by roost_request_reply or _fail, now or later. */
typedef void roost_handler(struct roost_request *request, void *context);

/* Calls `handler` for every request of this method. Copies the name. */
ROOST_API enum roost_code roost_worker_on(struct roost_worker *worker, const char *method,
                                          roost_handler *handler, void *context,
                                          struct roost_error *err) ROOST_MUST_USE;

/* Reports that the worker is ready and passes requests to their handlers until the driver has gone. A
 * method without a handler is answered with an error that lists the known methods. */
ROOST_API enum roost_code roost_worker_serve(struct roost_worker *worker,
                                             struct roost_error *err) ROOST_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
