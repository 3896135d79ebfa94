/* messages.h - the messages between driver and supervisor, and between supervisor and agents.
 *
 * A run on several nodes has a supervisor beside its driver, which decides, and an agent on every node,
 * which starts, watches and ends processes on request. Between them is the bridge, a program that
 * reaches the nodes and forwards messages without reading them. */
#ifndef SUPERVISE_MESSAGES_H
#define SUPERVISE_MESSAGES_H

#include <roost/engine/agent.h>
#include <roost/launch.h>

enum {
    RUN_ID_MAX = 32,
    AGENT_BODY_MAX = 32 * 1024 - 64, /* bytes wrapped in one MSG_AGENT */
    RUNTIME_PATH_MAX = 4096,
    /* Descriptors that a guardian finds open: its only input. */
    GUARDIAN_SOCKET = 3,
    GUARDIAN_RUN_DIR = 4,
    GUARDIAN_RUNTIME_DIR = 5,
    GUARDIAN_DRIVER = 6, /* a pidfd */
    /* The locked file of the run's namespace, unless another process holds it: kept open, never used. */
    GUARDIAN_NAMESPACE = 7,
    GUARDIAN_FD_COUNT = 5,
    GUARDIAN_NOT_EMPTY = 3, /* exit status: something of the run could not be killed */
};

enum message_type {
    /* from the driver */
    MSG_SETUP = 1,  /* struct setup, and a memory file of struct roost_port_want */
    MSG_START,      /* a memory file, see spec.h */
    MSG_SIGNAL,     /* int32_t */
    MSG_SIGNAL_ONE, /* struct life_request: a signal for one process */
    MSG_STOP,       /* int32_t: the signal to ask with */
    MSG_KILL,
    MSG_CLOSE, /* int32_t: the driver is done with the run, and ends with this status */
    /* from the supervisor */
    MSG_HELLO, /* struct hello, and a pidfd of the supervisor */
    MSG_PORTS, /* int32_t each: the first ports of the wants, in order, continued from the last message */
    /* struct roost_event each, truncated after its text and preceded by its length (outbox.h). A descriptor in
     * the message is the driver's end of a socket, to the life that the first event is about. */
    MSG_EVENTS,
    MSG_REFUSED, /* struct roost_error: the run cannot be started */
    /* between driver, supervisor and bridge: struct roost_agent_head, then a message for or from an agent */
    MSG_AGENT = ROOST_AGENT_MESSAGE,
    /* to an agent */
    MSG_BEGIN, /* struct life_request, without a signal: this life of a process begins */
    MSG_END,   /* the agent must end */
    /* from an agent */
    MSG_LOG /* struct log_piece, then bytes that a process has written */
};

struct setup {
    char version[32]; /* of the driver's library; the supervisor's must be the same */
    char run_id[RUN_ID_MAX];
    char runtime_dir[RUNTIME_PATH_MAX];
    int32_t grace_ms;
    int32_t want_count;
    int32_t process_count;
    int32_t port_base;
    int32_t agent_count; /* of the run; 0 = its workers are on this machine */
    bool keeps_going;
    bool has_sockets; /* to each process, see roost/group.h */
};

struct life_request {
    int32_t component, rank, life, signal;
};

struct log_piece {
    int32_t component, rank, stream; /* stream: 0 = stdout, 1 = stderr */
    int64_t offset;
};

/* An event that only agents send: they cannot go on. The supervisor decides what follows. */
enum { EVENT_FAILED = ROOST_EVENT_FINISHED + 1 };

struct hello {
    int32_t pid; /* of the supervisor */
    int32_t guardian_pid;
    char cgroup[1024]; /* its path, "" = none */
};

#endif
