/* sweep.h - ending what is left of a run: children, their children, and whatever hid from them. */
#ifndef SUPERVISE_SWEEP_H
#define SUPERVISE_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kills and reaps every descendant of this process, which must be a subreaper: children of a dead
 * child become its own, so killing children until there are none reaches all. False when some could
 * not be ended within `timeout_ms`, or this user may not kill them. */
bool sweep_descendants(int64_t timeout_ms);

/* Children of this process that still live: what a sweep could not end. Fills up to `room` of `out` and
 * returns how many it filled. */
struct survivor {
    int32_t pid;
    char state; /* as in struct proc_stat */
};
int32_t sweep_survivors(struct survivor *out, int32_t room);

/* Describes it for the user, with its pid and state. */
void survivor_describe(const struct survivor *survivor, char *out, size_t size);

/* A stopped guardian of the run, by its pid; 0 = there is none. For a run whose files do not name its
 * guards yet. */
int32_t sweep_find_stopped(const char *run_id);

/* Kills every process of this user, but the caller, whose environment has the id of the run
 * (ROOST_RUN_ID). The last resort for a run whose guardian and supervisor died together. Agents of the
 * run on this machine, and their guardians, are spared: they end by themselves, and clean up more than
 * this can. Stopped ones are continued, and all are waited for. Returns how many processes were killed. */
int32_t sweep_run(const char *run_id, int64_t timeout_ms);

/* Kills everything in the run's control group and removes it, then kills every process of this user
 * that carries the run's id. Agents of the run on this machine have time to end by themselves; then the
 * control groups they left beside the run's own go the same way. `cgroup` is its path; "" = not known,
 * then it is looked for where this process would have made it. False when something in a group still
 * lives after `timeout_ms`. */
bool sweep_leftovers(const char *run_id, const char *cgroup, int64_t timeout_ms);

/* Continues the guardian of a run, which may have been stopped. A guardian that has lost its supervisor
 * then ends the run: waits for that. True when the guardian has ended within `timeout_ms`. The pids are
 * believed only when the first is still the guardian of this run. */
bool sweep_wake_guardian(const char *run_id, int32_t guardian, int32_t supervisor,
                         int64_t timeout_ms);

/* Waits until the process of `pidfd` and `pid` has ended, and continues it when it is stopped: a guard
 * must run to end. False when it has not ended by `deadline` (see clock_ms). A pidfd of -1 has ended. */
bool sweep_await_guard(int pidfd, int32_t pid, int64_t deadline);

#endif
