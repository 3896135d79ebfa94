/* links_wait_test.c - waiting: for answers, for time, for others; by one thread or by many. */
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "rpc/links.h"
#include "rpc/timers.h"
#include "tests/rpc_unit.h"

static struct net net;

static bool is_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 0) == 1;
}

static void await_readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, WATCHDOG_MS), 1);
}

/* --- time --- */

TEST(waiting_ends_with_its_time_and_decides_nothing)
{
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    assert_false(roost_call_wait(call, 0));
    assert_false(roost_call_wait(call, 5));
    check_outcome(call, 0, ROOST_OUTCOME_PENDING, "");
    struct frame request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "y");
    assert_true(roost_call_wait(call, 0)); /* what has come counts */
    check_outcome(call, 0, ROOST_OUTCOME_VALUE, "y");
    roost_call_free(call);
    net_close(&net);
}

TEST(a_wait_ends_with_its_own_time_whatever_was_waited_for_before)
{
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[0]);
    /* Each leaves an alarm that is too late or too early for the one behind it. */
    static const int32_t times[] = {30, 1, 10, 2, 2, 40, 5};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t start = timers_now();
        assert_false(roost_call_wait(call, times[i]));
        assert_true(timers_now() - start >= (int64_t)times[i] * 1000000);
    }
    struct roost_call *other = call_all(&net, "x");
    struct frame second = read_request(net.peer[0]);
    send_answer(net.peer[0], &second, "z");
    assert_true(roost_call_wait(other, WATCHDOG_MS)); /* leaves a late alarm */
    assert_false(roost_call_wait(call, 3));
    send_answer(net.peer[0], &request, "y");
    assert_true(roost_call_wait(call, -1));
    roost_call_free(other);
    roost_call_free(call);
    net_close(&net);
}

TEST(calls_end_with_their_own_times)
{
    net_open(&net, 2);
    struct roost_call *never = call_all(&net, "x");
    struct roost_call *later = call_with(&net, "x", 1, NULL, 0, 40);
    struct roost_call *sooner = call_with(&net, "x", 1, NULL, 0, 20);
    assert_true(roost_call_wait(later, WATCHDOG_MS));
    assert_true(roost_call_wait(sooner, 0));
    for (size_t i = 0; i < 2; i++) {
        check_outcome(sooner, i, ROOST_OUTCOME_UNKNOWN, "no answer within 20 ms");
        check_outcome(later, i, ROOST_OUTCOME_UNKNOWN, "no answer within 40 ms");
        check_outcome(never, i, ROOST_OUTCOME_PENDING, "");
    }
    roost_call_free(never);
    roost_call_free(sooner);
    roost_call_free(later);
    net_close(&net);
}

TEST(what_came_in_time_stays_when_the_time_is_up)
{
    net_open(&net, 2);
    struct roost_call *call = call_with(&net, "x", 1, NULL, 0, 20);
    struct frame request = read_request(net.peer[1]);
    send_answer(net.peer[1], &request, "in time");
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    check_outcome(call, 0, ROOST_OUTCOME_UNKNOWN, "no answer within");
    check_outcome(call, 1, ROOST_OUTCOME_VALUE, "in time");
    roost_call_free(call);
    net_close(&net);
}

/* --- an event loop --- */

TEST(the_descriptor_is_readable_when_there_is_something_to_do)
{
    net_open(&net, 1);
    int fd = links_fd(net.links);
    struct roost_call *call = call_all(&net, "x");
    assert_false(is_readable(fd));
    struct frame request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "y");
    assert_true(is_readable(fd));
    links_pump(net.links);
    assert_false(is_readable(fd));
    expect(call, ROOST_OUTCOME_VALUE, "y");
    /* A time that is up is something, too. */
    call = call_with(&net, "x", 1, NULL, 0, 10);
    await_readable(fd);
    links_pump(net.links);
    expect(call, ROOST_OUTCOME_UNKNOWN, "no answer within 10 ms");
    assert_false(is_readable(fd));
    net_close(&net);
}

/* --- the other descriptor --- */

static struct {
    int fd, count;
} other;

static void end_rank(void *context)
{
    uint64_t count;
    (void)context;
    assert_int_equal(read(other.fd, &count, sizeof count), sizeof count);
    other.count++;
    links_end(net.links, 0, 1, "told so");
}

static bool was_told(void *context)
{
    (void)context;
    return other.count > 0;
}

TEST(who_waits_also_hears_of_what_happens_elsewhere)
{
    static const uint64_t one = 1;
    other.fd = eventfd(0, EFD_CLOEXEC);
    other.count = 0;
    struct links_options options = {.rank_count = 2, .other_fd = other.fd, .on_other = end_rank};
    net_open_with(&net, options, true);
    struct roost_call *call = call_rank(&net, 0, "x");
    assert_false(links_wait(net.links, 0, was_told, NULL));
    assert_int_equal(write(other.fd, &one, sizeof one), sizeof one);
    assert_true(links_wait(net.links, WATCHDOG_MS, was_told, NULL));
    assert_int_equal(other.count, 1);
    expect(call, ROOST_OUTCOME_UNKNOWN, "told so");
    net_close(&net);
    close(other.fd);
}

static int other_ends[2];

static void take_all(void *context)
{
    char bytes[64];
    (void)context;
    while (recv(other_ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        other.count++;
}

TEST(the_end_of_what_happens_elsewhere_is_told_once)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, other_ends), 0);
    other.count = 0;
    struct links_options options = {
        .rank_count = 1, .other_fd = other_ends[0], .on_other = take_all};
    net_open_with(&net, options, true);
    write_all(other_ends[1], "last", 4);
    close(other_ends[1]);
    assert_true(is_readable(links_fd(net.links)));
    links_pump(net.links);
    assert_int_equal(other.count, 1);
    assert_false(is_readable(links_fd(net.links)));
    net_close(&net);
    close(other_ends[0]);
}

/* --- sockets that close --- */

TEST(a_closed_socket_waits_a_moment_for_the_words_of_its_end)
{
    net_open_with(&net, (struct links_options){.rank_count = 1, .close_grace_ms = 60000}, true);
    struct roost_call *call = call_all(&net, "x");
    close(net.peer[0]);
    net.peer[0] = -1;
    links_pump(net.links);
    struct roost_call *later = call_all(&net, "y");
    assert_false(roost_call_is_done(call) || roost_call_is_done(later));
    links_end(net.links, 0, 1, "exit code 7");
    expect(call, ROOST_OUTCOME_UNKNOWN, "exit code 7");
    expect(later, ROOST_OUTCOME_NOT_RUN, "exit code 7"); /* it was never sent */
    assert_int_equal(net.cuts, 0);
    net_close(&net);
}

TEST(a_closed_socket_is_cut_when_nobody_tells_of_its_end)
{
    net_open_with(&net, (struct links_options){.rank_count = 1, .close_grace_ms = 10}, true);
    struct roost_call *call = call_all(&net, "x");
    close(net.peer[0]);
    net.peer[0] = -1;
    links_pump(net.links);
    struct roost_call *slow = call_with(&net, "y", 1, NULL, 0, 1);
    expect(slow, ROOST_OUTCOME_NOT_RUN, "it closed its socket"); /* it was never sent */
    roost_call_free(call_all(&net, "freed meanwhile"));
    expect(call, ROOST_OUTCOME_UNKNOWN, "it closed its socket");
    assert_int_equal(net.cuts, 1);
    assert_int_equal(links_state(net.links, 0, NULL), LINK_ENDED);
    net_close(&net);
}

TEST(a_socket_that_is_closed_for_sending_only_is_closed)
{
    net_open_with(&net, (struct links_options){.rank_count = 1, .close_grace_ms = 10}, true);
    struct roost_call *call = call_all(&net, "x");
    assert_int_equal(shutdown(net.peer[0], SHUT_WR), 0);
    expect(call, ROOST_OUTCOME_UNKNOWN, "it closed its socket");
    net_close(&net);
}

TEST(a_worker_that_reads_no_more_may_still_answer)
{
    net_open_with(&net, (struct links_options){.rank_count = 1, .close_grace_ms = 60000}, true);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[0]);
    assert_int_equal(shutdown(net.peer[0], SHUT_RD), 0);
    struct roost_call *unheard = call_all(&net, "y");
    send_answer(net.peer[0], &request, "last words");
    expect(call, ROOST_OUTCOME_VALUE, "last words");
    links_end(net.links, 0, 1, "gone");
    expect(unheard, ROOST_OUTCOME_NOT_RUN, "gone");
    net_close(&net);
}

TEST(a_socket_that_a_fork_still_has_is_no_news_when_it_has_ended)
{
    int ends[2];
    net_open_with(&net, (struct links_options){.rank_count = 1, .close_grace_ms = -1}, false);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    int copy = dup(ends[0]); /* the same to the kernel as that of a fork */
    assert_true(links_add(net.links, 0, 1, 1, ends[0]));
    links_end(net.links, 0, 1, "gone");
    close(ends[1]);
    assert_false(is_readable(links_fd(net.links)));
    net_close(&net);
    close(copy);
}

TEST(death_in_the_middle_of_a_frame_is_an_unknown_outcome)
{
    for (size_t len = 1; len < FRAME_SIZE + 5; len++) {
        net_open(&net, 2);
        struct roost_call *call = call_all(&net, "x");
        struct frame request = read_request(net.peer[0]);
        struct frame frame = answer_to(&request, 5);
        char bytes[FRAME_SIZE + 5] = "";
        memcpy(bytes, &frame, sizeof frame);
        write_all(net.peer[0], bytes, len);
        close(net.peer[0]);
        net.peer[0] = -1;
        request = read_request(net.peer[1]);
        send_answer(net.peer[1], &request, "fine");
        assert_true(roost_call_wait(call, WATCHDOG_MS));
        check_outcome(call, 0, ROOST_OUTCOME_UNKNOWN, "it closed its socket");
        check_outcome(call, 1, ROOST_OUTCOME_VALUE, "fine");
        roost_call_free(call);
        net_close(&net);
    }
}

/* --- several threads --- */

enum { THREADS = 8, CALLS = 400 };

static void *call_often(void *context)
{
    int32_t rank = *(const int32_t *)context;
    char text[32];
    for (int i = 0; i < CALLS; i++) {
        snprintf(text, sizeof text, "%d of %d", i, rank);
        struct roost_call *call = i % 4 ? call_rank(&net, rank, text) : call_all(&net, text);
        assert_true(roost_call_wait(call, WATCHDOG_MS));
        for (size_t k = 0; k < roost_call_count(call); k++)
            check_outcome(call, k, ROOST_OUTCOME_VALUE, text);
        roost_call_free(call);
    }
    return NULL;
}

TEST(several_threads_call_and_wait_at_once)
{
    struct server servers[THREADS];
    pthread_t threads[THREADS];
    int32_t ranks[THREADS];
    net_open(&net, THREADS);
    for (int32_t i = 0; i < THREADS; i++)
        server_start(&servers[i], &net, i, 1);
    for (int32_t i = 0; i < THREADS; i++) {
        ranks[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &ranks[i]), 0);
    }
    for (int32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    uint64_t expected = (uint64_t)THREADS * (CALLS / 4 * 3 + CALLS / 4 * THREADS);
    assert_int_equal(links_counts(net.links).answers, expected);
    net_close(&net);
    for (int32_t i = 0; i < THREADS; i++)
        server_join(&servers[i]);
}

static void *wait_for(void *context)
{
    assert_true(roost_call_wait(context, WATCHDOG_MS));
    return NULL;
}

TEST(who_reads_for_all_hands_that_on)
{
    for (int turn = 0; turn < 50; turn++) {
        enum { COUNT = 4 };
        struct roost_call *calls[COUNT];
        pthread_t threads[COUNT];
        net_open(&net, COUNT);
        for (int32_t i = 0; i < COUNT; i++) {
            calls[i] = call_rank(&net, i, "x");
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for, calls[i]), 0);
        }
        /* One after the other: whoever leads, somebody leads after it. */
        for (int32_t i = 0; i < COUNT; i++) {
            int32_t rank = (i + turn) % COUNT;
            struct frame request = read_request(net.peer[rank]);
            send_answer(net.peer[rank], &request, "y");
            assert_int_equal(pthread_join(threads[rank], NULL), 0);
            check_outcome(calls[rank], 0, ROOST_OUTCOME_VALUE, "y");
            roost_call_free(calls[rank]);
        }
        net_close(&net);
    }
}

TEST(a_waiting_thread_hears_of_what_another_does)
{
    for (int turn = 0; turn < 50; turn++) {
        pthread_t threads[2];
        net_open(&net, 2);
        struct roost_call *calls[2] = {call_rank(&net, 0, "x"), call_rank(&net, 1, "x")};
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, wait_for, calls[i]), 0);
        for (int32_t i = 0; i < 2; i++) {
            int32_t rank = (i + turn) % 2;
            links_end(net.links, rank, 1, "gone");
            assert_int_equal(pthread_join(threads[rank], NULL), 0);
            expect(calls[rank], ROOST_OUTCOME_UNKNOWN, "gone");
        }
        net_close(&net);
    }
}

/* Handles what comes while another thread waits, until it is told to stop; ends a wait that has no end. */
static void *pump_often(void *context)
{
    const atomic_bool *is_over = context;
    int64_t start = timers_now();
    while (!*is_over && timers_now() - start < WATCHDOG_MS * INT64_C(1000000))
        links_pump(net.links);
    if (!*is_over)
        links_end(net.links, 0, 1, "never woken");
    return NULL;
}

TEST(a_wait_ends_in_time_while_another_thread_handles_what_comes)
{
    atomic_bool is_over = false;
    pthread_t thread;
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    struct roost_call *sooner = call_with(&net, "x", 1, NULL, 0, 8); /* its alarm, too */
    assert_int_equal(pthread_create(&thread, NULL, pump_often, &is_over), 0);
    for (int turn = 0; turn < 20; turn++)
        assert_false(roost_call_wait(call, 5));
    is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    expect(sooner, ROOST_OUTCOME_UNKNOWN, "no answer within 8 ms");
    roost_call_free(call);
    net_close(&net);
}

TEST(a_wait_ends_with_its_answer_whichever_thread_handles_it)
{
    atomic_bool is_over = false;
    pthread_t thread;
    struct server server;
    net_open(&net, 1);
    server_start(&server, &net, 0, 1);
    assert_int_equal(pthread_create(&thread, NULL, pump_often, &is_over), 0);
    for (int turn = 0; turn < 2000; turn++) {
        struct roost_call *call = call_all(&net, "x");
        assert_true(roost_call_wait(call, -1));
        expect(call, ROOST_OUTCOME_VALUE, "x");
    }
    is_over = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    net_close(&net);
    server_join(&server);
}

static bool is_set(void *context)
{
    return *(const bool *)context;
}

static void *set_it(void *context)
{
    links_lock(net.links);
    *(bool *)context = true;
    links_unlock(net.links);
    return NULL;
}

TEST(what_is_changed_under_the_lock_is_noticed)
{
    bool is_done = false;
    pthread_t thread;
    net_open(&net, 1);
    assert_int_equal(pthread_create(&thread, NULL, set_it, &is_done), 0);
    assert_true(links_wait(net.links, WATCHDOG_MS, is_set, &is_done));
    assert_int_equal(pthread_join(thread, NULL), 0);
    net_close(&net);
}

RUN_TESTS(cmocka_unit_test(waiting_ends_with_its_time_and_decides_nothing),
          cmocka_unit_test(a_wait_ends_with_its_own_time_whatever_was_waited_for_before),
          cmocka_unit_test(calls_end_with_their_own_times),
          cmocka_unit_test(what_came_in_time_stays_when_the_time_is_up),
          cmocka_unit_test(the_descriptor_is_readable_when_there_is_something_to_do),
          cmocka_unit_test(who_waits_also_hears_of_what_happens_elsewhere),
          cmocka_unit_test(the_end_of_what_happens_elsewhere_is_told_once),
          cmocka_unit_test(a_closed_socket_waits_a_moment_for_the_words_of_its_end),
          cmocka_unit_test(a_closed_socket_is_cut_when_nobody_tells_of_its_end),
          cmocka_unit_test(a_socket_that_is_closed_for_sending_only_is_closed),
          cmocka_unit_test(a_worker_that_reads_no_more_may_still_answer),
          cmocka_unit_test(a_socket_that_a_fork_still_has_is_no_news_when_it_has_ended),
          cmocka_unit_test(death_in_the_middle_of_a_frame_is_an_unknown_outcome),
          cmocka_unit_test(several_threads_call_and_wait_at_once),
          cmocka_unit_test(who_reads_for_all_hands_that_on),
          cmocka_unit_test(a_waiting_thread_hears_of_what_another_does),
          cmocka_unit_test(a_wait_ends_in_time_while_another_thread_handles_what_comes),
          cmocka_unit_test(a_wait_ends_with_its_answer_whichever_thread_handles_it),
          cmocka_unit_test(what_is_changed_under_the_lock_is_noticed))
