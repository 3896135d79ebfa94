/* server.h - serves a registry on a control socket: requests and answers as lines, for many connections.
 *
 * Each connection is an owner. The owner is gone when the connection or the process that opened it ends,
 * even if a child of that process still has the descriptor. A client that sends an endless line, reads no
 * answers or sends garbage harms only itself: the server does not read from a connection whose answers
 * wait. */
#ifndef REGISTRY_SERVER_H
#define REGISTRY_SERVER_H

#include <stdint.h>

#include "registry/registry.h"

enum { SERVER_PATIENCE_MS = 60000 }; /* for a client that reads nothing of an answer */

struct server;

/* Takes the listening socket, also on failure; NULL without memory or descriptors. */
struct server *server_new(int listener);
void server_free(struct server *server);

struct registry *server_registry(struct server *server);

/* A descriptor that is readable (poll) when server_step has something to do. */
int server_fd(const struct server *server);

/* Does what can be done without waiting. Returns after how many ms to call it again at the latest; -1 = no
 * limit. */
int64_t server_step(struct server *server, int64_t now_ms);

#endif
