/* forks.h - processes forked by a warm program instead of executed.
 *
 * A component may name a forker: a program that does the start-up work of its command once (an
 * interpreter that has imported what the workers need) and forks on request. The supervisor starts it with
 * the log files of the component's first process and its environment, without what is of that process alone
 * (config/variables.h), and one end of a channel (rpc/channel.h) as descriptor 3. Only processes with the
 * same command and otherwise the same environment are forked from it. It says, at any time:
 *
 *   FORK_COLD  text       it cannot serve, and why: the processes are executed instead
 *   FORK_BORN  int32_t rank, life, pid
 *
 * and is asked FORK_ONE: int32_t rank, life, the supervisor's pid; the working directory ("" = stay) with
 * its NUL. Along come two log files (its stdout and stderr), its channel to the driver, which it must have
 * as descriptor 3, and a file to read the whole environment from, each string with its NUL.
 *
 * The process must become the supervisor's own child before it does anything: the forker forks one in
 * between, which forks the process, tells of it and exits. Since FORK_BORN is sent before that exit, it is
 * read before the process can be reaped. */
#ifndef SUPERVISE_FORKS_H
#define SUPERVISE_FORKS_H

#include "supervise/start.h"

enum fork_message { FORK_ONE = 1, FORK_BORN, FORK_COLD };

/* Hands a worker's start to the forker of its component, which is started when it is not there yet. False
 * when the process has to be executed. */
bool forks_take(struct supervisor *supervisor, struct worker *worker, struct start *start,
                const int logs[2]);

/* Whether the forkers of a component have as much to do as they should have at a time. */
bool forks_are_busy(const struct component_run *run);

/* Takes what forkers have said; `fd` is what became readable, -1 = look at all of them. False when the
 * descriptor is none of theirs. */
bool forks_hear(struct supervisor *supervisor, int fd);

/* Nothing more will be forked for this component: its forker ends. */
void forks_close(struct supervisor *supervisor, struct component_run *run);

#endif
