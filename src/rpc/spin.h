/* spin.h - polls for a moment before going to sleep, for waits that are probably short.
 *
 * Sleeping and waking up on another core takes several times as long as a small call. A wait that follows a
 * short one is expected to be short, too: its thread polls for a moment, and lets other threads of its core
 * run before each poll. After a long wait it sleeps at once, so a worker with few calls burns no CPU. */
#ifndef RPC_SPIN_H
#define RPC_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: as after a long wait. */
struct spin {
    int64_t begin;    /* of this wait, see timers_now */
    bool is_expected; /* the wait will probably be short */
};

/* A wait begins. Without `is_allowed` it sleeps at once. */
void spin_begin(struct spin *spin, bool is_allowed);
/* Whether to poll (again) instead of going to sleep. Lets other threads run on this core first. */
bool spin_again(const struct spin *spin);
/* The wait is over. */
void spin_end(struct spin *spin);

#endif
