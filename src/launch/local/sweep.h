/* sweep.h - ending what is left of a run: children, their children, and whatever hid from them. */
#ifndef LAUNCH_LOCAL_SWEEP_H
#define LAUNCH_LOCAL_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

/* Kills and reaps every descendant of this process, which must be a subreaper: children of a dead
 * child become its own, so killing children until there are none reaches all. False when some could
 * not be ended within `timeout_ms`. */
bool sweep_descendants(int64_t timeout_ms);

/* Kills every process of this user, but the caller, whose environment has `token` ("NAME=value").
 * The last resort for a run whose guardian and supervisor died together. Returns how many were
 * found. */
int32_t sweep_token(const char *token, int64_t timeout_ms);

#endif
