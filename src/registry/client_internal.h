/* client_internal.h - a connection to a registry server, shared by connection.c (lines) and client.c (requests). */
#ifndef REGISTRY_CLIENT_INTERNAL_H
#define REGISTRY_CLIENT_INTERNAL_H

#include <pthread.h>
#include <roost/engine/registry.h>
#include <sys/types.h>

#include "base/diag.h"
#include "base/text.h"

struct pending {
    struct pending *next;
    int64_t ticket;
    char *answer; /* NULL = not yet */
};

struct roost_registry_client {
    char name_space[ROOST_NAMESPACE_MAX + 1];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int fd;
    int wake; /* an eventfd: an answer was taken while another thread waits at the descriptor */
    pid_t pid;
    int64_t last_ticket;
    struct pending *pending;
    struct text inbox;
    bool is_reading; /* a thread waits at the descriptor */
    bool is_lost;
};

/* Milliseconds of a clock that never jumps. */
int64_t connection_now(void);

/* --- with the lock held --- */

struct pending *connection_find(struct roost_registry_client *registry, int64_t ticket);
void connection_forget(struct roost_registry_client *registry, struct pending *pending);

/* Takes what has come; never waits. */
void connection_hear(struct roost_registry_client *registry);

/* Sends a line; false when the connection is lost. */
bool connection_send(struct roost_registry_client *registry, struct strview line);

/* Lets go of the lock and waits for something to happen at all, at most until the deadline (-1 = none). */
void connection_wait(struct roost_registry_client *registry, int64_t deadline);

#endif
