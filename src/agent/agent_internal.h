/* agent_internal.h - an agent, shared by agent.c (the process) and agent_logs.c (sending logs). */
#ifndef AGENT_AGENT_INTERNAL_H
#define AGENT_AGENT_INTERNAL_H

#include "supervise/here.h"

/* How far the log of one stream has been sent. */
struct shipped {
    int fd; /* the file, to read; -1 = not opened yet */
    int64_t sent;
    int64_t until; /* how long it was when the round began */
};

struct agent {
    struct watcher watcher;
    struct here here;
    struct shipped *shipped; /* [2 * process_count]: one for each stream */
    bool is_over;            /* nothing more will be started: it ends with its last worker */
    bool is_killing;         /* all workers were killed */
    int64_t give_up_at;      /* ms, while killing */
    bool has_given_up;       /* on processes that cannot be killed */
};

/* --- agent_logs.c --- */

/* Makes the table of what is sent; false without memory. */
bool agent_logs_prepare(struct agent *agent);
void agent_logs_release(struct agent *agent);

/* Sends what the workers have written. True when all that was there when the round began is sent: the events
 * that were marked then (outbox_mark) may follow. */
bool agent_logs_ship(struct agent *agent);

/* When to check again, in ms from now; -1 = no time limit. */
int64_t agent_logs_tick(const struct agent *agent);

#endif
