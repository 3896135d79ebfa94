/* spin_test.c - who looks again, and for how long. The clock is moved by moving the beginning of a wait. */
#include "rpc/spin.h"

#include <sys/resource.h>

#include "rpc/links_internal.h"
#include "rpc/timers.h"
#include "tests/rpc_unit.h"

enum { SECOND = 1000000000 };

static void wait_short(struct spin *spin)
{
    spin_begin(spin, true);
    spin->begin = timers_now() + SECOND; /* however long this process is kept from running */
    spin_end(spin);
}

static void wait_long(struct spin *spin)
{
    spin_begin(spin, true);
    spin->begin -= SECOND;
    spin_end(spin);
}

TEST(a_first_wait_sleeps_at_once)
{
    struct spin spin = {0};
    spin_begin(&spin, true);
    assert_false(spin_again(&spin));
}

TEST(a_wait_behind_a_short_one_looks_again_for_a_moment_only)
{
    struct spin spin = {0};
    wait_short(&spin);
    spin_begin(&spin, true);
    spin.begin = timers_now() + SECOND;
    assert_true(spin_again(&spin));
    assert_true(spin_again(&spin));
    spin.begin = timers_now() - SECOND;
    assert_false(spin_again(&spin));
}

TEST(a_wait_behind_a_long_one_sleeps_at_once)
{
    struct spin spin = {0};
    wait_short(&spin);
    wait_long(&spin);
    spin_begin(&spin, true);
    spin.begin = timers_now() + SECOND;
    assert_false(spin_again(&spin));
}

TEST(a_wait_that_may_not_look_again_sleeps_at_once_and_the_next_one_may)
{
    struct spin spin = {0};
    wait_short(&spin);
    spin_begin(&spin, false);
    spin.begin = timers_now() + SECOND;
    assert_false(spin_again(&spin));
    spin_end(&spin);
    spin_begin(&spin, true);
    spin.begin = timers_now() + SECOND;
    assert_true(spin_again(&spin));
}

static int64_t burned_ms(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000) +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

TEST(waiting_for_a_slow_rank_burns_nothing)
{
    static struct net net;
    net_open(&net, 1);
    for (int i = 0; i < 20; i++) { /* quick ones, so that the next is expected to be quick */
        struct roost_call *call = call_all(&net, "x");
        struct frame request = read_request(net.peer[0]);
        send_answer(net.peer[0], &request, "y");
        assert_true(roost_call_wait(call, WATCHDOG_MS));
        roost_call_free(call);
    }
    struct roost_call *slow = call_all(&net, "x");
    int64_t before = burned_ms();
    assert_false(roost_call_wait(slow, 400));
    assert_true(burned_ms() - before < 100);
    roost_call_free(slow);
    net_close(&net);
}

TEST(requests_that_were_answered_or_lost_are_waited_for_no_more)
{
    static struct net net;
    net_open(&net, 3);
    struct roost_call *first = call_all(&net, "x"), *second = call_all(&net, "x");
    assert_int_equal(net.links->asked, 6);
    for (int i = 0; i < 2; i++) {
        struct frame request = read_request(net.peer[0]);
        send_answer(net.peer[0], &request, "y");
    }
    assert_false(roost_call_wait(first, 1));
    assert_int_equal(net.links->asked, 4);
    links_end(net.links, 1, 1, "killed");
    assert_int_equal(net.links->asked, 2);
    roost_call_free(first); /* its last answer is still on its way */
    assert_int_equal(net.links->asked, 2);
    close(net.peer[2]);
    net.peer[2] = -1;
    assert_true(roost_call_wait(second, WATCHDOG_MS));
    assert_int_equal(net.links->asked, 0);
    roost_call_free(second);
    net_close(&net);
}

RUN_TESTS(cmocka_unit_test(a_first_wait_sleeps_at_once),
          cmocka_unit_test(a_wait_behind_a_short_one_looks_again_for_a_moment_only),
          cmocka_unit_test(a_wait_behind_a_long_one_sleeps_at_once),
          cmocka_unit_test(a_wait_that_may_not_look_again_sleeps_at_once_and_the_next_one_may),
          cmocka_unit_test(requests_that_were_answered_or_lost_are_waited_for_no_more),
          cmocka_unit_test(waiting_for_a_slow_rank_burns_nothing))
