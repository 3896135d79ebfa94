/* timers.c - a binary heap of timers that know their place in it. */
#include "rpc/timers.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

void timers_release(struct timers *timers)
{
    free(timers->heap);
    *timers = (struct timers){0};
}

bool timers_reserve(struct timers *timers, size_t more)
{
    size_t wanted = timers->promised + more;
    if (wanted > timers->cap) {
        size_t cap = wanted > 2 * timers->cap ? wanted : 2 * timers->cap;
        struct timer **heap = realloc(timers->heap, cap * sizeof(struct timer *));
        if (!heap)
            return false;
        timers->heap = heap;
        timers->cap = cap;
    }
    timers->promised = wanted;
    return true;
}

void timers_give_back(struct timers *timers, size_t less)
{
    timers->promised -= less;
}

static void put(struct timers *timers, size_t index, struct timer *timer)
{
    timers->heap[index] = timer;
    timer->place = index + 1;
}

/* Finds the place of a timer that may be earlier or later than its neighbours. */
static void settle(struct timers *timers, size_t index, struct timer *timer)
{
    while (index > 0 && timers->heap[(index - 1) / 2]->at > timer->at) {
        put(timers, index, timers->heap[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    for (size_t below; (below = 2 * index + 1) < timers->count; index = below) {
        if (below + 1 < timers->count && timers->heap[below + 1]->at < timers->heap[below]->at)
            below++;
        if (timers->heap[below]->at >= timer->at)
            break;
        put(timers, index, timers->heap[below]);
    }
    put(timers, index, timer);
}

void timers_set(struct timers *timers, struct timer *timer, int64_t at)
{
    timer->at = at;
    size_t index = timer->place ? timer->place - 1 : timers->count++;
    settle(timers, index, timer);
}

void timers_unset(struct timers *timers, struct timer *timer)
{
    if (!timer->place)
        return;
    size_t index = timer->place - 1;
    timer->place = 0;
    struct timer *last = timers->heap[--timers->count];
    if (last != timer)
        settle(timers, index, last);
}

void timers_fire(struct timers *timers, int64_t now)
{
    while (timers->count && timers->heap[0]->at <= now) {
        struct timer *timer = timers->heap[0];
        timers_unset(timers, timer);
        timer->fire(timer);
    }
}

int64_t timers_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t timers_deadline(int32_t ms)
{
    return ms < 0 ? -1 : timers_now() + ms * INT64_C(1000000);
}

int timers_left_ms(int64_t deadline)
{
    if (deadline < 0)
        return -1;
    int64_t left = deadline - timers_now();
    if (left <= 0)
        return 0;
    int64_t ms = (left + 999999) / 1000000;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}
