/* messages.h - what driver and supervisor say to each other over their channel.
 *
 * A run on several nodes has a supervisor where its driver is, which decides, and a part on every node:
 * a supervisor that starts, watches and ends processes when it is told to. Between them stands the
 * bridge, a program that reaches the nodes and carries messages without reading them. */
#ifndef SUPERVISE_MESSAGES_H
#define SUPERVISE_MESSAGES_H

#include <roost/launch.h>
#include <roost/part.h>

enum {
    RUN_ID_MAX = 32,
    PART_BODY_MAX = 32 * 1024 - 64, /* of what is wrapped in MSG_PART */
    RUNTIME_PATH_MAX = 4096,
    /* Descriptors that a guardian finds open: its only input. */
    GUARDIAN_CHANNEL = 3,
    GUARDIAN_RUN_DIR = 4,
    GUARDIAN_RUNTIME_DIR = 5,
    GUARDIAN_DRIVER = 6, /* a pidfd */
    GUARDIAN_NAMESPACE =
        7, /* the locked file of the run's namespace, unless somebody else holds it:
                               held, never used */
    GUARDIAN_FD_COUNT = 5,
    GUARDIAN_NOT_EMPTY = 3, /* exit status: something of the run could not be killed */
};

enum message_type {
    /* from the driver */
    MSG_SETUP = 1, /* struct setup, and a memory file of struct roost_port_want */
    MSG_START,     /* a memory file, see spec.h */
    MSG_SIGNAL,    /* int32_t */
    MSG_TELL,      /* struct tell: a signal for one process */
    MSG_STOP,      /* int32_t: the signal to ask with */
    MSG_KILL,
    /* from the supervisor */
    MSG_HELLO, /* struct hello, and a pidfd of the supervisor */
    MSG_PORTS, /* int32_t each: the next of the first ports of all wants */
    MSG_EVENTS, /* struct roost_event each, cut behind its message and led by its length; perhaps with
                   a descriptor, which is the driver's end of the channel of the life that the first
                   one tells of */
    MSG_REFUSED, /* struct roost_error: the run cannot be started */
    /* between driver, supervisor and bridge */
    MSG_PART = ROOST_PART_MESSAGE, /* struct roost_part_head, then what is for or from a part */
    /* to a part */
    MSG_BEGIN, /* struct tell, without a signal: this life of a process begins */
    MSG_END,   /* nothing more is wanted of it */
    /* from a part */
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
    int32_t part_count; /* nodes of the run; 0 = all of it is here */
    bool keeps_going;
    bool has_channels; /* to each process, see roost/group.h */
    bool is_part;      /* it decides nothing */
};

struct tell {
    int32_t component, rank, life, signal;
};

struct log_piece {
    int32_t component, rank, stream; /* stream: 0 = stdout, 1 = stderr */
    int64_t offset;
};

/* An event that parts alone send: they cannot go on, and what follows is decided elsewhere. */
enum { EVENT_FAILED = ROOST_EVENT_FINISHED + 1 };

struct hello {
    int32_t pid; /* of the supervisor */
    int32_t guardian_pid;
    char cgroup[1024]; /* its path, "" = none */
};

/* The next event of a MSG_EVENTS, from *read of its bytes on; false when there is none. */
bool message_take_event(const char *bytes, size_t len, size_t *read, struct roost_event *out);

#endif
