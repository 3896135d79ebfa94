/* clock.h - time for waits: monotonic, so that no jump of the wall clock ends or prolongs one. */
#ifndef SUPERVISE_CLOCK_H
#define SUPERVISE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_read(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_ms(void)
{
    return clock_read(CLOCK_MONOTONIC) / 1000000;
}

/* The shorter of two waits; -1 = no limit. */
static inline int64_t clock_sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static inline void clock_pause_ms(int32_t ms)
{
    struct timespec span = {ms / 1000, (ms % 1000) * 1000000L};
    (void)nanosleep(&span, NULL);
}

#endif
