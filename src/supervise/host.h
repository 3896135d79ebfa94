/* host.h - where the workers of a run are: on this machine (host_here.c), or on the nodes of several agents
 * (agent/host_agents.c).
 *
 * The supervisor decides which worker starts, lives again or ends; its host does it. Both directions are in
 * this folder's headers: the supervisor calls its host through this struct, and a host reports what happened
 * through the functions of supervisor.h (lives_began, lives_ended, lives_lose, lives_fail). */
#ifndef SUPERVISE_HOST_H
#define SUPERVISE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message;
struct setup;
struct supervisor;
struct worker;

struct host {
    /* Gets ready to start workers. *message is MSG_SETUP at first, and MSG_START when it returns. 0, or the
     * exit status of the supervisor after reporting the reason to the driver. */
    int (*prepare)(struct supervisor *supervisor, struct message *message);

    /* Called once, before the first worker starts. May end the run. */
    void (*check)(struct supervisor *supervisor);

    /* Starts life worker->life. False when that is not possible: the run is being ended then. */
    bool (*begin)(struct supervisor *supervisor, struct worker *worker);

    /* Sends a signal to the process group of a worker. */
    void (*signal)(struct supervisor *supervisor, const struct worker *worker, int32_t number);

    /* Whether a worker has shown that it is ready. */
    bool (*is_ready)(struct supervisor *supervisor, struct worker *worker);

    /* A life has ended, and its end is recorded: a chance to report what else went wrong. */
    void (*ended)(struct supervisor *supervisor, struct worker *worker);

    /* Whether the process of a living worker is stopped, by SIGSTOP or a debugger. */
    bool (*is_stopped)(const struct supervisor *supervisor, const struct worker *worker);

    /* The node of a worker, in words: "node 2 (10.0.0.3)". NULL = this machine. */
    const char *(*node)(const struct supervisor *supervisor, const struct worker *worker);

    /* Describes, for the user, a worker that was killed and has not ended. */
    void (*describe_survivor)(const struct supervisor *supervisor, const struct worker *worker,
                              char *out, size_t size);

    /* Passes on what the driver has for others than the supervisor: struct roost_agent_head, then bytes. NULL =
     * there are no others. */
    void (*pass_on)(struct supervisor *supervisor, const char *message, size_t len);

    /* Reaps the children of this process that have ended. */
    void (*reap)(struct supervisor *supervisor);

    /* Reads from a descriptor of the host; false when the host has no such descriptor. */
    bool (*serve)(struct supervisor *supervisor, int fd);

    /* Sends what waits to be sent; called before every wait of the loop. */
    void (*flush)(struct supervisor *supervisor);

    /* No worker is left: ends what the host needed for them, in bounded time. */
    void (*end)(struct supervisor *supervisor);
    void (*release)(struct supervisor *supervisor);

    /* How long killed workers may take to be gone, in ms. */
    int64_t kill_ms;
};

/* Workers on this machine. */
extern const struct host host_here;

#endif
