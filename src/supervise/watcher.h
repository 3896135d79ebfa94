/* watcher.h - what the two processes that watch workers have in common: the supervisor of a run
 * (supervisor.h) and an agent (agent/agent.c).
 *
 * Both run under a guardian, take their orders from one socket, have one thread and one epoll loop, and keep
 * a table of workers. A worker is a process of the spec; each start of it is a life, and each life has one
 * exit record. here.h starts, signals and reaps workers of this machine. */
#ifndef SUPERVISE_WATCHER_H
#define SUPERVISE_WATCHER_H

#include "logs/log_recorder.h"
#include "port/port_socket.h"
#include "rpc/socket_pair.h"
#include "supervise/cgroup.h"
#include "supervise/messages.h"
#include "supervise/outbox.h"
#include "supervise/spec.h"

enum worker_state {
    WORKER_WAITING, /* not started yet */
    WORKER_FORKING, /* its forker was asked, see forks.h */
    WORKER_ASKED,   /* its agent was asked, see agent/host_agents.h */
    WORKER_RUNNING,
    WORKER_RESTING, /* between two lives */
    WORKER_ENDED,   /* for good */
};

struct worker {
    int32_t component, rank;
    enum worker_state state;
    int32_t life; /* 0 = none yet */
    int32_t pid;
    int pidfd;
    int64_t started_at;    /* wall clock, for records */
    int64_t started;       /* monotonic */
    int64_t restart_at;    /* ms */
    int32_t quick_ends;    /* lives in a row that ended soon after they began */
    bool was_told_to_end;  /* roost has sent it a signal that ends */
    bool has_logs;         /* its log files were made */
    bool has_reported_cut; /* a message said that its logs may be incomplete */
    int driver_end;        /* of its socket, while it is forking */
    bool is_ready;
    bool is_probing;
    struct port_probe probe; /* of its ready port, while is_probing */
    int64_t probe_deadline;  /* when another probe is started */
    bool had_file;           /* its ready file existed before this life, as follows */
    uint64_t file_inode;
    int64_t file_changed; /* nanoseconds */
    int64_t line_seen[2]; /* bytes of its streams searched for the ready line */
    int32_t next;         /* in its bucket of pids, see here.h */
};

enum component_state { COMPONENT_BLOCKED, COMPONENT_STARTING, COMPONENT_UP, COMPONENT_READY };

/* How far a service is on its way to its end, see services.c. */
enum closing { CLOSING_NOT_YET, CLOSING_ASKED, CLOSING_KILLED };

struct component_run {
    enum component_state state;
    int32_t left; /* workers that have not ended for good */
    enum closing closing;
    int64_t closing_deadline; /* ms */
    char **file_env;          /* NAME_FILE=path, see start.h */
    int32_t file_env_count;
    int32_t next_rank;      /* to be started */
    int64_t ready_deadline; /* ms */
    int log_dir;            /* -1 = not made yet */
    int forker;             /* socket to its warm program, -1 = none */
    int32_t forking;        /* workers that it was asked to fork */
    int32_t asked;          /* workers that agents were asked to start */
    bool is_cold;           /* it has no forker, or has given up on it */
    bool has_reported_cold; /* an event said why not all of its processes are forked */
};

struct watcher {
    struct setup setup;
    struct spec spec;
    struct arena arena;
    struct worker *workers; /* one for each process of the spec */
    struct component_run *components;
    int32_t alive;        /* workers with a process */
    int32_t left;         /* workers that have not ended for good */
    int32_t stop_signal;  /* the signal that asked all workers to end; 0 = none */
    bool is_start_over;   /* nothing more is started */
    struct outbox outbox; /* its socket is the one to the driver */
    int run_dir, runtime_dir;
    int lives; /* the file of lives, see lost.h; -1 = another process keeps it */
    struct log_recorder
        *recorder; /* NULL = none: an agent's logs are recorded where they are sent */
    int guardian;  /* pidfd */
    int null, signals, epoll;
    struct cgroup *cgroup;
};

/* --- watcher.c: the process and its loop --- */

/* The start of every process that watches: blocks all signals, marks the `count` inherited descriptors from
 * `first` on close-on-exec, and returns a signalfd for the signals that ask a process to end, and for
 * SIGCHLD when `has_children`; -1 with errno. */
int watcher_block_signals(int first, int count, bool has_children);

/* Fills a watcher that the guardian (by its pidfd) has just forked. */
void watcher_init(struct watcher *watcher, int guardian, struct cgroup *cgroup);

/* Opens what the loop needs; false with errno. */
bool watcher_open(struct watcher *watcher);
void watcher_release(struct watcher *watcher);

/* Makes the loop wake for a descriptor; false with errno. */
bool watcher_watch(struct watcher *watcher, int fd, uint32_t events);
void watcher_unwatch(struct watcher *watcher, int fd);

/* Waits at most `timeout` ms (-1 = without limit) for descriptors that can be read or written; writes them
 * to `out` and returns how many. */
enum { WATCHER_FDS_MAX = 8 };
int watcher_wait(struct watcher *watcher, int64_t timeout, int out[WATCHER_FDS_MAX]);

/* Reads one signal that was sent to this process; 0 = there is no more. */
int watcher_read_signal(struct watcher *watcher);

/* Waits until the driver takes more events; false when the guardian is gone instead. */
bool watcher_await_room(struct watcher *watcher);

/* Whether the guardian is gone. */
bool watcher_is_orphan(const struct watcher *watcher);

/* Reports to the driver how the run is guarded. */
void watcher_report_guard(struct watcher *watcher);

/* Reports the processes that workers started and this user cannot end. Returns how many, and fills *out_first
 * with the first report. */
int32_t watcher_name_survivors(struct watcher *watcher, struct roost_event *out_first);

/* --- watcher.c: before the first worker. Each returns 0, or the exit status of the process after reporting
 * the reason to the driver --- */

/* Greets the driver and receives its setup. *message is MSG_SETUP then, and the caller owns its
 * descriptor. */
int watcher_greet(struct watcher *watcher, struct message *message);

/* Waits for a message of this type with a descriptor; false when the driver or the guardian is gone. */
bool watcher_expect(struct watcher *watcher, uint16_t type, struct message *out);

/* Reads the spec from a file, which it takes, and makes the table of workers. */
int watcher_read_spec(struct watcher *watcher, int fd);

/* Tells the driver why the run cannot be started; returns 1. */
int watcher_refuse(struct watcher *watcher, const struct roost_error *err);
int watcher_refuse_with(struct watcher *watcher, enum roost_code code, const char *message,
                        const char *hint);
int watcher_refuse_to_open(struct watcher *watcher, const char *what, int error);

/* --- workers.c: the table, and log files --- */

/* The worker of this rank, or NULL: an agent has only some. */
struct worker *worker_at(struct watcher *watcher, int32_t component, int32_t rank);

/* A life has begun: sets its state and counts it as living. */
void worker_begin(struct watcher *watcher, struct worker *worker, int32_t pid, int pidfd);

/* A life is over: the worker has no process any more. */
void worker_close(struct watcher *watcher, struct worker *worker);

/* The worker has ended for good: no other life follows. */
void worker_end(struct watcher *watcher, struct worker *worker);

/* Records which life of the worker begins, for other processes in case this one is killed; 0 = none. */
void worker_note_life(struct watcher *watcher, const struct worker *worker, int32_t life);

/* The settings of the worker's component. */
static inline const struct spec_component *worker_component(const struct watcher *watcher,
                                                            const struct worker *worker)
{
    return &watcher->spec.components[worker->component];
}

static inline const struct spec_process *worker_process(const struct watcher *watcher,
                                                        const struct worker *worker)
{
    return &watcher->spec.processes[worker - watcher->workers];
}

/* Opens one of its log files, 0 = stdout, 1 = stderr, with these open(2) flags; -1 with errno. */
int worker_open_log(struct watcher *watcher, const struct worker *worker, int stream, int flags);

/* Makes or opens both of its log files for a new life; false with errno. */
bool worker_open_logs(struct watcher *watcher, struct worker *worker, int out[2]);

/* Workers write their logs themselves, and some do not check for errors. When a life has ended while the disk
 * was full, this reports it, once for each worker. */
void worker_look_at_disk(struct watcher *watcher, struct worker *worker);

#endif
