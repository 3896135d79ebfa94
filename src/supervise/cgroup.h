/* cgroup.h - the control group (version 2) of a run, where this user may create one.
 *
 * Supervisor and workers start in it and cannot leave it without privilege, so one write ends
 * them all, whatever they forked. Where it cannot be made, roost does without. */
#ifndef SUPERVISE_CGROUP_H
#define SUPERVISE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

enum { CGROUP_PATH_MAX = 1024 };

struct cgroup {
    int dir; /* -1 = there is none */
    char path[CGROUP_PATH_MAX];
};

/* Makes "roost-<run id>" below the group this process is in. False when that cannot be done, or the
 * kernel has no cgroup.kill; nothing is left then. */
bool cgroup_make(struct cgroup *cgroup, const char *run_id);

/* Opens a group that another process made, by its run or its path; false when it is not there. */
bool cgroup_find(struct cgroup *cgroup, const char *run_id);
bool cgroup_open(struct cgroup *cgroup, const char *path);

/* Moves this process into it; what it starts from now on starts there. */
bool cgroup_join(const struct cgroup *cgroup);

/* Moves this process out of it, kills what is left in it and removes it. */
bool cgroup_leave(struct cgroup *cgroup);

/* Kills everything in it, the caller too when it is in it. */
void cgroup_kill(const struct cgroup *cgroup);

/* Ends the control groups of a run's agents ("roost-<run id>.<node rank>") that stand beside `path`, the
 * control group of the run, and where this process would make them. This is for agents that were killed
 * together with their guardians; other agents do this themselves. False when something still lived after
 * `timeout_ms`. */
bool cgroup_end_agents(const char *run_id, const char *path, int64_t timeout_ms);

/* For a program that waits for a run which was asked to end at once. Set `path` and leave the rest zero; ""
 * = the run has no control group. */
struct insist {
    const char *path;
    int64_t due;
    bool has_acted; /* something was thawed or killed */
};

/* Nothing runs in a frozen control group, the supervisor included. Call this again and again while the
 * program waits: after three seconds it thaws a frozen group, so that the supervisor can do its work,
 * and a second later it kills everything in a group that is still frozen. Returns how many milliseconds
 * the next call may wait; -1 = no more calls are needed. */
int64_t cgroup_insist(struct insist *insist);

/* Whether the control group of that path is frozen, by itself or by a group above it. */
bool cgroup_is_frozen(const char *path);

/* The first process in the control group of that path; -1 = there is none. */
int32_t cgroup_first(const char *path);

/* Waits until nothing lives in it and removes it. False when something still lives after `timeout_ms`. */
bool cgroup_remove(struct cgroup *cgroup, int64_t timeout_ms);

#endif
