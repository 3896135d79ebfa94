/* spin.c - when to poll again, and for how long. */
#include "rpc/spin.h"

#include <sched.h>

#include "rpc/timers.h"

/* More than a small call takes while both sides sleep: the first of a row makes the others quick. And the
 * most that a wrong guess burns. */
enum { SHORT_NS = 70 * 1000 };

static bool is_short(const struct spin *spin)
{
    return timers_now() - spin->begin <= SHORT_NS;
}

void spin_begin(struct spin *spin, bool is_allowed)
{
    spin->begin = timers_now();
    spin->is_expected &= is_allowed;
}

bool spin_again(const struct spin *spin)
{
    if (!spin->is_expected || !is_short(spin))
        return false;
    sched_yield();
    return true;
}

void spin_end(struct spin *spin)
{
    spin->is_expected = is_short(spin);
}
