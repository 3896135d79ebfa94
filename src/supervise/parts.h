/* parts.h - the supervisor of a run on several nodes and its workers there.
 *
 * It decides as it does for workers of its own: order, readiness, new lives, failures, the end. What
 * differs is done by a part (part.c) on the worker's node: to start it, to signal it, to see its end, to
 * look whether it is ready. Messages go through the bridge (roost/part.h), which is a child of this
 * process and dies with it. */
#ifndef SUPERVISE_PARTS_H
#define SUPERVISE_PARTS_H

#include <signal.h>

#include "supervise/supervisor.h"

struct message;

/* Starts the bridge that the file tells of, which it takes, and tells it to join; false with errno. */
bool parts_open(struct supervisor *supervisor, int fd);

/* Hands on what driver and parts say to each other until the driver says MSG_START, which is left in
 * *out. False when one of them is gone; the driver has been told why. */
bool parts_relay(struct supervisor *supervisor, struct message *out);

/* Ends a run that has just begun, when the bridge has said meanwhile that it cannot go on: the driver hears
 * such words only while it waits for others. Nothing without parts. */
void parts_check(struct supervisor *supervisor);

/* Asks for a life of a worker, and for a signal to its group. */
bool parts_begin(struct supervisor *supervisor, struct worker *worker);
void parts_signal(struct supervisor *supervisor, const struct worker *worker, int32_t number);

/* Hears the bridge; false when the descriptor is not its. */
bool parts_hear(struct supervisor *supervisor, int fd);

/* Hands on what waits for the bridge, as it takes it. Nothing without parts. */
void parts_flush(struct supervisor *supervisor);

/* A child that was no worker has been reaped: the bridge? */
void parts_reaped(struct supervisor *supervisor, const siginfo_t *info);

/* How messages call the node of a worker: "node 2 (10.0.0.3)". */
const char *parts_node(const struct supervisor *supervisor, const struct worker *worker);

/* Ends the parts and the bridge, in bounded time. */
void parts_end(struct supervisor *supervisor);
void parts_release(struct supervisor *supervisor);

#endif
