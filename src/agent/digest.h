/* digest.h - what a process is executed with, as a text that is short enough to be sent with its start.
 *
 * In a run on several nodes the driver computes it from the plan, and the agent that starts the process
 * computes it from what it passes to execve. The supervisor compares the two. So it finds a message
 * that was damaged or mixed up, or a variable of the node that hides one of the plan, before the
 * process is trusted. */
#ifndef AGENT_DIGEST_H
#define AGENT_DIGEST_H

#include "supervise/spec.h"

enum { DIGEST_MAX = 2 * 16 + 2 };

struct digest {
    char text[DIGEST_MAX];
};

/* Of a process as planned: its words, its own variables, and its directory ("" = none of its own). */
struct digest digest_planned(const char *const *argv, const char *const *env, const char *cwd);

/* Of a process that is about to be executed. `env` is its whole environment. Only the variables that the spec
 * lists as its own count, with the values that the process will see. */
struct digest digest_executed(const struct spec_process *process, char *const *argv,
                              char *const *env);

/* What differs, in words; NULL = nothing. */
const char *digest_difference(const char *planned, const char *executed);

#endif
