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

/* Says so, with its number and state. */
void survivor_describe(const struct survivor *survivor, char *out, size_t size);

/* A guard of the run that is stopped, by its pid; 0 = there is none. For a run that has not written down who its
 * guards are. */
int32_t sweep_find_stopped(const char *run_id);

/* Kills every process of this user, but the caller, whose environment has the id of the run (ROOST_RUN_ID).
 * The last resort for a run whose guardian and supervisor died together. Agents of the run on this machine,
 * and their guardians, are spared: they end by themselves, and clean up more than this can. Those that
 * were stopped are continued, and all are waited for. Returns how many processes were killed. */
int32_t sweep_run(const char *run_id, int64_t timeout_ms);

#endif
