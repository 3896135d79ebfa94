/* supervisor.h - the process that starts a run's workers, reaps them and answers for them.
 *
 * One thread, one loop. A worker is a process of the plan; each start of it is a life, and each life
 * has one exit record. The files beside: prepare.c what comes first, supervisor.c the loop, workers.c
 * starting, lives.c ending, ready.c waiting for `ready`, outbox.c telling the driver and the record
 * file, control.c answering other processes of the user.
 *
 * Of a run on several nodes one supervisor decides, and its workers are elsewhere (parts.h); those of
 * the nodes start, watch and end them, and decide nothing (part.c, part_logs.c). */
#ifndef SUPERVISE_SUPERVISOR_H
#define SUPERVISE_SUPERVISOR_H

#include <roost/port.h>
#include <sys/resource.h>

#include "port/port_socket.h"
#include "supervise/cgroup.h"
#include "supervise/digest.h"
#include "supervise/messages.h"
#include "supervise/spec.h"

enum worker_state {
    WORKER_WAITING, /* not started yet */
    WORKER_FORKING, /* its forker was asked, see forks.h */
    WORKER_ASKED,   /* its part was, see parts.h */
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
    int64_t started_at;   /* wall clock, for records */
    int64_t started;      /* monotonic */
    int64_t restart_at;   /* ms */
    int32_t quick_ends;   /* lives in a row that ended soon after they began */
    struct digest digest; /* of a part: what it is executed with */
    bool was_told;        /* roost has sent it a signal that ends */
    bool has_logs;        /* its log files were made */
    bool has_told_cut;    /* that its logs may not be whole */
    int driver_end;       /* of its channel, while it is forking */
    bool is_ready;
    bool is_probing;
    struct port_probe probe; /* of its ready port, while is_probing */
    int64_t probe_deadline;  /* then another one is started */
    bool had_file;           /* its ready file was there before this life, as follows */
    uint64_t file_inode;
    int64_t file_changed; /* nanoseconds */
    int64_t line_seen[2]; /* bytes of its streams searched for the ready line */
    int32_t next;         /* in its bucket of pids */
};

enum component_state { COMPONENT_BLOCKED, COMPONENT_STARTING, COMPONENT_UP, COMPONENT_READY };

struct component_run {
    enum component_state state;
    int32_t next_rank; /* to be started */
    int32_t ready_count;
    int64_t ready_deadline; /* ms */
    int log_dir;            /* -1 = not made yet */
    int forker;             /* channel to its warm program, -1 = none */
    int32_t forking;        /* workers that were asked of it */
    int32_t asked;          /* workers that were asked of their parts */
    bool is_cold;           /* it has none, or has given up */
    bool has_said_cold;     /* why not all of its processes are forked */
};

/* Somebody at the control socket. */
struct asker {
    int fd; /* -1 = nobody */
    char question[512];
    size_t heard;
    struct text answer;
    size_t told;
    int64_t since; /* ms: when it last said or took something */
};

enum { ASKER_COUNT = 16 };

/* A descriptor that goes out with the event that begins at `at` of the outbox. */
struct parcel {
    size_t at;
    int fd;
};

/* How long parts may say nothing of processes that were killed. */
enum { PARTS_SILENT_MS = 15000 };

enum run_phase { PHASE_RUNNING, PHASE_STOPPING, PHASE_KILLING };

struct supervisor {
    struct setup setup;
    struct spec spec;
    struct arena arena;
    struct roost_leases *leases;
    struct roost_port_want *wants;
    struct worker *workers; /* one for each process of the spec */
    struct component_run *components;
    int32_t *worker_of_pid; /* buckets, -1 = empty */
    int32_t bucket_count;   /* a power of two */
    int32_t alive;          /* workers with a process */
    int32_t left;           /* workers that have not ended for good */
    enum run_phase phase;
    int32_t stop_signal; /* what everybody was asked to end with */
    int64_t kill_at;     /* ms, while stopping */
    int64_t give_up_at;  /* ms, while killing */
    bool is_start_over;  /* nothing more is started */
    bool has_given_up;   /* on processes that cannot be killed */
    int64_t oom_seen;    /* kills for want of memory that are accounted for; -1 = nobody counts */

    bool has_failed;
    struct roost_event failure; /* what decides the run's status: see roost_run_status */

    int channel, run_dir, runtime_dir, null, records, lives;
    int64_t records_len;
    int guardian; /* pidfd */
    int signals, epoll;
    int control; /* -1 = none */
    struct asker askers[ASKER_COUNT];
    struct cgroup *cgroup;
    struct rlimit nofile; /* as the driver had it: what workers get */
    struct text outbox;   /* events the driver has not taken yet */
    size_t outbox_sent;
    struct parcel *parcels; /* descriptors among them, in their order */
    size_t parcel_count, parcel_room;

    struct parts *parts; /* NULL = the workers are here */

    /* of a part */
    struct shipped *shipped; /* [2 * process_count]: a stream each */
    size_t ship_mark;        /* events before it go out when the logs of this round have */
    bool is_shipping;        /* a round is under way */
    bool is_over;            /* nothing more is wanted */

    bool is_driver_gone;
};

/* --- workers.c --- */

/* Starts the next few processes that may start now. True while more of them wait. */
bool workers_start_some(struct supervisor *supervisor);

/* Starts one life. False when it could not be: the run is then being ended. */
bool worker_start(struct supervisor *supervisor, struct worker *worker);

/* A life has begun; takes the driver's end of its channel (-1 = none). */
struct spawned;
void worker_begins(struct supervisor *supervisor, struct worker *worker,
                   const struct spawned *spawned, int driver_end);

/* The worker with this pid, or NULL. */
struct worker *worker_find(struct supervisor *supervisor, int32_t pid);
void worker_forget_pid(struct supervisor *supervisor, struct worker *worker);

/* The worker of this rank, or NULL: a part has only some. */
struct worker *worker_at(struct supervisor *supervisor, int32_t component, int32_t rank);

/* Its settings. */
static inline const struct spec_component *worker_component(const struct supervisor *supervisor,
                                                            const struct worker *worker)
{
    return &supervisor->spec.components[worker->component];
}

static inline const struct spec_process *worker_process(const struct supervisor *supervisor,
                                                        const struct worker *worker)
{
    return &supervisor->spec.processes[worker - supervisor->workers];
}

/* Opens one of its log files, 0 = stdout, 1 = stderr, with these open(2) flags; -1 with errno. */
int worker_open_log(struct supervisor *supervisor, const struct worker *worker, int stream,
                    int flags);

/* Makes or opens both of its log files for a new life; false with errno. */
bool worker_open_logs(struct supervisor *supervisor, struct worker *worker, int out[2]);

/* Workers write their logs themselves, so a full disk is theirs to see, and some do not look: when a life
 * has ended on one, that is told, once for each worker. */
void worker_look_at_disk(struct supervisor *supervisor, struct worker *worker);

/* --- lives.c --- */

/* Reaps every process that has ended, worker or adopted. */
void lives_reap(struct supervisor *supervisor);

/* A life has ended as the event says: told and recorded, and what follows is decided. */
void lives_ended(struct supervisor *supervisor, struct worker *worker,
                 const struct roost_event *event);

/* Its node is gone: its life, if it has one, was lost, and it has no other. */
void lives_lose(struct supervisor *supervisor, struct worker *worker, const char *why);

/* Sends a signal to the process groups of all living workers, or of one life. */
void lives_signal(struct supervisor *supervisor, int32_t signal);
void lives_tell(struct supervisor *supervisor, const struct tell *tell);

/* Begins to end the run: asks everybody by `signal`, kills after the grace. `why` is told. */
void lives_stop(struct supervisor *supervisor, int32_t signal, const char *why);
void lives_kill(struct supervisor *supervisor, const char *why);

/* Ends the run because it cannot go on: told as a problem of this kind, which decides the run's
 * status unless something failed before. */
void lives_fail(struct supervisor *supervisor, const struct worker *worker, enum roost_code code,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* What is due by now: new lives, kills after the grace, giving up on what cannot be killed. Returns when to be called again, in ms from
 * now, -1 = not by the clock. */
int64_t lives_tick(struct supervisor *supervisor);

/* --- ready.c --- */

/* Looks whether components have become ready; the same answer. */
int64_t ready_tick(struct supervisor *supervisor);

/* A life is about to begin: what is there already does not make it ready. */
void ready_mark(struct supervisor *supervisor, struct worker *worker);

/* Its part has seen that the worker is ready. */
void ready_told(struct supervisor *supervisor, struct worker *worker);

/* A part's last look at a worker that has ended. */
void ready_look_last(struct supervisor *supervisor, struct worker *worker);

/* A life has begun, or has ended for good. */
void ready_reset(struct supervisor *supervisor, struct worker *worker);
void ready_ended(struct supervisor *supervisor, struct worker *worker);

/* --- outbox.c --- */

/* An event about a worker (may be NULL) with everything filled in that the worker tells. */
struct roost_event outbox_event(enum roost_event_kind kind, const struct worker *worker);

/* Queues an event for the driver. */
void outbox_put(struct supervisor *supervisor, const struct roost_event *event);

/* The same with a descriptor, which it takes. */
void outbox_put_with(struct supervisor *supervisor, const struct roost_event *event, int fd);
void outbox_say(struct supervisor *supervisor, enum roost_event_kind kind,
                const struct worker *worker, enum roost_code code, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Hands on what the channel takes now. */
void outbox_flush(struct supervisor *supervisor);
void outbox_release(struct supervisor *supervisor);
static inline bool outbox_is_empty(const struct supervisor *supervisor)
{
    return supervisor->outbox_sent == supervisor->outbox.len;
}

/* Appends a life's exit, or the run's end, to the record file. */
void outbox_record(struct supervisor *supervisor, const struct roost_event *event);

/* --- control.c --- */

/* Opens and closes the run's control socket; false with errno. */
bool control_open(struct supervisor *supervisor);
void control_close(struct supervisor *supervisor);

/* Serves a descriptor that is readable or writable; false when it is none of the control's. */
bool control_serve(struct supervisor *supervisor, int fd);

/* What time asks for; the same answer as lives_tick. */
int64_t control_tick(struct supervisor *supervisor);

/* --- part.c --- */

/* What a part alone is told; false when it is none of that. */
struct message;
bool part_obey(struct supervisor *supervisor, const struct message *message);

/* Nothing more is wanted of the part: it ends with its last worker. Again: nothing. */
void part_be_over(struct supervisor *supervisor);

/* Makes the books of part_logs_ship; false without memory. */
bool part_prepare(struct supervisor *supervisor);

/* --- part_logs.c --- */

/* Sends what the workers have written. True when all that was there when the round began is sent, and
 * the events that had been told by then may follow. */
bool part_logs_ship(struct supervisor *supervisor);

/* When to look again, in ms from now, -1 = not by the clock. */
int64_t part_logs_tick(const struct supervisor *supervisor);
void part_logs_release(struct supervisor *supervisor);

/* --- prepare.c --- */

/* Everything up to the first process; 0, or the exit status after telling the driver why not. */
int supervisor_prepare(struct supervisor *supervisor);

/* Tells the driver, instead of the above, that errno kept it from what it needs itself; the same answer. */
int supervisor_refuse_doors(struct supervisor *supervisor, int error);

/* --- supervisor.c --- */

/* Waits for news, so many ms at most (-1 = as long as it takes), and hears them. */
void supervisor_wait(struct supervisor *supervisor, int64_t timeout);

/* Has the loop hear of a descriptor; false with errno. */
bool supervisor_watch(struct supervisor *supervisor, int fd, uint32_t events);

/* Serves one run over the channel; the answer is the process's exit status. */
int supervisor_main(int channel, int run_dir, int runtime_dir, int guardian, struct cgroup *cgroup);

#endif
