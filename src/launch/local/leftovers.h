/* leftovers.h - ends what a run left behind when nobody of its own is there to do it. */
#ifndef LAUNCH_LOCAL_LEFTOVERS_H
#define LAUNCH_LOCAL_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

/* Kills everything in the run's control group and removes it, then kills every process of this user
 * that carries the run's id. `cgroup` is its path; "" = not told, then it is looked for where this
 * process would have made it. False when something in the group still lives after `timeout_ms`. */
bool leftovers_end(const char *run_id, const char *cgroup, int64_t timeout_ms);

#endif
