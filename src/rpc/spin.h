/* spin.h - a wait that may be short: a few more looks before going to sleep.
 *
 * To sleep and be woken on another core takes several times what a small call does. A wait that follows a
 * short one is expected to be short, too: its thread looks again for a moment, and lets others of its core
 * run before each look. After a long wait it sleeps at once, so who is seldom asked burns nothing. */
#ifndef RPC_SPIN_H
#define RPC_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: as after a long wait. */
struct spin {
    int64_t begin;    /* of this wait, see timers_now */
    bool is_expected; /* what is waited for, in a moment */
};

/* A wait begins; `is_allowed` false: one that sleeps at once. */
void spin_begin(struct spin *spin, bool is_allowed);
/* Whether to look (again) instead of going to sleep. Others have had this core meanwhile. */
bool spin_again(const struct spin *spin);
/* The wait is over. */
void spin_end(struct spin *spin);

#endif
