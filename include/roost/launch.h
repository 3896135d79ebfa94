/* launch.h - runs a plan on this machine, or on the nodes of a Ray cluster.
 *
 * roost_run_start starts a guardian, the guardian starts a supervisor, and the supervisor starts every
 * process of the plan. Guardian and supervisor execute the `roost` program, so the size of the calling
 * process costs nothing. The caller reads the events of the run until ROOST_EVENT_FINISHED, then frees
 * the run. Nothing of a run survives it: when the caller dies, or frees the run early, everything that
 * was started is killed.
 *
 * Use a run from one thread only. A run starts no thread, installs no signal handler and reaps no child
 * except its own guardian. */
#ifndef ROOST_LAUNCH_H
#define ROOST_LAUNCH_H

#include <roost/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

struct roost_run;

/* One component of any plan, to be run by itself under a name of its own. */
struct roost_run_single {
    /* NULL = run `plan` of the options. */
    const struct roost_component *placed;
    /* A name that roost_group_name_check accepts. */
    const char *name;
    /* "NAME=value" texts, NULL-terminated, set over what roost sets. NULL = none. */
    const char *const *extra_env;
    /* The command line, NULL-terminated, of a program that forks the processes on request
     * (roost/engine/forker.h). Only for processes with sockets. NULL = execute `command`. */
    const char *const *forker;
};

/* A run on the nodes of a Ray cluster, where agents start its processes. */
struct roost_run_agents {
    /* A Python that has roost and ray. NULL = the one beside `program`. */
    const char *python;
    /* How long to wait for the nodes to come. They then have the same time to answer, but at least ten
     * seconds. 0 = ten minutes. */
    int32_t wait_ms;
};

/* What to run and how. roost_run_start borrows everything for the call. With all zero except config,
 * cluster, plan and env, every component runs, the first failure ends the run, and processes have ten
 * seconds to end. */
struct roost_run_options {
    /* --- what to run: a plan, or `single` --- */

    /* NULL only with `single`, for which it has no launch settings. */
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct roost_plan *plan;
    /* Run only these components of the plan. 0 = all. */
    const char *const *components;
    size_t component_count;
    /* For `single`, or for the one component that has no command of its own. */
    const char *const *command;
    size_t command_count;
    struct roost_run_single single;

    /* --- where --- */

    /* "local", or "ray" to run on the nodes of a Ray cluster, which `cluster` must describe. NULL = as
     * the config says, else local. */
    const char *engine;
    struct roost_run_agents agents;
    /* The roost program. NULL = the installed one. */
    const char *program;
    /* "NAME=value" texts, NULL-terminated. Processes inherit them, and roost looks up XDG_STATE_HOME,
     * XDG_RUNTIME_DIR and HOME here. */
    const char *const *env;
    /* What `roost ps` calls the run, such as the name of a script. NULL = the name of the config. */
    const char *title;
    /* The folder of run directories, instead of roost.logs.dir. NULL = as the config says. */
    const char *logs_dir;
    /* A namespace that the caller holds for several runs. NULL = the run gets its own namespace, with
     * managers in it (roost/engine/registry.h) while the run lives. */
    const char *name_space;
    /* What the run's own NodeManager reports: the text of roost_render_cluster_view. */
    const char *view;
    size_t view_len;

    /* --- how --- */

    /* A failing process does not end the others. */
    bool keeps_going;
    /* Every process gets a socket to this process. roost_group_start sets it. */
    bool has_sockets;
    /* Use no control group: end leftovers by searching for descendants alone. */
    bool has_no_cgroup;
    /* This process exists for the run alone. It becomes a subreaper, and stays one: if guardian and
     * supervisor are both killed, their processes become its children, and it ends them. Ignored if the
     * process has children already, because it could not tell them apart. */
    bool is_dedicated;
    /* Milliseconds between asking a process to end and killing it. 0 = 10,000; -1 = none. */
    int32_t grace_ms;
    /* The first port that leases try. 0 = 20000. */
    int32_t port_base;
    /* A start may wait, on Ray for nodes. When this descriptor is readable, `is_stopped` is asked
     * whether to give up. 0 = none. */
    int stop_fd;
    bool (*is_stopped)(void *ctx);
    void *stop_ctx;
};

/* How one life of a process ended. */
enum roost_end {
    ROOST_END_EXITED,  /* by itself, with a code */
    ROOST_END_CRASHED, /* by a signal that roost did not send */
    ROOST_END_KILLED,  /* by a signal that roost sent */
    ROOST_END_OOM,     /* killed, not by roost, while the kernel killed processes to free memory */
    ROOST_END_LOST,    /* unknown: the supervisor was gone */
};
ROOST_API const char *roost_end_word(enum roost_end end);

enum roost_event_kind {
    ROOST_EVENT_STARTED,    /* process: a life began */
    ROOST_EVENT_ENDED,      /* process: a life ended; exactly one for each STARTED */
    ROOST_EVENT_RESTARTING, /* process: another life will begin after `delay_ms` */
    ROOST_EVENT_READY,      /* component: all its processes are ready */
    ROOST_EVENT_STOPPING,   /* the run is ending; `message` says why, unless a PROBLEM did */
    ROOST_EVENT_PROBLEM,    /* something went wrong: `message`, with its kind in `code` */
    ROOST_EVENT_NOTE,       /* `message` is worth showing with -v */
    ROOST_EVENT_FINISHED,   /* everything has ended; the last event */
    ROOST_EVENT_CLOSING,    /* the job is done: its services are being stopped, and count as done */
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
    int64_t lasted;               /* nanoseconds, by the monotonic clock */
    int32_t delay_ms;
    enum roost_code code;
    char message[ROOST_EVENT_MESSAGE_MAX];
};

/* Checks the launch settings, leases ports and starts the run. NULL when that failed: `report` (may be
 * NULL) has every fault, `err` (may be NULL) has the first, and nothing is left running. */
ROOST_API struct roost_run *roost_run_start(const struct roost_run_options *options,
                                            struct roost_report *report,
                                            struct roost_error *err) ROOST_MUST_USE;

/* Frees the run. Kills everything first if the run has not finished. */
ROOST_API void roost_run_free(struct roost_run *run);

ROOST_API const char *roost_run_id(const struct roost_run *run);
ROOST_API const char *roost_run_dir(const struct roost_run *run); /* logs and records */

/* The components that run, in the order of the plan; text borrowed from the run. */
ROOST_API int32_t roost_run_component_count(const struct roost_run *run);
ROOST_API const char *roost_run_component(const struct roost_run *run, int32_t component);
ROOST_API int32_t roost_run_world_size(const struct roost_run *run, int32_t component);

/* The node of a process as text ("node 2 (10.0.0.3)"), borrowed from the run; NULL when the whole run
 * is on this machine. */
ROOST_API const char *roost_run_node(const struct roost_run *run, int32_t component, int32_t rank);

/* A descriptor that is readable (poll) when there may be an event. */
ROOST_API int roost_run_fd(const struct roost_run *run);

/* How many milliseconds a program may wait at most, beside roost_run_fd, until it calls roost_run_next
 * again; -1 = no limit. After roost_run_kill the run does not rely on a supervisor that may be unable to
 * run. */
ROOST_API int32_t roost_run_timeout(struct roost_run *run);

/* Takes the next event and waits `timeout_ms` for it (-1 = no limit). False when none came. */
ROOST_API bool roost_run_next(struct roost_run *run, int32_t timeout_ms, struct roost_event *out);

/* Sends a signal to every process of the run. */
ROOST_API enum roost_code roost_run_signal(struct roost_run *run, int32_t signal,
                                           struct roost_error *err) ROOST_MUST_USE;

/* Asks every process to end, by `signal` (0 = SIGTERM), and kills the rest after the grace. */
ROOST_API enum roost_code roost_run_stop(struct roost_run *run, int32_t signal,
                                         struct roost_error *err) ROOST_MUST_USE;

/* Kills everything at once. */
ROOST_API enum roost_code roost_run_kill(struct roost_run *run,
                                         struct roost_error *err) ROOST_MUST_USE;

/* After ROOST_EVENT_FINISHED: the exit status of the run, computed from the records alone. It is 0, or
 * the status of the process that failed first, which `out_first` (may be NULL) then describes. */
ROOST_API int roost_run_status(const struct roost_run *run, struct roost_event *out_first);

#ifdef __cplusplus
}
#endif
#endif
