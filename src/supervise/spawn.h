/* spawn.h - starts one process, from a parent of any size.
 *
 * The child shares the parent's memory until it executes (CLONE_VM and CLONE_VFORK), so starting costs
 * the same from a parent of one gigabyte, and the child reports a failed step by a plain store. What
 * runs in between is async-signal-safe, and all of it is in spawn.c. */
#ifndef SUPERVISE_SPAWN_H
#define SUPERVISE_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/diag.h"

enum spawn_step {
    SPAWN_OK,
    SPAWN_CLONE,
    SPAWN_SESSION,
    SPAWN_LIMIT,
    SPAWN_CHDIR,
    SPAWN_DESCRIPTORS,
    SPAWN_EXEC,
};

/* What the step does, for messages: "change the directory". */
const char *spawn_step_word(enum spawn_step step);

struct spawn {
    const char *const *paths; /* files to try, NULL-terminated */
    char *const *argv;
    char *const *env;
    const char *cwd;             /* NULL = stay */
    int fd[3];                   /* become 0, 1 and 2 */
    const int *handed;           /* become 3, 4, ... */
    int32_t handed_count;        /* at most SPAWN_HANDED_MAX */
    char *listen_pid;            /* where the digits of the child's pid go, or NULL */
    const struct rlimit *nofile; /* the limit it gets, or NULL */
    bool outlives_parent;        /* no parent-death signal: the guardian watches by itself */
};

enum { SPAWN_HANDED_MAX = 256, SPAWN_PID_DIGITS = 10 };

struct spawned {
    pid_t pid;
    int pidfd;
    enum spawn_step failed; /* SPAWN_OK = it runs */
    int error;              /* errno of the failed step */
};

/* Sets the oom_score_adj of every process that is started from now on, for a parent that has lowered its own.
 * The text is borrowed; "" = the same as the parent. */
void spawn_restore_score(const char *score);

/* Starts a process in its own session, without the parent's descriptors, with default signals. The kernel
 * kills it when its parent dies. Call it from the main thread: the parent-death signal follows the thread. */
struct spawned spawn_process(const struct spawn *spawn);

/* Opens /dev/null, for streams that a process must not use; -1 after reporting why it cannot be opened. */
int spawn_null(struct diag *diag);

#endif
