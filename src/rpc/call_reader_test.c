/* call_reader_test.c - reading while nobody waits: when links tell, when a look reads, and who is left alone. */
#include "rpc/call_reader.h"

#include <sys/eventfd.h>

#include "tests/rpc_unit.h"

static struct net net;

static bool was_told(int fd)
{
    uint64_t count;
    return read(fd, &count, sizeof count) == sizeof count;
}

static void await_told(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, WATCHDOG_MS), 1);
    assert_true(was_told(fd));
}

static int open_told(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(fd >= 0);
    return fd;
}

static void answer(int32_t rank, const char *text)
{
    struct frame request = read_request(net.peer[rank]);
    send_answer(net.peer[rank], &request, text);
}

/* --- links that are looked at --- */

TEST(links_tell_once_of_requests_that_nobody_waits_for)
{
    int fd = open_told();
    net_open(&net, 1);
    links_set_reader(net.links, fd);
    assert_false(was_told(fd));
    struct roost_call *first = call_all(&net, "x");
    assert_true(was_told(fd));
    struct roost_call *second = call_all(&net, "y");
    assert_false(was_told(fd));
    roost_call_free(first);
    roost_call_free(second);
    net_close(&net);
    close(fd);
}

TEST(links_tell_a_new_reader_of_requests_that_are_older)
{
    int fd = open_told();
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    links_set_reader(net.links, fd);
    assert_true(was_told(fd));
    roost_call_free(call);
    net_close(&net);
    close(fd);
}

TEST(a_look_reads_what_was_left_unread_since_the_look_before)
{
    int fd = open_told();
    uint64_t seen = 0;
    net_open(&net, 1);
    links_set_reader(net.links, fd);
    struct roost_call *call = call_all(&net, "x");
    answer(0, "y");
    assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
    check_outcome(call, 0, ROOST_OUTCOME_PENDING, "");
    assert_int_equal(links_look(net.links, &seen), LOOK_NOTHING);
    check_outcome(call, 0, ROOST_OUTCOME_VALUE, "y");
    roost_call_free(call);
    net_close(&net);
    close(fd);
}

TEST(a_look_leaves_links_alone_of_which_others_read)
{
    int fd = open_told();
    uint64_t seen = 0;
    net_open(&net, 1);
    links_set_reader(net.links, fd);
    struct roost_call *call = call_all(&net, "x");
    assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
    for (int i = 0; i < 10; i++) {
        assert_false(roost_call_is_done(call));
        answer(0, "y");
        assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
        check_outcome(call, 0, ROOST_OUTCOME_PENDING, "");
        expect(call, ROOST_OUTCOME_VALUE, "y");
        call = call_all(&net, "x");
    }
    assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
    assert_int_equal(links_look(net.links, &seen), LOOK_READ);
    assert_int_equal(links_look(net.links, &seen), LOOK_READ);
    roost_call_free(call);
    net_close(&net);
    close(fd);
}

TEST(after_a_look_that_found_nothing_links_tell_again)
{
    int fd = open_told();
    uint64_t seen = 0;
    net_open(&net, 1);
    links_set_reader(net.links, fd);
    for (int i = 0; i < 3; i++) {
        struct roost_call *call = call_all(&net, "x");
        assert_true(was_told(fd));
        assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
        answer(0, "y");
        assert_int_equal(links_look(net.links, &seen), LOOK_NOTHING);
        assert_int_equal(links_look(net.links, &seen), LOOK_NOTHING);
        expect(call, ROOST_OUTCOME_VALUE, "y");
    }
    net_close(&net);
    close(fd);
}

TEST(an_answer_to_a_call_that_was_freed_is_read_too)
{
    int fd = open_told();
    uint64_t seen = 0;
    net_open(&net, 1);
    links_set_reader(net.links, fd);
    roost_call_free(call_all(&net, "x"));
    answer(0, "y");
    assert_int_equal(links_look(net.links, &seen), LOOK_LATER);
    assert_int_equal(links_look(net.links, &seen), LOOK_NOTHING);
    assert_int_equal(links_counts(net.links).dropped_late, 1);
    net_close(&net);
    close(fd);
}

struct meanwhile {
    int asked;
    uint64_t seen;
    enum links_look first, second;
};

/* Asked again it is by a thread that has read, and is still among those who wait. */
static bool look_meanwhile(void *context)
{
    struct meanwhile *it = context;
    if (it->asked++ == 0)
        return false;
    it->first = links_look(net.links, &it->seen);
    it->second = links_look(net.links, &it->seen);
    return true;
}

TEST(while_somebody_waits_there_is_nothing_to_do_and_links_tell_when_that_ends)
{
    int fd = open_told();
    struct meanwhile it = {0};
    net_open(&net, 2);
    links_set_reader(net.links, fd);
    struct roost_call *slow = call_rank(&net, 0, "x"), *quick = call_rank(&net, 1, "x");
    assert_true(was_told(fd));
    answer(1, "y");
    assert_true(links_wait(net.links, WATCHDOG_MS, look_meanwhile, &it));
    assert_int_equal(it.first, LOOK_LATER);
    assert_int_equal(it.second, LOOK_NOTHING);
    assert_true(was_told(fd));
    assert_int_equal(links_look(net.links, &it.seen), LOOK_LATER);
    assert_int_equal(links_look(net.links, &it.seen), LOOK_READ);
    expect(quick, ROOST_OUTCOME_VALUE, "y");
    roost_call_free(slow);
    net_close(&net);
    close(fd);
}

/* --- those who listen --- */

TEST(who_listens_is_told_of_what_others_have_read)
{
    int first = open_told(), second = open_told();
    net_open(&net, 1);
    assert_true(links_listen(net.links, first) && links_listen(net.links, second));
    struct roost_call *call = call_all(&net, "x");
    assert_false(was_told(first) || was_told(second));
    answer(0, "y");
    expect(call, ROOST_OUTCOME_VALUE, "y");
    assert_true(was_told(first));
    assert_true(was_told(second));
    links_unlisten(net.links, first);
    call = call_all(&net, "x");
    answer(0, "y");
    expect(call, ROOST_OUTCOME_VALUE, "y");
    assert_false(was_told(first));
    assert_true(was_told(second));
    net_close(&net);
    close(first);
    close(second);
}

/* --- a thread that reads --- */

static void *run(void *reader)
{
    roost_call_reader_run(reader);
    return NULL;
}

TEST(a_reader_reads_for_those_who_do_not_wait_until_the_last_has_gone)
{
    enum { COUNT = 3 };
    struct net nets[COUNT];
    struct roost_call *calls[COUNT];
    int told[COUNT];
    pthread_t thread;
    struct roost_call_reader *reader = roost_call_reader_new();
    assert_non_null(reader);
    assert_false(roost_call_reader_has_groups(reader));
    roost_call_reader_run(reader); /* for nobody: no time at all */
    for (int i = 0; i < COUNT; i++) {
        net_open(&nets[i], 1);
        told[i] = open_told();
        assert_true(links_listen(nets[i].links, told[i]));
        assert_true(reader_add(reader, nets[i].links));
    }
    assert_int_equal(pthread_create(&thread, NULL, run, reader), 0);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < COUNT; i++)
            calls[i] = call_all(&nets[i], "x");
        for (int i = COUNT - 1; i >= 0; i--) {
            struct frame request = read_request(nets[i].peer[0]);
            send_answer(nets[i].peer[0], &request, "y");
            await_told(told[i]);
            check_outcome(calls[i], 0, ROOST_OUTCOME_VALUE, "y");
            roost_call_free(calls[i]);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_true(roost_call_reader_has_groups(reader));
        reader_remove(reader, nets[i].links);
        net_close(&nets[i]);
        close(told[i]);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    roost_call_reader_free(reader);
}

TEST(links_may_be_taken_from_a_reader_at_any_time)
{
    pthread_t thread;
    struct net kept;
    struct roost_call_reader *reader = roost_call_reader_new();
    assert_non_null(reader);
    net_open(&kept, 1);
    assert_true(reader_add(reader, kept.links));
    assert_int_equal(pthread_create(&thread, NULL, run, reader), 0);
    for (int turn = 0; turn < 200; turn++) {
        net_open(&net, 2);
        int told = open_told();
        assert_true(links_listen(net.links, told));
        assert_true(reader_add(reader, net.links));
        struct roost_call *call = call_all(&net, "x");
        answer(0, "y");
        if (turn % 8 == 0) { /* in the middle of it */
            answer(1, "y");
            await_told(told);
        }
        roost_call_free(call);
        reader_remove(reader, net.links);
        net_close(&net);
        close(told);
    }
    reader_remove(reader, kept.links);
    assert_int_equal(pthread_join(thread, NULL), 0);
    net_close(&kept);
    roost_call_reader_free(reader);
}

enum { CALLS = 2000 };

static void *call_and_wait(void *context)
{
    int32_t rank = *(const int32_t *)context;
    for (int i = 0; i < CALLS; i++) {
        struct roost_call *call = call_rank(&net, rank, "x");
        if (i % 3) /* the others are left to whoever reads */
            assert_true(roost_call_wait(call, WATCHDOG_MS));
        roost_call_free(call);
    }
    return NULL;
}

TEST(those_who_wait_and_those_who_do_not_have_their_answers_beside_a_reader)
{
    enum { THREADS = 4 };
    struct server servers[THREADS];
    pthread_t threads[THREADS], reading;
    int32_t ranks[THREADS];
    struct roost_call_reader *reader = roost_call_reader_new();
    assert_non_null(reader);
    net_open(&net, THREADS);
    assert_true(reader_add(reader, net.links));
    assert_int_equal(pthread_create(&reading, NULL, run, reader), 0);
    for (int32_t i = 0; i < THREADS; i++)
        server_start(&servers[i], &net, i, 1);
    for (int32_t i = 0; i < THREADS; i++) {
        ranks[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, call_and_wait, &ranks[i]), 0);
    }
    for (int32_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    reader_remove(reader, net.links);
    assert_int_equal(pthread_join(reading, NULL), 0);
    net_close(&net);
    for (int32_t i = 0; i < THREADS; i++)
        server_join(&servers[i]);
    roost_call_reader_free(reader);
}

RUN_TESTS(
    cmocka_unit_test(links_tell_once_of_requests_that_nobody_waits_for),
    cmocka_unit_test(links_tell_a_new_reader_of_requests_that_are_older),
    cmocka_unit_test(a_look_reads_what_was_left_unread_since_the_look_before),
    cmocka_unit_test(a_look_leaves_links_alone_of_which_others_read),
    cmocka_unit_test(after_a_look_that_found_nothing_links_tell_again),
    cmocka_unit_test(an_answer_to_a_call_that_was_freed_is_read_too),
    cmocka_unit_test(while_somebody_waits_there_is_nothing_to_do_and_links_tell_when_that_ends),
    cmocka_unit_test(who_listens_is_told_of_what_others_have_read),
    cmocka_unit_test(a_reader_reads_for_those_who_do_not_wait_until_the_last_has_gone),
    cmocka_unit_test(links_may_be_taken_from_a_reader_at_any_time),
    cmocka_unit_test(those_who_wait_and_those_who_do_not_have_their_answers_beside_a_reader))
