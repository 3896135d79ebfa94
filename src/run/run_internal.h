/* run_internal.h - a run as its driver sees it; shared by run.c (life) and run_start.c (start). */
#ifndef RUN_RUN_INTERNAL_H
#define RUN_RUN_INTERNAL_H

#include <roost/engine/registry.h>

#include "base/arena.h"
#include "base/diag.h"
#include "rpc/socket_pair.h"
#include "run/run_dir.h"
#include "supervise/cgroup.h"
#include "supervise/messages.h"

struct run_component {
    const char *name;
    int32_t world_size;
    int32_t first; /* of its processes in `lives` */
};

/* What the driver knows of a process, to report its end when the supervisor is lost. */
struct run_life {
    int32_t life; /* 0 = none yet */
    int32_t pid;
    bool is_alive;
    int64_t started_at;
};

struct run_news;

struct roost_run {
    struct arena arena;
    struct run_dir dir;
    struct run_component *components;
    int32_t component_count;
    struct run_life *lives;
    const char **node_of_process; /* in words; NULL = all are on this machine */
    int32_t process_count;
    int socket;
    int guardian, supervisor; /* pidfds, -1 = none */
    int events; /* an epoll of socket and supervisor; -1 = none could be had, the socket has to do */
    int32_t guardian_pid, supervisor_pid;
    bool is_subreaper;    /* this process is: orphans of the run become its children */
    struct insist insist; /* path NULL = the run is not to end at once */
    int64_t
        answer_by; /* when a supervisor that was asked to do so is killed; -1 = it has answered */
    struct roost_registry_server *server; /* of its own namespace; NULL = none, or it has ended */
    struct run_news *news;                /* NULL = the run has no managers of its own */
    char cgroup[sizeof((struct hello *)NULL)->cgroup];
    struct message inbox;
    size_t inbox_read;
    int inbox_fd; /* what came with the message and belongs to its first event; -1 = none */
    struct roost_error
        refusal;      /* why a supervisor that is gone did not begin, if it reported that */
    bool is_lost;     /* the supervisor went without reporting the end */
    int32_t lost;     /* next of `lives` to be reported as lost */
    bool is_finished; /* ROOST_EVENT_FINISHED was taken, or there never was a run */
    struct roost_event end;
};

/* Reports an error in the options of the calling program, which has no place in a file. */
#define refuse(err, code, ...)                                                                     \
    diag_error(&(struct diag){.err = (err)}, (code), (struct place){0}, __VA_ARGS__)

/* roost_run_next for runs with sockets: *out_fd is the socket of the life that has STARTED, the
 * caller's from now on, or -1. */
bool run_next(struct roost_run *run, int32_t timeout_ms, struct roost_event *out, int *out_fd);

/* Sends a signal to a life of one process. */
enum roost_code run_signal_one(struct roost_run *run, const struct life_request *request,
                               struct roost_error *err);

/* The program that started the run is done with it, or ends with this status: see roost_group_end. */
enum roost_code run_close(struct roost_run *run, int32_t status);

/* Waits until guardian and supervisor are gone and removes what they could not. True when nothing of
 * the run is left. */
bool run_settle(struct roost_run *run);

#endif
