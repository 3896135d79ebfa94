/* link_out_test.c - workers that are slow, loud or large: others and the driver's memory do not suffer. */
#include <sys/mman.h>

#include "rpc/links_internal.h"
#include "tests/rpc_unit.h"

enum { KIB = 1024 };

static struct net net;
static char block[1024 * KIB];

static int count_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 512; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* --- slow readers --- */

TEST(a_call_waits_for_room_and_gives_up_with_its_time)
{
    enum { SIZE = 20 * KIB, CAP = 64 * KIB, KEPT = 200 };
    struct roost_call *calls[KEPT];
    int32_t rank = 0;
    int count = 0;
    struct server good;
    net_open_with(&net, (struct links_options){.rank_count = 2, .outbox_max = CAP}, true);
    server_start(&good, &net, 1, 1);
    do {
        calls[count] = call_with(&net, block, SIZE, &rank, 1, 1500);
        assert_true(net.links->link[0].out_bytes <= CAP);
        expect(call_rank(&net, 1, "meanwhile"), ROOST_OUTCOME_VALUE, "meanwhile");
    } while (roost_call_outcome(calls[count], 0).kind == ROOST_OUTCOME_PENDING && ++count < KEPT);
    assert_true(count > 3 && count < KEPT);
    check_outcome(calls[count], 0, ROOST_OUTCOME_NOT_RUN, "no room to ask it within 1500 ms");
    for (int i = 0; i <= count; i++)
        roost_call_free(calls[i]);
    net_close(&net);
    server_join(&good);
}

static bool stop_third_time(void *context)
{
    int *asked = context;
    return ++*asked == 3;
}

TEST(a_call_that_waits_for_room_can_be_given_up)
{
    enum { SIZE = 20 * KIB, CAP = 64 * KIB, KEPT = 200 };
    struct roost_call *calls[KEPT], *call;
    struct roost_bytes bytes = {block, SIZE};
    int asked = 0, count = 0;
    struct roost_call_options options = {.method = "echo",
                                         .bytes = &bytes,
                                         .byte_count = 1,
                                         .is_stopped = stop_third_time,
                                         .stop_ctx = &asked};
    struct server good;
    struct roost_error err;
    net_open_with(&net, (struct links_options){.rank_count = 2, .outbox_max = CAP}, true);
    server_start(&good, &net, 0, 1);
    while (count < KEPT && (call = links_call(net.links, &options, &err)))
        calls[count++] = call;
    assert_true(count > 3 && count < KEPT);
    assert_int_equal(asked, 3);
    assert_int_equal(err.code, ROOST_ERR_TIMEOUT);
    assert_string_equal(err.message, "the call was given up before every rank had it");
    expect(call_rank(&net, 0, "meanwhile"), ROOST_OUTCOME_VALUE, "meanwhile");
    for (int i = 0; i < count; i++)
        roost_call_free(calls[i]);
    net_close(&net);
    server_join(&good);
}

enum { MANY = 300 };

static void *call_many(void *context)
{
    int32_t rank = 0;
    struct roost_call **calls = context;
    for (int i = 0; i < MANY; i++)
        calls[i] = call_with(&net, block, 20 * KIB, &rank, 1, 0);
    (void)roost_call_wait(calls[MANY - 1], WATCHDOG_MS); /* what still waits is sent by who waits */
    return NULL;
}

static void read_past(int fd, size_t len)
{
    static char bytes[64 * KIB];
    read_all(fd, bytes, len);
}

TEST(a_call_goes_on_when_there_is_room_again)
{
    struct roost_call *calls[MANY];
    pthread_t thread;
    net_open_with(&net, (struct links_options){.rank_count = 1, .outbox_max = 64 * KIB}, true);
    assert_int_equal(pthread_create(&thread, NULL, call_many, calls), 0);
    for (int i = 0; i < MANY; i++) {
        struct frame request;
        read_all(net.peer[0], &request, sizeof request);
        read_past(net.peer[0], (size_t)frame_body_len(&request));
        send_answer(net.peer[0], &request, "done");
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < MANY; i++)
        expect(calls[i], ROOST_OUTCOME_VALUE, "done");
    assert_int_equal(net.links->link[0].out_bytes, 0);
    net_close(&net);
}

TEST(who_waits_for_room_hears_that_the_worker_has_ended)
{
    struct roost_call *calls[MANY];
    pthread_t thread;
    net_open_with(&net, (struct links_options){.rank_count = 1, .outbox_max = 64 * KIB}, true);
    assert_int_equal(pthread_create(&thread, NULL, call_many, calls), 0);
    struct frame request;
    read_all(net.peer[0], &request, sizeof request);
    links_end(net.links, 0, 1, "gone");
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        assert_true(roost_call_is_done(calls[i]));
        struct roost_outcome it = roost_call_outcome(calls[i], 0);
        assert_true(it.kind == ROOST_OUTCOME_UNKNOWN || it.kind == ROOST_OUTCOME_NOT_RUN);
        assert_string_equal(it.why, "gone");
        roost_call_free(calls[i]);
    }
    net_close(&net);
}

TEST(a_request_larger_than_the_cap_is_sent_when_nothing_else_waits)
{
    struct server server;
    int32_t rank = 0;
    struct links_options options = {.rank_count = 1, .outbox_max = KIB, .close_grace_ms = -1};
    net_open_with(&net, options, true);
    struct roost_call *calls[3];
    server_start(&server, &net, 0, 1);
    for (int i = 0; i < 3; i++)
        calls[i] = call_with(&net, block, 100 * KIB, &rank, 1, 0);
    for (int i = 0; i < 3; i++) {
        assert_true(roost_call_wait(calls[i], WATCHDOG_MS));
        assert_int_equal(roost_call_outcome(calls[i], 0).bytes.len, 100 * KIB);
        roost_call_free(calls[i]);
    }
    net_close(&net);
    server_join(&server);
}

/* --- floods --- */

/* Answers one request for ever. */
static void *flood(void *context)
{
    int fd = *(const int *)context;
    struct frame request = read_request(fd);
    struct frame frames[64];
    for (size_t i = 0; i < ROWS(frames); i++)
        frames[i] = answer_to(&request, 0);
    while (send(fd, frames, sizeof frames, MSG_NOSIGNAL) > 0)
        continue;
    return NULL;
}

TEST(a_worker_that_never_stops_sending_keeps_nobody_from_being_heard)
{
    struct server good;
    pthread_t thread;
    net_open(&net, 2);
    server_start(&good, &net, 1, 1);
    assert_int_equal(pthread_create(&thread, NULL, flood, &net.peer[0]), 0);
    expect(call_rank(&net, 0, "x"), ROOST_OUTCOME_VALUE, "");
    for (int i = 0; i < 1000; i++)
        expect(call_rank(&net, 1, "heard"), ROOST_OUTCOME_VALUE, "heard");
    /* Time goes on, too. */
    int32_t rank = 0;
    expect(call_with(&net, "x", 1, &rank, 1, 10), ROOST_OUTCOME_UNKNOWN, "no answer within");
    links_pump(net.links);
    assert_true(links_counts(net.links).dropped_twice > 0);
    assert_int_equal(net.cuts, 0);
    links_end(net.links, 0, 1, "enough");
    assert_int_equal(pthread_join(thread, NULL), 0);
    net_close(&net);
    server_join(&good);
}

/* --- memory --- */

TEST(shared_memory_is_used_again_and_given_back)
{
    struct server servers[3];
    int before = count_descriptors();
    net_open(&net, 3);
    for (int32_t rank = 0; rank < 3; rank++)
        server_start(&servers[rank], &net, rank, 1);
    for (int i = 0; i < 100; i++) {
        struct roost_call *call = call_with(&net, block, 300 * KIB, NULL, 0, 0);
        assert_true(roost_call_wait(call, WATCHDOG_MS));
        roost_call_free(call);
    }
    /* The last answers may be here before the memory is given back, but not many calls long. */
    assert_true(net.links->regions.count >= 1 && net.links->regions.count <= 3);
    net_close(&net);
    for (int32_t rank = 0; rank < 3; rank++)
        server_join(&servers[rank]);
    assert_int_equal(count_descriptors(), before);
}

static bool is_idle(void *context)
{
    const struct region *region = net.links->regions.first;
    (void)context;
    return region && region->uses == 0;
}

static struct roost_worker *worker_of(int32_t rank)
{
    struct roost_worker *worker = roost_worker_new(net.peer[rank], 1, NULL);
    net.peer[rank] = -1;
    assert_non_null(worker);
    return worker;
}

static struct roost_request *next_of(struct roost_worker *worker)
{
    struct roost_request *request = NULL;
    assert_int_equal(roost_worker_next(worker, WATCHDOG_MS, &request, NULL), ROOST_OK);
    assert_non_null(request);
    return request;
}

TEST(a_payload_stays_as_it_is_until_its_request_is_freed)
{
    net_open(&net, 2);
    struct roost_worker *workers[2] = {worker_of(0), worker_of(1)};
    memset(block, 'a', sizeof block);
    roost_call_free(call_with(&net, block, sizeof block, NULL, 0, 0));
    struct roost_request *kept = next_of(workers[0]);
    roost_request_free(next_of(workers[1]));
    memset(block, 'b', sizeof block);
    roost_call_free(call_with(&net, block, sizeof block, NULL, 0, 0));
    struct roost_request *second = next_of(workers[0]);
    struct roost_bytes old = roost_request_payload(kept), new = roost_request_payload(second);
    assert_true(old.at != new.at);
    assert_int_equal(old.len, sizeof block);
    assert_int_equal((uintptr_t)old.at % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
    for (size_t i = 0; i < sizeof block; i++)
        assert_true(((const char *)old.at)[i] == 'a' && ((const char *)new.at)[i] == 'b');
    assert_int_equal(mprotect((void *)(uintptr_t)old.at, 1, PROT_READ | PROT_WRITE), -1);
    roost_request_free(kept);
    roost_request_free(second);
    roost_request_free(next_of(workers[1]));
    assert_true(links_wait(net.links, WATCHDOG_MS, is_idle, NULL));
    for (int i = 0; i < 2; i++)
        roost_worker_free(workers[i]);
    net_close(&net);
}

TEST(the_memory_of_a_dead_worker_is_used_again)
{
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    roost_call_free(call_with(&net, block, sizeof block, NULL, 0, 0));
    struct roost_request *kept = next_of(worker);
    assert_int_equal(net.links->regions.first->uses, 1);
    links_end(net.links, 0, 1, "gone");
    assert_int_equal(net.links->regions.first->uses, 0);
    assert_int_equal(net.links->regions.first->maps, 0);
    roost_request_free(kept);
    roost_worker_free(worker);
    net_close(&net);
}

TEST(what_is_held_by_workers_has_a_limit_and_calls_go_on_without)
{
    enum { COUNT = 5 };
    struct roost_request *kept[COUNT];
    net_open(&net, 1);
    net.links->regions.bytes_max = 3 * sizeof block;
    struct roost_worker *worker = worker_of(0);
    for (int i = 0; i < COUNT; i++) {
        memset(block, 'a' + i, sizeof block);
        roost_call_free(call_with(&net, block, sizeof block, NULL, 0, 0));
        /* What goes by the socket needs both sides. */
        kept[i] = NULL;
        while (!kept[i]) {
            links_pump(net.links);
            assert_int_equal(roost_worker_next(worker, 0, &kept[i], NULL), ROOST_OK);
        }
    }
    assert_int_equal(net.links->regions.count, 3);
    for (int i = 0; i < COUNT; i++) {
        struct roost_bytes bytes = roost_request_payload(kept[i]);
        assert_int_equal(bytes.len, sizeof block);
        assert_int_equal(((const char *)bytes.at)[0], 'a' + i);
        assert_int_equal(((const char *)bytes.at)[sizeof block - 1], 'a' + i);
        roost_request_free(kept[i]);
    }
    roost_worker_free(worker);
    net_close(&net);
}

TEST(memory_that_is_no_longer_needed_leaves_the_workers_too)
{
    net_open(&net, 1);
    net.links->regions.idle_max = 1;
    struct roost_worker *worker = worker_of(0);
    roost_call_free(call_with(&net, block, sizeof block, NULL, 0, 0));
    roost_request_free(next_of(worker));
    struct roost_call *call = call_all(&net, "small"); /* behind UNMAP, once that was sent */
    while (net.links->regions.count)
        links_pump(net.links);
    roost_request_free(next_of(worker));
    expect(call, ROOST_OUTCOME_ERROR, "the worker did not answer");
    call = call_all(&net, "after");
    struct roost_request *request = next_of(worker);
    assert_string_equal(roost_request_method(request), "echo");
    roost_request_free(request);
    roost_call_free(call);
    assert_int_equal(net.links->link[0].map_count, 0);
    roost_worker_free(worker);
    net_close(&net);
}

TEST(an_idle_link_keeps_next_to_nothing)
{
    enum { CALLS = 1000 };
    static struct roost_call *calls[CALLS];
    net_open(&net, 1);
    for (int i = 0; i < CALLS; i++)
        calls[i] = call_all(&net, "x");
    assert_true(net.links->link[0].slot_cap >= CALLS);
    for (int i = 0; i < CALLS; i++) {
        struct frame request = read_request(net.peer[0]);
        send_answer(net.peer[0], &request, "y");
        links_pump(net.links);
    }
    for (int i = 0; i < CALLS; i++)
        expect(calls[i], ROOST_OUTCOME_VALUE, "y");
    const struct link *link = &net.links->link[0];
    assert_true(!link->slots && !link->body && !link->out_first && sizeof *link < 512);
    net_close(&net);
}

TEST(answers_may_come_in_any_order)
{
    enum { CALLS = 200 };
    struct roost_call *calls[CALLS];
    struct frame requests[CALLS];
    char text[16];
    net_open(&net, 1);
    for (int i = 0; i < CALLS; i++)
        calls[i] = call_all(&net, "x");
    for (int i = 0; i < CALLS; i++)
        requests[i] = read_request(net.peer[0]);
    for (int i = 0; i < CALLS; i++) {
        int which = (i * 77 + 13) % CALLS;
        snprintf(text, sizeof text, "%d", which);
        send_answer(net.peer[0], &requests[which], text);
        links_pump(net.links);
    }
    for (int i = 0; i < CALLS; i++) {
        snprintf(text, sizeof text, "%d", i);
        expect(calls[i], ROOST_OUTCOME_VALUE, text);
    }
    net_close(&net);
}

RUN_TESTS(cmocka_unit_test(a_call_waits_for_room_and_gives_up_with_its_time),
          cmocka_unit_test(a_call_that_waits_for_room_can_be_given_up),
          cmocka_unit_test(a_call_goes_on_when_there_is_room_again),
          cmocka_unit_test(who_waits_for_room_hears_that_the_worker_has_ended),
          cmocka_unit_test(a_request_larger_than_the_cap_is_sent_when_nothing_else_waits),
          cmocka_unit_test(a_worker_that_never_stops_sending_keeps_nobody_from_being_heard),
          cmocka_unit_test(shared_memory_is_used_again_and_given_back),
          cmocka_unit_test(a_payload_stays_as_it_is_until_its_request_is_freed),
          cmocka_unit_test(the_memory_of_a_dead_worker_is_used_again),
          cmocka_unit_test(what_is_held_by_workers_has_a_limit_and_calls_go_on_without),
          cmocka_unit_test(memory_that_is_no_longer_needed_leaves_the_workers_too),
          cmocka_unit_test(an_idle_link_keeps_next_to_nothing),
          cmocka_unit_test(answers_may_come_in_any_order))
