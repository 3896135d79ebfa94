/* server.h - a registry behind a control socket: lines come, lines go, many connections.
 *
 * An owner is a connection; it is gone when the connection ends or when the process that opened it does,
 * even if a child of that process still has the descriptor. Whoever sends a line without end, takes no
 * answers or talks nonsense harms only itself: a connection that has answers to take is not read from. */
#ifndef REGISTRY_SERVER_H
#define REGISTRY_SERVER_H

#include <stdint.h>

#include "registry/registry.h"

enum { SERVER_PATIENCE_MS = 60000 }; /* for who takes nothing of an answer */

struct server;

/* Takes the listening socket, also on failure; NULL without memory or descriptors. */
struct server *server_new(int listener);
void server_free(struct server *server);

struct registry *server_registry(struct server *server);

/* Readable (poll) when server_step has something to do. */
int server_fd(const struct server *server);

/* Does what can be done without waiting; returns when to be called again, in ms, -1 = not by the
 * clock. */
int64_t server_step(struct server *server, int64_t now_ms);

#endif
