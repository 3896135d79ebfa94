/* here.h - workers on this machine: their ports, their start, their signals, their readiness, their end.
 *
 * The supervisor of a run on one machine uses it through host_here.c; an agent uses it directly. It decides
 * nothing: it tells its owner what happened to a worker, and the owner decides what follows. */
#ifndef SUPERVISE_HERE_H
#define SUPERVISE_HERE_H

#include <roost/port.h>
#include <sys/resource.h>

#include "supervise/watcher.h"

struct start;

/* What here.c reports to its owner. */
struct here_calls {
    /* A life has begun, as worker_begin notes it. `start` is what it was executed with, NULL = it was
     * forked. The owner takes the driver's end of its socket (-1 = none). */
    void (*began)(void *owner, struct worker *worker, const struct start *start, int driver_end);

    /* A life has ended as the event says. The process is reaped, and its pid forgotten; the owner calls
     * worker_close. */
    void (*ended)(void *owner, struct worker *worker, const struct roost_event *event);

    /* A life could not begin. */
    void (*failed)(void *owner, const struct worker *worker, enum roost_code code,
                   const char *message);
};

struct here {
    struct watcher *watcher;
    const struct here_calls *calls;
    void *owner;
    struct roost_leases *leases;
    struct roost_port_want *wants;
    struct rlimit nofile;   /* as the driver had it: what workers get */
    int32_t *worker_of_pid; /* buckets, -1 = empty */
    int32_t bucket_count;   /* a power of two */
    int64_t oom_seen;       /* out-of-memory kills that are accounted for; -1 = not counted */
};

/* --- here.c --- */

/* All three are borrowed. */
void here_init(struct here *here, struct watcher *watcher, const struct here_calls *calls,
               void *owner);
void here_release(struct here *here);

/* Starts one life, worker->life. False when it could not be started, after calls->failed. */
bool here_begin(struct here *here, struct worker *worker);

/* A process of the worker has begun; takes the driver's end of its socket. */
struct spawned;
void here_began(struct here *here, struct worker *worker, const struct spawned *spawned,
                const struct start *start, int driver_end);

/* Sends a signal to the process group of a living worker. */
void here_signal(struct here *here, const struct worker *worker, int32_t number);

/* Reaps every process that has ended, worker or adopted. */
void here_reap(struct here *here);

/* Describes, for the user, a worker that was killed and has not ended. */
void here_describe_survivor(const struct worker *worker, char *out, size_t size);

/* --- here_ports.c --- */

/* Takes the file of port wants, raises the limit of open files to what the workers need (`files_each` for
 * every process), leases the ports and sends their numbers to the driver. 0, or the exit status after
 * reporting the reason to the driver. */
int here_prepare(struct here *here, int wants, int32_t files_each);

/* --- here_ready.c --- */

/* A life is about to begin: a ready file that is there already does not count. */
void here_mark_ready(struct here *here, struct worker *worker);

/* Whether the worker has opened its port, made its file or printed its line. */
bool here_is_ready(struct here *here, struct worker *worker);

#endif
