/* worker_internal.h - a worker and its requests, shared by worker.c (the socket), worker_in.c (receiving),
 * mappings.c (shared memory), request.c (answers) and worker_serve.c (handlers). */
#ifndef RPC_WORKER_INTERNAL_H
#define RPC_WORKER_INTERNAL_H

#include <pthread.h>
#include <roost/worker.h>
#include <stdatomic.h>

#include "base/diag.h"
#include "rpc/frame.h"
#include "rpc/spin.h"

enum {
    FDS_MAX = 4, /* a send has at most one descriptor, and two sends can be half received */
    BUFFER_SIZE = 32 << 10,
};

/* Memory that the driver shares. */
struct mapping {
    uint32_t id;
    uint32_t uses;
    bool is_over; /* the driver no longer needs it */
    void *at;     /* NULL = it could not be mapped */
    size_t size;
    int error; /* why not */
};

struct handler {
    char *method;
    roost_handler *call;
    void *context;
};

struct roost_worker {
    int fd;
    int32_t life;
    pid_t owner;          /* the process that opened it */
    pthread_mutex_t lock; /* for sending and for the mappings */
    bool has_spoken;      /* it has sent READY or REFUSED */
    atomic_bool is_over;
    bool is_broken;
    struct spin spin;
    struct frame_decoder in;
    char *buffer; /* [BUFFER_SIZE]; bytes from start to end are received but not decoded */
    size_t start, end;
    int fds[FDS_MAX];
    int fd_count;
    struct roost_request *filling; /* its body is being received; NULL = the body is skipped */
    struct mapping *mappings;
    size_t mapping_count, mapping_cap;
    struct handler *handlers;
    size_t handler_count, handler_cap;
};

struct roost_request {
    struct roost_worker *worker;
    uint64_t id;
    atomic_bool is_answered;
    uint32_t region;    /* 0 = the payload is in `body` */
    const char *shared; /* the payload in a region; NULL = it could not be mapped */
    int error;          /* why not; 0 = there is no such region */
    size_t payload_len, payload_at, payload_cap;
    size_t method_len;
    size_t body_len; /* received so far: the method, then the payload */
    /* The method with its NUL, then at `payload_at` the payload, with room for `payload_cap` bytes. */
    char body[] __attribute__((aligned(16)));
};

/* worker.c: sends a whole frame with its pieces, and waits for room. ROOST_ERR_IO when the driver is gone,
 * ROOST_ERR_USAGE in a fork of the worker. */
enum roost_code worker_send(struct roost_worker *worker, struct frame frame,
                            const struct roost_bytes *pieces, size_t count, struct diag *diag);

enum roost_code worker_say_forked(struct diag *diag);

/* mappings.c, called with the lock held. False for an id or size that is not valid, or without memory. A
 * region that cannot be mapped (`fd` is -1 if the descriptor did not arrive) is still remembered. */
bool mappings_add(struct roost_worker *worker, uint32_t id, uint64_t size, int fd);
/* NULL when there is no such memory. */
const struct mapping *mappings_use(struct roost_worker *worker, uint32_t id, uint64_t len);
void mappings_end(struct roost_worker *worker, uint32_t id);
void mappings_drop(struct roost_worker *worker, uint32_t id);
void mappings_release(struct roost_worker *worker);

/* request.c */
struct roost_request *request_new(struct roost_worker *worker, const struct frame *frame);
/* Where to put the next bytes of the body, at most *out_room; the request may move. NULL without memory. */
char *request_room(struct roost_request **request, size_t *out_room);
void request_passed(struct roost_request *request, size_t len);
/* Answers, with an error, a request that could not be received. */
void request_refuse(struct roost_worker *worker, uint64_t id, const char *why);

#endif
