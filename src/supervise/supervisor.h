/* supervisor.h - the process that decides about a run's workers: which one starts, which one is restarted,
 * and when all end.
 *
 * One thread, one loop (supervisor.c). order.c starts workers in the order of their components. lives.c
 * decides what follows when one ends. services.c stops services when the job is done. ready.c decides when a
 * component is ready. records.c writes the exit records. control.c answers other processes of the user. Only
 * the supervisor's host (host.h) knows where the workers are. */
#ifndef SUPERVISE_SUPERVISOR_H
#define SUPERVISE_SUPERVISOR_H

#include "supervise/here.h"
#include "supervise/host.h"
#include "supervise/watcher.h"

/* A process that is connected to the control socket. */
struct asker {
    int fd; /* -1 = none */
    char question[512];
    size_t question_len;
    struct text answer;
    size_t sent;
    int64_t since; /* ms: when it last sent or received something */
};

enum { ASKER_COUNT = 16 };

/* PHASE_CLOSING: the job is done, and its services are being stopped. */
enum run_phase { PHASE_RUNNING, PHASE_CLOSING, PHASE_STOPPING, PHASE_KILLING };

struct supervisor {
    struct watcher watcher;
    const struct host *host;
    void *host_data; /* the host's own */

    enum run_phase phase;
    int64_t kill_at;    /* ms, while stopping */
    int64_t give_up_at; /* ms, while killing */
    bool has_given_up;  /* on processes that cannot be killed */
    bool has_failed;
    struct roost_event failure; /* what decides the run's status: see roost_run_status */

    int records;
    int64_t records_len;
    int control; /* -1 = none */
    struct asker askers[ASKER_COUNT];
};

/* --- supervisor.c --- */

/* Serves one run; returns the exit status of the process. `choose_host` returns the host for the driver's
 * setup. */
int supervisor_main(int guardian, struct cgroup *cgroup,
                    const struct host *(*choose_host)(const struct setup *setup));

/* Waits for descriptors, at most `timeout` ms (-1 = without limit), and serves them. */
void supervisor_wait(struct supervisor *supervisor, int64_t timeout);

/* --- order.c --- */

/* Starts the next few workers that may start now. True while more of them wait. */
bool order_start_some(struct supervisor *supervisor);

/* Starts the next life of a worker. False when it could not be started: the run is being ended then. */
bool order_start(struct supervisor *supervisor, struct worker *worker);

/* --- lives.c --- */

/* A life has begun, as worker_begin noted it; takes the driver's end of its socket (-1 = none). */
void lives_began(struct supervisor *supervisor, struct worker *worker, int driver_end);

/* A life has ended as the event says: reports and records it, and decides what follows. */
void lives_ended(struct supervisor *supervisor, struct worker *worker,
                 const struct roost_event *event);

/* The supervisor will not see the end of this worker: its life, if it has one, is lost, and no other life
 * follows. */
void lives_lose(struct supervisor *supervisor, struct worker *worker, const char *why);

/* Sends a signal to the process groups of all living workers, or of one life. */
void lives_signal_all(struct supervisor *supervisor, int32_t signal);
void lives_signal_one(struct supervisor *supervisor, const struct life_request *request);

/* Ends a worker: by a signal, or for good when it has no process. */
void lives_end(struct supervisor *supervisor, struct worker *worker, int32_t signal);

/* The driver is done with the run, or ends with a status (see roost_group_end): stops all workers, whose ends
 * are no failures. */
void lives_close(struct supervisor *supervisor, int32_t status);

/* Begins to end the run: asks all workers by `signal`, kills them after the grace. `why` is reported. */
void lives_stop(struct supervisor *supervisor, int32_t signal, const char *why);
void lives_kill(struct supervisor *supervisor, const char *why);

/* Ends the run because it cannot go on. Reports a problem of this kind, which decides the run's status unless
 * something failed before. */
void lives_fail(struct supervisor *supervisor, const struct worker *worker, enum roost_code code,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Does what is due: starts new lives, kills after the grace, gives up on processes that cannot be killed.
 * Returns when to call again, in ms from now; -1 = no time limit. */
int64_t lives_tick(struct supervisor *supervisor);

/* --- services.c --- */

/* A worker has ended for good: when only services are left of the run, begins to stop them. */
void services_look(struct supervisor *supervisor);

/* Stops services that no other service needs any more, and kills those whose grace is over. Returns as
 * lives_tick does. */
int64_t services_tick(struct supervisor *supervisor);

/* --- ready.c --- */

/* Looks whether components have become ready; returns as lives_tick does. */
int64_t ready_tick(struct supervisor *supervisor);

/* A worker has ended for good. */
void ready_ended(struct supervisor *supervisor, struct worker *worker);

/* --- records.c --- */

/* Makes the file of exit records. 0, or the exit status after reporting the reason to the driver. */
int records_open(struct supervisor *supervisor);

/* Appends a life's exit, or the run's end. */
void records_add(struct supervisor *supervisor, const struct roost_event *event);

/* --- control.c --- */

/* Opens the run's control socket. 0, or the exit status after reporting the reason to the driver. */
int control_open(struct supervisor *supervisor);
void control_close(struct supervisor *supervisor);

/* Serves a descriptor that is readable or writable; false when it does not belong to the control socket. */
bool control_serve(struct supervisor *supervisor, int fd);

/* Does what is due; returns as lives_tick does. */
int64_t control_tick(struct supervisor *supervisor);

#endif
