/* registry_server_start.h - a registry server in two steps, for a caller that has a namespace already
 * and something to do meanwhile. */
#ifndef RUN_REGISTRY_SERVER_START_H
#define RUN_REGISTRY_SERVER_START_H

#include <roost/engine/registry.h>

#include "base/diag.h"
#include "base/strview.h"
#include "rpc/socket_pair.h"

/* Where a registry server will live; all borrowed for the call. */
struct registry_server_place {
    const char *runtime;    /* the path of the runtime directory */
    int runtime_dir, lock;  /* that directory, and what namespace_take gave */
    const char *name_space; /* the namespace of the lock */
    const char *run_id;     /* of its run: a sweep finds the server by it; NULL = none */
    struct strview lines;   /* requests that it answers before any other, one per line */
};

/* Starts the process; it does not answer yet. Uses `view`, `program` and the port options. NULL after
 * reporting why not. */
struct roost_registry_server *registry_server_spawn(
    const struct roost_registry_server_options *options, const struct registry_server_place *place,
    struct diag *diag);

/* Waits until it answers at its socket; false after reporting why it does not. */
bool registry_server_meet(const struct roost_registry_server *server, struct diag *diag);

/* Sends requests, one per line, whose answers nobody waits for: what they keep ends with the server. They
 * come after all that were sent before. Does not wait. */
enum socket_pair_result registry_server_tell(const struct roost_registry_server *server,
                                             const char *lines, size_t len);

/* The socket that this writes to. */
int registry_server_socket(const struct roost_registry_server *server);

/* Asks it to end, and waits for nothing: roost_registry_server_free does. NULL is nothing. */
void registry_server_let_go(const struct roost_registry_server *server);

#endif
