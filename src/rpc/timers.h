/* timers.h - deadlines on the monotonic clock, the earliest first. */
#ifndef RPC_TIMERS_H
#define RPC_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at;   /* nanoseconds, see timers_now */
    size_t place; /* in the heap, from 1; 0 = not set */
    void (*fire)(struct timer *timer);
};

struct timers {
    struct timer **heap; /* [count]; none is later than the two below it */
    size_t count, cap, promised;
};

void timers_release(struct timers *timers);

/* Makes room for `more` timers, so that setting them cannot fail; false without memory. */
bool timers_reserve(struct timers *timers, size_t more);
void timers_give_back(struct timers *timers, size_t less);

/* Sets a timer, or moves it. */
void timers_set(struct timers *timers, struct timer *timer, int64_t at);
void timers_unset(struct timers *timers, struct timer *timer);

/* Unsets and fires the timers that are due. */
void timers_fire(struct timers *timers, int64_t now);

/* The monotonic clock in nanoseconds; a deadline `ms` from now, -1 (none) for -1. */
int64_t timers_now(void);
int64_t timers_deadline(int32_t ms);

/* Whole milliseconds until `deadline`, for poll: 0 = it has passed, -1 = there is none. */
int timers_left_ms(int64_t deadline);

#endif
