/* forker.h - a program that forks processes for a run instead of having them executed.
 *
 * A forker does the start-up work of a component's command once: an interpreter that has imported what
 * the workers need, say. The supervisor then asks it to fork each process. roost_run_single.forker names
 * the program; python/roost has one for Python workers.
 *
 * The supervisor starts the forker with the log files of the component's first process, with the
 * environment that all processes of the component share, and with one end of a socket (SOCK_SEQPACKET)
 * as descriptor 3. Each packet is a struct roost_fork_head and a body:
 *
 *   ROOST_FORK_ONE      to the forker: struct roost_fork_process, then the working directory with its NUL
 *                       ("" = stay). Four descriptors come along: the process's stdout and stderr, its
 *                       socket to the driver, and a file with its whole environment, each string with
 *                       its NUL. The process must have the socket as descriptor 3.
 *   ROOST_FORK_STARTED  from the forker: struct roost_fork_process, with the pid of the process.
 *   ROOST_FORK_COLD     from the forker, at any time: a text that says why it cannot fork. The
 *                       supervisor executes the processes instead.
 *
 * The process must become the supervisor's own child before it does anything. So the forker forks an
 * intermediate process, which forks the worker, sends ROOST_FORK_STARTED and exits. As that message
 * precedes the exit, the supervisor reads it before it can reap the worker. */
#ifndef ROOST_ENGINE_FORKER_H
#define ROOST_ENGINE_FORKER_H

#include <stdint.h>

enum {
    ROOST_FORK_MAGIC = 0x54534f52,
    ROOST_FORK_VERSION = 1,
    ROOST_FORK_SOCKET = 3, /* the descriptor */
};

enum roost_fork_word { ROOST_FORK_ONE = 1, ROOST_FORK_STARTED, ROOST_FORK_COLD };

struct roost_fork_head {
    uint32_t magic;
    uint16_t version;
    uint16_t word;
    uint32_t len; /* of the body */
};

struct roost_fork_process {
    int32_t rank;
    int32_t life;
    int32_t pid; /* of the supervisor in ROOST_FORK_ONE, of the process in ROOST_FORK_STARTED */
};

#endif
