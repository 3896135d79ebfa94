/* leftovers.h - ends what a run left behind when nobody of its own is there to do it. */
#ifndef SUPERVISE_LEFTOVERS_H
#define SUPERVISE_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

/* Kills everything in the run's control group and removes it, then kills every process of this user
 * that carries the run's id. Agents of the run on this machine have time to end by themselves; then the
 * control groups they left beside the run's own go the same way. `cgroup` is its path; "" = not known,
 * then it is looked for where this process would have made it. False when something in a group still
 * lives after `timeout_ms`. */
bool leftovers_end(const char *run_id, const char *cgroup, int64_t timeout_ms);

/* Continues the guardian of a run, which may have been stopped. One that has lost its supervisor then ends
 * the run: waits for that. True when the guardian has ended within `timeout_ms`. The pids are believed
 * only when the process of the first still is the guardian of this run. */
bool leftovers_wake(const char *run_id, int32_t guardian, int32_t supervisor, int64_t timeout_ms);

/* Waits until the process of `pidfd` and `pid` has ended, and continues it when it is stopped: a guard has to run
 * to end. False when it has not ended by `deadline` (see clock_ms). A pidfd of -1 has ended. */
bool leftovers_await(int pidfd, int32_t pid, int64_t deadline);

#endif
