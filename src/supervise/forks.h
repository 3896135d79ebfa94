/* forks.h - workers that a warm program forks, instead of being executed.
 *
 * A component may name a forker: a program that does the start-up work of its command once (an
 * interpreter that has imported what the workers need) and forks on request. The supervisor starts it
 * with the log files of the component's first process, with its environment except what is of that
 * process alone (spec.h: `own`), and with one end of a socket (rpc/socket_pair.h) as descriptor 3. Only
 * processes with the same command and otherwise the same environment are forked from it. The forker may
 * send, at any time:
 *
 *   FORK_COLD     text: why it cannot serve; the processes are executed instead
 *   FORK_STARTED  int32_t rank, life, pid
 *
 * The supervisor sends FORK_ONE: int32_t rank, life, the supervisor's pid; the working directory ("" =
 * stay) with its NUL. Four descriptors come with it: two log files (stdout and stderr of the worker),
 * the worker's socket to the driver, which it must have as descriptor 3, and a file with the whole
 * environment, each string with its NUL.
 *
 * The worker must become the supervisor's own child before it does anything: the forker forks a process
 * in between, which forks the worker, sends FORK_STARTED and exits. Because it sends before it exits,
 * the supervisor reads the message before it can reap the worker. */
#ifndef SUPERVISE_FORKS_H
#define SUPERVISE_FORKS_H

#include <roost/engine/forker.h>

#include "supervise/start.h"

enum fork_message {
    FORK_ONE = ROOST_FORK_ONE,
    FORK_STARTED = ROOST_FORK_STARTED,
    FORK_COLD = ROOST_FORK_COLD,
};

/* Hands a worker's start to the forker of its component, which is started when it is not there yet. False
 * when the process has to be executed. */
bool forks_take(struct here *here, struct worker *worker, struct start *start, const int logs[2]);

/* Whether the forker of a component has as many requests as it should have at a time. */
bool forks_are_busy(const struct component_run *run);

/* Reads the messages of forkers; `fd` is the descriptor that became readable, -1 = read all of them.
 * False when it is not a forker's. */
bool forks_read(struct here *here, int fd);

/* Nothing more will be forked for this component: its forker ends. */
void forks_close(struct here *here, struct component_run *run);

#endif
