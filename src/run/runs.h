/* runs.h - the runs of this user: which there are, how each is doing, and the way to ask it.
 *
 * A run is alive if its control socket answers or its directory is locked; pids and clocks are not trusted
 * for that. A run that is not alive and has no record of its end has crashed, with all its registry servers.
 * The functions below end everything that a crashed run left and clean up. They continue a stopped guardian
 * that has lost its supervisor, so that it ends the run. They remove the files of a run that was killed while
 * it started. */
#ifndef RUN_RUNS_H
#define RUN_RUNS_H

#include "base/arena.h"
#include "base/diag.h"

enum run_state { RUN_STARTING, RUN_ALIVE, RUN_DONE, RUN_FAILED, RUN_STOPPED, RUN_CRASHED };

/* A component of a run, as its page names it. */
struct run_member {
    const char *name;
    int32_t world_size;
    int32_t nodes; /* how many its processes are on; -1 = the page does not say */
};

struct run_entry {
    const char *id;
    const char *path; /* of its directory */
    const char *config;
    const char *components; /* their names: "actor, env" */
    enum run_state state;
    int64_t started;    /* seconds since 1970, */
    int32_t started_ns; /* and nanoseconds: runs may follow each other quickly */
    int64_t world_size;
    const struct run_member *members;
    int32_t member_count;
    int32_t nodes;       /* how many its processes are on; -1 = the page does not say */
    int32_t exit_status; /* -1 = it goes on, or crashed, or a roost ran it that did not record it */
    int64_t ended;       /* seconds since 1970; 0 = it goes on, or is not known to have ended */
    bool is_copy;        /* its page is that of another run: a user's copy */
    bool has_end;        /* its end is recorded: nothing of it lives, here or elsewhere */
    const char *cgroup, *boot_id; /* "" = none */
    int32_t guardian,
        supervisor; /* their pids, on the machine and boot that started the run; 0 = none */
};

struct run_list {
    struct arena arena;
    struct run_entry *entries; /* newest first */
    int32_t count;
    int runtime_dir; /* the directory of their sockets; -1 = none, for the reason that follows */
    struct roost_error unreachable;
};

/* Finds all runs, by the directories that `env` names. False after reporting why. */
bool runs_list(struct run_list *list, const char *const *env, struct diag *diag);
void runs_release(struct run_list *list);

/* The run whose id starts with `prefix`, whatever its state. NULL after reporting that there is none, or
 * several. */
const struct run_entry *runs_named(const struct run_list *list, const char *prefix,
                                   struct diag *diag);

/* The run whose id starts with `prefix`; for NULL the newest that is alive, else the newest. NULL after
 * reporting that there is none, or several, or that the run is still starting and cannot be asked. */
const struct run_entry *runs_find(const struct run_list *list, const char *prefix,
                                  struct diag *diag);

/* "starting", "running", "done", "failed", "stopped", "crashed" */
const char *run_state_word(enum run_state state);

/* Whether a run has not ended yet. `dir` is a descriptor of its directory that was opened for this call. Does
 * not connect to the run, so very many processes may call it. */
bool runs_goes_on(int dir);

/* The current state of the run. If it was killed meanwhile, cleans up as runs_list does. */
enum run_state runs_look_again(const struct run_list *list, const struct run_entry *entry);

/* Keeps the directory of a run from being pruned until the returned descriptor is closed; -1 = the run goes
 * on, so it is not pruned anyway. */
int runs_hold(const struct run_entry *entry);

/* Connects to a living run; -1 with errno when it cannot be reached: it has ended meanwhile, or its socket is
 * elsewhere (runs_explain). */
int runs_connect(const struct run_list *list, const struct run_entry *entry);

/* Asks one question ("status", "stop", "kill") and puts the answer, a line of JSON, into `out` (from
 * the arena of the list). False when the run is gone, or does not answer. A run that is to be killed
 * and cannot read the question, because its control group is frozen, is thawed or killed from here. */
bool runs_ask(struct run_list *list, const struct run_entry *entry, int fd, const char *question,
              struct strview *out);

/* How many processes of a component are in which state. The first are those of a living run, as the run
 * answers them; the last, and RUN_COUNT_WAITING for a process that never began, those of one that has
 * ended. */
enum run_count {
    RUN_COUNT_WAITING,
    RUN_COUNT_RUNNING,
    RUN_COUNT_RESTARTING,
    RUN_COUNT_ENDED,
    RUN_COUNT_STOPPED, /* by SIGSTOP or a debugger */
    RUN_COUNT_DONE,
    RUN_COUNT_FAILED,
    RUN_COUNT_KILLED, /* by roost */
    RUN_COUNT_LOST,
    RUN_COUNT_KINDS,
};
extern const char *const run_count_words[RUN_COUNT_KINDS];

struct run_counts {
    const char *name;
    int32_t world_size, nodes;
    /* blocked, starting, up, ready; of a run that has ended: done, failed, stopped, lost, blocked */
    const char *state;
    bool is_known; /* false = only its name and its size are */
    int32_t count[RUN_COUNT_KINDS];
};

/* The components of a run ([member_count], in the arena of the list): of a living one as it answered
 * "status", else (`status` is empty) as the records say. NULL without memory. */
struct run_counts *runs_count(struct run_list *list, const struct run_entry *entry,
                              struct strview status);

/* Reports why a run that goes on cannot be asked: the errno of runs_connect, 0 = runs_ask has failed. */
void runs_explain(const struct run_list *list, const struct run_entry *entry, int error,
                  struct diag *diag);

/* Waits until the run at the other end of `fd` has ended, and closes `fd`. */
void runs_await(const struct run_list *list, const struct run_entry *entry, int fd);

#endif
