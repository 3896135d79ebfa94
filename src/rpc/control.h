/* control.h - the socket by which other processes of this user ask about a run.
 *
 * It is a file of mode 0600 in a directory of mode 0700 that the caller has checked, and both sides
 * look at the kernel's word for who the other one is. What it carries is lines of JSON, never
 * anything that is executed. */
#ifndef RPC_CONTROL_H
#define RPC_CONTROL_H

#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_NAME_MAX = 64 };

/* Makes the socket `name` in the checked directory `dir` and listens. It appears under its name only
 * when it can be connected to; a file that a killed run left there is replaced. -1 with errno. */
int control_listen(int dir, const char *name);

/* Removes the socket of somebody who has ended, also one that was not ready yet. */
void control_remove(int dir, const char *name);

/* Takes a connection of this user; others are turned away. -1 when there is none for now. */
int control_accept(int listener);

/* Connects; the answer is non-blocking. -1 with errno: ENOENT and ECONNREFUSED mean that nobody
 * listens there (any more), EPERM that it is not this user who does. */
int control_connect(int dir, const char *name);

/* The process that listens at the other end, as the kernel knows it; -1 = not known. */
int control_peer(int fd);

/* A pidfd of the process that connected, which becomes readable when it ends; -1 = not to be had. */
int control_peer_pidfd(int fd);

/* write(2) that raises no SIGPIPE. */
ssize_t control_send(int fd, const void *bytes, size_t len);

/* Ends the connection for both sides; the descriptor stays the caller's, and other threads may be at it. */
void control_hang_up(int fd);

#endif
