/* timers_test.c - timers fire in their order, once, and not when they were unset. */
#include "rpc/timers.h"

#include <stdlib.h>

#include "tests/unit.h"

enum { COUNT = 300 };

struct clock {
    struct timer timer;
    int fired;
};

static int64_t last_at;

static void fire(struct timer *timer)
{
    assert_true(timer->at >= last_at);
    assert_int_equal(timer->place, 0);
    last_at = timer->at;
    ((struct clock *)timer)->fired++;
}

TEST(timers_fire_once_in_the_order_of_their_times)
{
    static struct clock clocks[COUNT];
    struct timers timers = {0};
    uint32_t random = 1;
    assert_true(timers_reserve(&timers, COUNT));
    for (int i = 0; i < COUNT; i++) {
        random = random * 1664525 + 1013904223;
        clocks[i] = (struct clock){.timer.fire = fire};
        timers_set(&timers, &clocks[i].timer, random >> 20);
    }
    for (int i = 0; i < COUNT; i += 3)
        timers_unset(&timers, &clocks[i].timer);
    timers_unset(&timers, &clocks[0].timer); /* twice is fine */
    for (int i = 1; i < COUNT; i += 3)
        timers_set(&timers, &clocks[i].timer, COUNT - i); /* moved */
    last_at = 0;
    timers_fire(&timers, 100);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(clocks[i].fired, i % 3 && clocks[i].timer.at <= 100);
    timers_fire(&timers, 1 << 20);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(clocks[i].fired, i % 3 != 0);
    assert_int_equal(timers.count, 0);
    timers_release(&timers);
}

static struct timers own;

static void set_again(struct timer *timer)
{
    if (((struct clock *)timer)->fired++ < 3)
        timers_set(&own, timer, timer->at + 1);
}

TEST(a_timer_may_be_set_again_when_it_fires)
{
    struct clock clock = {.timer.fire = set_again};
    assert_true(timers_reserve(&own, 1));
    timers_set(&own, &clock.timer, 5);
    timers_fire(&own, 100);
    assert_int_equal(clock.fired, 4);
    timers_release(&own);
}

TEST(what_was_promised_stays_promised)
{
    struct timers timers = {0};
    assert_true(timers_reserve(&timers, 2));
    assert_true(timers_reserve(&timers, 2));
    assert_true(timers.cap >= 4);
    timers_give_back(&timers, 3);
    assert_true(timers_reserve(&timers, 3));
    assert_true(timers.cap >= 4);
    timers_release(&timers);
}

TEST(a_deadline_is_counted_in_whole_milliseconds)
{
    assert_int_equal(timers_deadline(-1), -1);
    assert_int_equal(timers_left_ms(-1), -1);
    assert_int_equal(timers_left_ms(timers_now()), 0);
    assert_int_equal(timers_left_ms(1), 0);
    assert_true(timers_left_ms(timers_now() + 100000) >= 0);
    assert_true(timers_left_ms(timers_deadline(INT32_MAX)) > 1000000);
    assert_true(timers_left_ms(INT64_MAX) > 1000000);
}

RUN_TESTS(cmocka_unit_test(timers_fire_once_in_the_order_of_their_times),
          cmocka_unit_test(a_timer_may_be_set_again_when_it_fires),
          cmocka_unit_test(what_was_promised_stays_promised),
          cmocka_unit_test(a_deadline_is_counted_in_whole_milliseconds))
