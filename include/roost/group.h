/* group.h - worker groups, the driver's side of calls: the processes of one component and their answers.
 *
 * roost_group_start runs one component of a plan with the guardian, supervisor, logs and records that
 * launch.h describes, and keeps a socket to each of its processes. A call goes to all ranks or to some.
 * For each rank it ends in exactly one outcome: a value, an error of the worker, or unknown if the worker
 * ended before it answered. A rank that dies ends neither the driver nor the other ranks.
 *
 * Several threads may use a group and its calls. The library starts no thread: it reads answers while a
 * thread waits or calls roost_call_is_done, or when an event loop calls roost_group_pump. If no thread
 * reads, workers stop once the socket is full. A thread of the program that runs a roost_call_reader
 * prevents that. */
#ifndef ROOST_GROUP_H
#define ROOST_GROUP_H

#include <roost/launch.h>
#include <roost/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_group;
struct roost_call;

/* Checks the name of a worker group: at most 63 letters, digits, '_', '-' and '.'; no ':'. */
ROOST_API enum roost_code roost_group_name_check(const char *name,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Starts the processes of one component: options->single, options->components[0], or the only component of
 * the plan. A failing process ends no other. Processes that are asked to end have one second, unless
 * options->grace_ms says otherwise. Returns before the processes are ready: see roost_group_wait_ready.
 * Fails as roost_run_start does. */
ROOST_API struct roost_group *roost_group_start(const struct roost_run_options *options,
                                                struct roost_report *report,
                                                struct roost_error *err) ROOST_MUST_USE;

/* Ends the processes: asks them by SIGTERM and kills the rest after the grace. Calls under way then have
 * their outcomes, and later calls are not run. A second close does nothing. The run is then done, unless a
 * process failed before. */
ROOST_API void roost_group_close(struct roost_group *group);

/* Closes the group because its program ends with this status: 0 = done, as roost_group_close; 128 + n = the
 * run was stopped by signal n; all else = it has failed. */
ROOST_API void roost_group_end(struct roost_group *group, int32_t status);

/* Closes the group and frees it. The caller must have freed its calls before. */
ROOST_API void roost_group_free(struct roost_group *group);

ROOST_API const char *roost_group_name(const struct roost_group *group);
ROOST_API int32_t roost_group_size(const struct roost_group *group);
ROOST_API const char *roost_group_run_id(const struct roost_group *group);
ROOST_API const char *roost_group_dir(const struct roost_group *group); /* logs and records */

/* What is known of a rank. */
enum roost_rank_state {
    ROOST_RANK_STARTING, /* not ready yet */
    ROOST_RANK_READY,
    ROOST_RANK_REFUSED, /* it cannot serve; `bytes` say why */
    ROOST_RANK_ENDED,   /* its process has ended; `end` says how */
};

struct roost_rank_info {
    enum roost_rank_state state;
    int32_t pid; /* -1 = not started yet */
    /* What the worker passed to roost_worker_ready or roost_worker_refuse; borrowed from the group. */
    struct roost_bytes bytes;
    /* With ROOST_RANK_ENDED. */
    struct roost_event end;
};
ROOST_API struct roost_rank_info roost_group_rank(struct roost_group *group, int32_t rank);

/* Takes the newest note for people, such as why the processes are executed although there is a forker. False
 * if there was none since the last call. */
ROOST_API bool roost_group_note(struct roost_group *group, char out[ROOST_EVENT_MESSAGE_MAX]);

/* Waits until every rank is ready. Fails as soon as a rank refused or ended (ROOST_ERR_WORKER) or could not
 * be started (as roost_run_start fails), or after `timeout_ms` (ROOST_ERR_TIMEOUT; -1 = no limit). The
 * error names the first such rank, and *out_rank (may be NULL) is set to it, -1 for none. The group stays
 * usable. */
ROOST_API enum roost_code roost_group_wait_ready(struct roost_group *group, int32_t timeout_ms,
                                                 int32_t *out_rank,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Sends a signal to the process of one rank. */
ROOST_API enum roost_code roost_group_signal(struct roost_group *group, int32_t rank,
                                             int32_t signal,
                                             struct roost_error *err) ROOST_MUST_USE;

/* A descriptor that is readable (poll) when roost_group_pump has something to do. */
ROOST_API int roost_group_fd(const struct roost_group *group);

/* Reads answers and sends what did not fit before; never waits. */
ROOST_API void roost_group_pump(struct roost_group *group);

/* Writes to the eventfd `fd` whenever outcomes came or ranks began or ended, whichever thread read them. An
 * event loop that watches roost_group_fd alone misses what another thread reads. Borrows `fd` until
 * roost_group_unlisten or the end of the group. False without memory. */
ROOST_API bool roost_group_listen(struct roost_group *group, int fd) ROOST_MUST_USE;
ROOST_API void roost_group_unlisten(struct roost_group *group, int fd);

/* --- calls --- */

enum roost_outcome_kind {
    ROOST_OUTCOME_PENDING, /* none yet */
    ROOST_OUTCOME_VALUE,   /* `bytes` is the answer */
    ROOST_OUTCOME_ERROR,   /* `bytes` is the error of the worker */
    ROOST_OUTCOME_UNKNOWN, /* the worker ended, or the time was up: the method may have run */
    ROOST_OUTCOME_NOT_RUN, /* its process had ended before the call */
};
ROOST_API const char *roost_outcome_word(enum roost_outcome_kind kind);

struct roost_outcome {
    int32_t rank;
    enum roost_outcome_kind kind;
    /* Borrowed from the call, as is `why`. */
    struct roost_bytes bytes;
    /* The reason of UNKNOWN and NOT_RUN, as text; otherwise "". */
    const char *why;
};

struct roost_call_options {
    const char *method;
    /* The payload, in pieces. roost_group_call copies it. */
    const struct roost_bytes *bytes;
    size_t byte_count;
    /* The ranks to call, in the order of the outcomes. NULL = all. */
    const int32_t *ranks;
    size_t rank_count;
    /* Outcomes that have not come by then are unknown. 0 = no limit. */
    int32_t timeout_ms;
    /* Asked five times a second while there is no room; true gives up. NULL = wait. */
    bool (*is_stopped)(void *ctx);
    void *stop_ctx;
};

/* Sends a request to the ranks and does not wait for answers; it waits only for room if a rank is far
 * behind. NULL if it sent nothing, or if `is_stopped` gave up: then some of the ranks may have the
 * request. */
ROOST_API struct roost_call *roost_group_call(struct roost_group *group,
                                              const struct roost_call_options *options,
                                              struct roost_error *err) ROOST_MUST_USE;

/* Waits until each rank has its outcome. False after `timeout_ms` (-1 = no limit). */
ROOST_API bool roost_call_wait(struct roost_call *call, int32_t timeout_ms);

/* Whether each rank has its outcome. Reads what has come; never waits. */
ROOST_API bool roost_call_is_done(struct roost_call *call);

/* Outcomes in the order of the ranks; valid until the call is freed. */
ROOST_API size_t roost_call_count(const struct roost_call *call);
ROOST_API struct roost_outcome roost_call_outcome(struct roost_call *call, size_t index);

/* Forgets the call; later answers are dropped. */
ROOST_API void roost_call_free(struct roost_call *call);

/* --- reading while no thread waits --- */

/* Reads the answers of groups whose requests have waited for some milliseconds while no thread waits for
 * them. A thread that waits right after its call reads for itself and is not disturbed. The calls keep all
 * answers, however large, until they are freed. */
struct roost_call_reader;

/* NULL without memory or descriptors. */
ROOST_API struct roost_call_reader *roost_call_reader_new(void);

/* No thread may run it any more, and its groups must be closed. */
ROOST_API void roost_call_reader_free(struct roost_call_reader *reader);

/* Reads for this group from now on until it is closed. A group has at most one reader. False without
 * memory. */
ROOST_API bool roost_call_reader_add(struct roost_call_reader *reader,
                                     struct roost_group *group) ROOST_MUST_USE;
ROOST_API bool roost_call_reader_has_groups(struct roost_call_reader *reader);

/* Reads until the last group is closed; returns at once if there is none. For one thread. */
ROOST_API void roost_call_reader_run(struct roost_call_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
