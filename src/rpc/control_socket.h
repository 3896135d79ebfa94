/* control_socket.h - the socket by which other processes of this user ask about a run.
 *
 * The socket is a file of mode 0600 in a directory of mode 0700 that the caller has checked. Each side asks
 * the kernel which user the other one is. The socket carries lines of JSON, never anything that is
 * executed. */
#ifndef RPC_CONTROL_SOCKET_H
#define RPC_CONTROL_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

enum { CONTROL_NAME_MAX = 64 };

/* Creates the socket `name` in the checked directory `dir` and listens. The file appears only when others can
 * connect to it, and replaces one that a killed run left. -1 with errno. */
int control_listen(int dir, const char *name);

/* Removes the socket of a process that has ended, also one that was not ready yet. */
void control_remove(int dir, const char *name);

/* Accepts a connection of this user and rejects those of others. -1 when there is none now. */
int control_accept(int listener);

/* Connects and returns a non-blocking descriptor. -1 with errno: ENOENT and ECONNREFUSED mean that no process
 * listens there, EPERM that another user does. */
int control_connect(int dir, const char *name);

/* The pid of the process at the other end, from the kernel; -1 = not known. */
int control_peer(int fd);

/* A pidfd of the process that connected, which becomes readable when it ends; -1 = not available. */
int control_peer_pidfd(int fd);

/* write(2) that raises no SIGPIPE. */
ssize_t control_send(int fd, const void *bytes, size_t len);

/* Shuts the connection down for both sides. The caller still owns the descriptor, and other threads may be
 * using it. */
void control_hang_up(int fd);

#endif
