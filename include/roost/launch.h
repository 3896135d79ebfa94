/* launch.h - a plan, running on this machine or on the nodes of a Ray cluster.
 *
 * roost_run_start starts every process of a plan under a supervisor, and the supervisor under a
 * guardian; both are processes of the `roost` program, so the caller's size costs nothing. Read the
 * run's events until ROOST_EVENT_FINISHED, then free it. Nothing of a run survives it: when the
 * caller dies, or frees the run early, everything that was started is killed.
 *
 * A run is used from one thread. It starts no thread, installs no signal handler, and reaps no child
 * but its own guardian. */
#ifndef ROOST_LAUNCH_H
#define ROOST_LAUNCH_H

#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_run;

/* What to run and how. All zero but config, cluster, plan and env: every component, fail-fast, ten
 * seconds of grace. Everything is borrowed for the call. */
struct roost_run_options {
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct roost_plan *plan;
    const char *const *env;        /* "NAME=value", NULL-terminated: what workers inherit, and where
                                      XDG_STATE_HOME, XDG_RUNTIME_DIR and HOME are looked up */
    const char *program;           /* the roost program; NULL = the installed one */
    const char *const *components; /* run only these */
    size_t component_count;        /* 0 = all */
    const char *const *command;    /* for the one component that has none of its own */
    size_t command_count;
    bool keeps_going;   /* a failing process does not end the others */
    int32_t grace_ms;   /* between asking a process to end and killing it; 0 = 10,000, -1 = none */
    int32_t port_base;  /* the first port that leases try; 0 = 20000 */
    bool has_no_cgroup; /* never make a control group: the sweep of descendants alone */
    /* The process exists for this run alone. It becomes a subreaper, and stays one: when guardian and
     * supervisor are both killed, what they leave becomes its children, and is ended. Ignored when the
     * process has children already, which it could not tell from those. */
    bool is_dedicated;
    const char
        *engine; /* "local", or "ray": on the nodes of a Ray cluster, which `cluster` must be; NULL
                           = as the config says, else local */
    const char
        *python; /* for Ray: a Python that has roost and ray; NULL = the one beside `program` */
    int stop_fd; /* a start may wait, on Ray for nodes: when this is readable, `is_stopped` is
                           asked whether to give up; 0 = none */
    bool (*is_stopped)(void *ctx);
    void *stop_ctx;
    /* For Ray: how long nodes are waited for, and then, ten seconds at least, their answers. 0 = ten
     * minutes. */
    int32_t wait_ms;

    /* Instead of `plan`: one component of any plan, run by `command` under a name of its own. The config
     * then says nothing of its launch; it may be NULL. */
    const struct roost_component *placed;
    const char *name; /* as components of a config may be called; see roost_group_name_check */
    const char *const
        *extra_env; /* "NAME=value", NULL-terminated: over what roost sets; NULL = none */
    const char *const
        *forker; /* words of a program that forks processes like those of `command` when it is
                                  asked to (src/supervise/forks.h says how), NULL-terminated; for
                                  processes with channels. NULL = they are executed */
    const char
        *name_space;  /* of somebody who holds it for several runs; NULL = one of its own, with
                               managers in it (roost/registry.h) while the run lives */
    const char *view; /* what NodeManager of its own managers tells, see roost_render_view_json */
    size_t view_len;
    const char *logs_dir; /* where runs are kept, over roost.logs.dir; NULL = as the config says */
    bool has_channels;    /* every process can be called: see roost_group_start */
};

/* How one life of a process ended. */
enum roost_end {
    ROOST_END_EXITED,  /* by itself, with a code */
    ROOST_END_CRASHED, /* by a signal that roost did not send */
    ROOST_END_KILLED,  /* by a signal that roost sent */
    ROOST_END_OOM,     /* killed, not by roost, while the kernel killed for want of memory */
    ROOST_END_LOST,    /* nobody saw it: the supervisor was gone */
};
ROOST_API const char *roost_end_word(enum roost_end end);

enum roost_event_kind {
    ROOST_EVENT_STARTED,    /* process: a life began */
    ROOST_EVENT_ENDED,      /* process: a life ended; exactly one for each STARTED */
    ROOST_EVENT_RESTARTING, /* process: another life will begin after `delay_ms` */
    ROOST_EVENT_READY,      /* component: all its processes are ready */
    ROOST_EVENT_STOPPING, /* the run is being ended; `message` says why, unless a problem was told */
    ROOST_EVENT_PROBLEM,  /* something went wrong that `message` tells; `code` is its kind */
    ROOST_EVENT_NOTE,     /* worth telling with -v */
    ROOST_EVENT_FINISHED, /* everything has ended; the last event */
};

enum { ROOST_EVENT_MESSAGE_MAX = 256 };

struct roost_event {
    enum roost_event_kind kind;
    int32_t component; /* index, see roost_run_component; -1 = none */
    int32_t rank;      /* -1 = none */
    int32_t life;      /* from 1 */
    int32_t pid;
    enum roost_end end;
    int32_t exit_code; /* -1 = ended by a signal */
    int32_t signal;    /* 0 = none */
    bool has_core;
    int64_t started_at, ended_at; /* nanoseconds since 1970 */
    int64_t lasted;               /* nanoseconds, by a clock that never jumps */
    int32_t delay_ms;
    enum roost_code code;
    char message[ROOST_EVENT_MESSAGE_MAX];
};

/* Checks the launch settings, leases ports and starts the run. NULL when it could not be started:
 * nothing is left running, `report` (may be NULL) has every fault and `err` (may be NULL) the
 * first. */
ROOST_API struct roost_run *roost_run_start(const struct roost_run_options *options,
                                            struct roost_report *report, struct roost_error *err);

/* A fresh id, as runs have that are started here, for one that is started otherwise. */
enum { ROOST_RUN_ID_SIZE = 7 };
ROOST_API enum roost_code roost_run_id_new(char out[ROOST_RUN_ID_SIZE], struct roost_error *err);

/* Ends the run if it has not finished, at once and wholly, and frees it. */
ROOST_API void roost_run_free(struct roost_run *run);

ROOST_API const char *roost_run_id(const struct roost_run *run);
ROOST_API const char *roost_run_dir(const struct roost_run *run); /* logs and records */

/* The components that run, in the order of the plan; text borrowed from the run. */
ROOST_API int32_t roost_run_component_count(const struct roost_run *run);
ROOST_API const char *roost_run_component(const struct roost_run *run, int32_t component);
ROOST_API int32_t roost_run_world_size(const struct roost_run *run, int32_t component);

/* The node of a process, in words ("node 2 (10.0.0.3)"), borrowed from the run; NULL when the whole run
 * is on this machine. */
ROOST_API const char *roost_run_node(const struct roost_run *run, int32_t component, int32_t rank);

/* Readable (poll) when an event may be there. */
ROOST_API int roost_run_fd(const struct roost_run *run);

/* For a program that waits for other things too: how many milliseconds it may wait until it calls
 * roost_run_next although nothing is readable; -1 = for ever. A run that was told to end at once does not
 * rely on a supervisor that may be unable to run. */
ROOST_API int32_t roost_run_timeout(struct roost_run *run);

/* Takes the next event, waiting `timeout_ms` for it (-1 = as long as it takes); false when none
 * came. */
ROOST_API bool roost_run_next(struct roost_run *run, int32_t timeout_ms, struct roost_event *out);

/* Sends a signal to every process of the run. */
ROOST_API enum roost_code roost_run_signal(struct roost_run *run, int32_t signal,
                                           struct roost_error *err);

/* Asks every process to end, by `signal` (0 = SIGTERM), and kills what is left after the grace. */
ROOST_API enum roost_code roost_run_stop(struct roost_run *run, int32_t signal,
                                         struct roost_error *err);

/* Kills everything at once. */
ROOST_API enum roost_code roost_run_kill(struct roost_run *run, struct roost_error *err);

/* After ROOST_EVENT_FINISHED: the exit status that a program ends with, from the records alone. 0,
 * or that of the process that failed first, which `out_first` (may be NULL) then describes. */
ROOST_API int roost_run_status(const struct roost_run *run, struct roost_event *out_first);

/* For the roost program alone: what it does when roost_run_start starts it as a guardian. */
ROOST_API int roost_guardian_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
