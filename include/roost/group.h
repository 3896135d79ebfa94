/* group.h - the driver's side of calls: the processes of one component, and what they answer.
 *
 * roost_group_start runs one component of a plan (see launch.h: the same guardian, supervisor, logs and
 * records) and keeps a channel to each of its processes. A call goes to all ranks or to some; each of
 * them ends in exactly one outcome: a value, an error of the worker's own, or unknown when the worker
 * ended before it answered. A rank that dies takes neither the driver nor the other ranks with it.
 *
 * A group and its calls may be used from several threads. No thread is started: answers are read while
 * somebody waits, asks roost_call_is_done, or has roost_group_pump called by an event loop. Workers whose
 * answers nobody reads stop when the channel is full; a thread of the program's own that runs a
 * roost_reader keeps them going. */
#ifndef ROOST_GROUP_H
#define ROOST_GROUP_H

#include <roost/launch.h>
#include <roost/worker.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_group;
struct roost_call;

/* Starts the processes of one component: options->placed, options->components[0], or that of a plan which
 * has only one. Processes that fail end nobody else, and those that are asked to end have one second
 * unless options->grace_ms says otherwise. Returns when they are being started, see
 * roost_group_wait_ready. NULL with err and report as roost_run_start. */
ROOST_API struct roost_group *roost_group_start(const struct roost_run_options *options,
                                                struct roost_report *report,
                                                struct roost_error *err);

/* Ends the processes: they are asked by SIGTERM, and what is left after the grace is killed. Calls that
 * are under way have their outcomes then; those that follow are not run. Again: nothing. */
ROOST_API void roost_group_close(struct roost_group *group);

/* Closes the group and frees it. Its calls must have been freed before. */
ROOST_API void roost_group_free(struct roost_group *group);

ROOST_API const char *roost_group_name(const struct roost_group *group);
ROOST_API int32_t roost_group_size(const struct roost_group *group);
ROOST_API const char *roost_group_run_id(const struct roost_group *group);
ROOST_API const char *roost_group_dir(const struct roost_group *group); /* logs and records */

/* What is known of a rank. */
enum roost_rank_state {
    ROOST_RANK_STARTING, /* not ready yet */
    ROOST_RANK_READY,    /* said so */
    ROOST_RANK_REFUSED,  /* said that it cannot serve; `bytes` tell why */
    ROOST_RANK_ENDED,    /* its process has ended; `end` tells how */
};

struct roost_rank_info {
    enum roost_rank_state state;
    int32_t pid; /* -1 = not started yet */
    struct roost_bytes
        bytes; /* what it said when it became ready or refused; borrowed from the group */
    struct roost_event end; /* when ENDED */
};
ROOST_API struct roost_rank_info roost_group_rank(struct roost_group *group, int32_t rank);

/* Takes what was noted of the group since the last time, and false when nothing was: why its processes start
 * one by one though a forker was given. For people. */
ROOST_API bool roost_group_note(struct roost_group *group, char out[ROOST_EVENT_MESSAGE_MAX]);

/* Waits until every rank is ready: ROOST_OK. Fails as soon as one has refused (ROOST_ERR_WORKER), ended
 * (ROOST_ERR_WORKER) or could not be started (as roost_run_start fails), or after `timeout_ms`
 * (ROOST_ERR_TIMEOUT; -1 = no limit), naming the first such rank, which *out_rank (may be NULL) is set
 * to, -1 for none. The group can be used and freed all the same. */
ROOST_API enum roost_code roost_group_wait_ready(struct roost_group *group, int32_t timeout_ms,
                                                 int32_t *out_rank,
                                                 struct roost_error *err) ROOST_MUST_USE;

/* Sends a signal to the process of one rank. */
ROOST_API enum roost_code roost_group_signal(struct roost_group *group, int32_t rank,
                                             int32_t signal,
                                             struct roost_error *err) ROOST_MUST_USE;

/* Readable (poll) when roost_group_pump has something to do. */
ROOST_API int roost_group_fd(const struct roost_group *group);

/* Does what can be done without waiting: takes answers, sends what did not fit before. */
ROOST_API void roost_group_pump(struct roost_group *group);

/* Writes to `fd`, an eventfd, whenever outcomes have come or ranks have begun or ended, whichever thread has
 * read that: an event loop that watches roost_group_fd alone does not hear of what another one took. `fd` is
 * borrowed until unlisten or the end of the group. False without memory. */
ROOST_API bool roost_group_listen(struct roost_group *group, int fd) ROOST_MUST_USE;
ROOST_API void roost_group_unlisten(struct roost_group *group, int fd);

/* --- calls --- */

enum roost_outcome_kind {
    ROOST_OUTCOME_PENDING, /* none yet */
    ROOST_OUTCOME_VALUE,   /* `bytes` is the answer */
    ROOST_OUTCOME_ERROR,   /* `bytes` is the worker's own error */
    ROOST_OUTCOME_UNKNOWN, /* it ended, or the time of the call was up: whether it ran is not known */
    ROOST_OUTCOME_NOT_RUN, /* its process had ended before the call */
};
ROOST_API const char *roost_outcome_word(enum roost_outcome_kind kind);

struct roost_outcome {
    int32_t rank;
    enum roost_outcome_kind kind;
    struct roost_bytes bytes; /* borrowed from the call */
    const char *why; /* UNKNOWN and NOT_RUN: in words; "" otherwise; borrowed from the call */
};

struct roost_call_options {
    const char *method;
    const struct roost_bytes *bytes; /* the payload, in pieces; copied during the call */
    size_t byte_count;
    const int32_t *ranks; /* whom to call, in the order of the outcomes; NULL = all */
    size_t rank_count;
    int32_t timeout_ms; /* outcomes that have not come by then are unknown; 0 = no limit */
    /* Asked five times a second while there is no room: true = give up. NULL = wait for it. */
    bool (*is_stopped)(void *ctx);
    void *stop_ctx;
};

/* Sends a request to every rank asked, without waiting for answers; it waits only for room when a rank
 * is far behind. NULL when nothing was sent to anybody, or when it was given up while it waited: then
 * the first of the ranks may have it. */
ROOST_API struct roost_call *roost_group_call(struct roost_group *group,
                                              const struct roost_call_options *options,
                                              struct roost_error *err);

/* Waits until each rank has its outcome; false when that took longer than `timeout_ms` (-1 = no limit). */
ROOST_API bool roost_call_wait(struct roost_call *call, int32_t timeout_ms);

/* Whether each rank has its outcome; takes what has come, never waits. */
ROOST_API bool roost_call_is_done(struct roost_call *call);

/* Outcomes in the order of the ranks asked; good until the call is freed. */
ROOST_API size_t roost_call_count(const struct roost_call *call);
ROOST_API struct roost_outcome roost_call_outcome(struct roost_call *call, size_t index);

/* Forgets the call; what is answered later is dropped. */
ROOST_API void roost_call_free(struct roost_call *call);

/* --- reading while nobody waits --- */

/* Reads for groups whose requests have had no answer for some milliseconds while nobody waits, until each
 * has one. Who waits right after a call reads for itself and does not notice it. What was answered is kept
 * in the calls until they are freed, however much that is. */
struct roost_reader;

ROOST_API struct roost_reader *roost_reader_new(void); /* NULL without memory or descriptors */
/* Nobody runs it any more, and its groups are closed. */
ROOST_API void roost_reader_free(struct roost_reader *reader);

/* The group is read for from now on, until it is closed; one reader a group. False without memory. */
ROOST_API bool roost_reader_add(struct roost_reader *reader,
                                struct roost_group *group) ROOST_MUST_USE;
ROOST_API bool roost_reader_has_groups(struct roost_reader *reader);

/* Reads until the last group is closed, and returns at once when there is none. For one thread. */
ROOST_API void roost_reader_run(struct roost_reader *reader);

#ifdef __cplusplus
}
#endif
#endif
