/* digest.h - what a process is executed with, as text that is short enough to be told with its start.
 *
 * On a run on several nodes the driver makes it of what it planned, and the part that starts the process of
 * what it hands to execve; the supervisor compares them. So a message that was damaged or mixed up on its way,
 * or a variable of the node that stands before one of the plan, is found before anybody trusts the process. */
#ifndef SUPERVISE_DIGEST_H
#define SUPERVISE_DIGEST_H

#include "supervise/spec.h"

enum { DIGEST_MAX = 2 * 16 + 2 };

struct digest {
    char text[DIGEST_MAX];
};

/* Of a process as planned: words, variables of its own, and directory ("" = none of its own). */
struct digest digest_planned(const char *const *argv, const char *const *env, const char *cwd);

/* Of one that is about to be executed: of `env`, all that it gets, those that are its own by the spec, as the
 * process will see them. */
struct digest digest_executed(const struct spec_process *process, char *const *argv,
                              char *const *env);

/* What of them is not the same, in words; NULL = nothing. */
const char *digest_difference(const char *planned, const char *executed);

#endif
