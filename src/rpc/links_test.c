/* links_test.c - one outcome for each rank and call, whatever workers do. */
#include "rpc/links.h"

#include "tests/rpc_unit.h"

static struct net net;

/* --- the usual way --- */

TEST(a_call_gets_an_outcome_from_each_rank_in_the_order_asked)
{
    static const int32_t some[] = {2, 0};
    struct server servers[3];
    net_open(&net, 3);
    for (int32_t rank = 0; rank < 3; rank++)
        server_start(&servers[rank], &net, rank, 1);
    struct roost_call *call = call_all(&net, "hello");
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    assert_int_equal(roost_call_count(call), 3);
    for (size_t i = 0; i < 3; i++) {
        check_outcome(call, i, ROOST_OUTCOME_VALUE, "hello");
        assert_int_equal(roost_call_outcome(call, i).rank, (int32_t)i);
    }
    roost_call_free(call);
    call = call_with(&net, "x", 1, some, 2, 0);
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    assert_int_equal(roost_call_outcome(call, 0).rank, 2);
    assert_int_equal(roost_call_outcome(call, 1).rank, 0);
    roost_call_free(call);
    assert_int_equal(links_counts(net.links).answers, 5);
    net_close(&net);
    for (int32_t rank = 0; rank < 3; rank++)
        server_join(&servers[rank]);
}

static struct roost_call *call_method(const char *method)
{
    struct roost_call_options options = {.method = method};
    struct roost_call *call = links_call(net.links, &options, NULL);
    assert_non_null(call);
    return call;
}

TEST(a_worker_answers_with_its_own_errors)
{
    struct server server;
    net_open(&net, 1);
    server_start(&server, &net, 0, 1);
    expect(call_method("complain"), ROOST_OUTCOME_ERROR, "it hurts");
    expect(call_method("nothing"), ROOST_OUTCOME_ERROR,
           "this worker has no method 'nothing'; it has 'echo', 'complain'");
    net_close(&net);
    server_join(&server);
}

TEST(nothing_can_be_sent_and_answered)
{
    struct server server;
    net_open(&net, 1);
    server_start(&server, &net, 0, 1);
    expect(call_all(&net, ""), ROOST_OUTCOME_VALUE, "");
    net_close(&net);
    server_join(&server);
    net_open(&net, 0);
    struct roost_call *call = call_all(&net, "nobody");
    assert_true(roost_call_is_done(call));
    assert_int_equal(roost_call_count(call), 0);
    roost_call_free(call);
    net_close(&net);
}

TEST(payloads_of_every_size_come_back_as_they_were)
{
    static const size_t sizes[] = {1,     63,     4096,   16383,   16384,   65535,
                                   65536, 131071, 131072, 1000000, 5 << 20, (32 << 20) + 1};
    enum { RANKS = 3 };
    struct server servers[RANKS];
    net_open(&net, RANKS);
    for (int32_t rank = 0; rank < RANKS; rank++)
        server_start(&servers[rank], &net, rank, 1);
    for (size_t i = 0; i < ROWS(sizes); i++) {
        char *bytes = malloc(sizes[i]);
        assert_non_null(bytes);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 2654435761U >> 13);
        for (size_t ranks = 1; ranks <= RANKS; ranks += 2) {
            static const int32_t order[RANKS] = {2, 0, 1};
            struct roost_call *call = call_with(&net, bytes, sizes[i], order, ranks, 0);
            assert_true(roost_call_wait(call, WATCHDOG_MS));
            for (size_t k = 0; k < ranks; k++) {
                struct roost_outcome it = roost_call_outcome(call, k);
                assert_int_equal(it.kind, ROOST_OUTCOME_VALUE);
                assert_int_equal(it.bytes.len, sizes[i]);
                assert_true(memcmp(it.bytes.at, bytes, sizes[i]) == 0);
            }
            roost_call_free(call);
        }
        free(bytes);
    }
    net_close(&net);
    for (int32_t rank = 0; rank < RANKS; rank++)
        server_join(&servers[rank]);
}

TEST(payloads_in_many_pieces_arrive_as_one)
{
    enum { PIECES = 1000 };
    struct roost_bytes pieces[PIECES];
    char whole[3 * PIECES + 1] = "";
    struct server server;
    net_open(&net, 1);
    server_start(&server, &net, 0, 1);
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = (struct roost_bytes){"abc", (size_t)(i % 4)};
        snprintf(whole + strlen(whole), 4, "%.*s", i % 4, "abc");
    }
    struct roost_call_options options = {.method = "echo", .bytes = pieces, .byte_count = PIECES};
    expect(links_call(net.links, &options, NULL), ROOST_OUTCOME_VALUE, whole);
    net_close(&net);
    server_join(&server);
}

TEST(what_a_worker_says_when_it_is_ready_can_be_read)
{
    struct roost_bytes said;
    net_open(&net, 2);
    assert_int_equal(links_state(net.links, 0, &said), LINK_STARTING);
    assert_int_equal(said.len, 0);
    struct frame ready = frame_of(FRAME_READY, 1), refused = frame_of(FRAME_REFUSED, 1);
    ready.payload_len = 2;
    write_all(net.peer[0], &ready, sizeof ready);
    write_all(net.peer[0], "ok", 2);
    write_all(net.peer[1], &refused, sizeof refused);
    links_pump(net.links);
    assert_int_equal(links_state(net.links, 0, &said), LINK_READY);
    assert_int_equal(said.len, 2);
    assert_memory_equal(said.at, "ok", 2);
    assert_int_equal(links_state(net.links, 1, NULL), LINK_REFUSED);
    net_close(&net);
}

TEST(calls_that_make_no_sense_are_refused_with_a_cure)
{
    static const int32_t twice[] = {0, 1, 0}, none[] = {2}, negative[] = {-1};
    char name[FRAME_METHOD_MAX + 2];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const struct {
        struct roost_call_options options;
        enum roost_code code;
        const char *says, *hint;
    } rows[] = {
        {{.method = NULL}, ROOST_ERR_USAGE, "a call needs the name of a method", "name a method"},
        {{.method = name}, ROOST_ERR_USAGE, "more than 1024 bytes", "goes into the payload"},
        {{.method = "m", .ranks = twice, .rank_count = 3},
         ROOST_ERR_USAGE,
         "rank 0 is named twice in one call",
         "name each rank once"},
        {{.method = "m", .ranks = none, .rank_count = 1},
         ROOST_ERR_FIT,
         "rank 2 cannot be called: it is not there",
         "the group has 2 ranks"},
        {{.method = "m", .ranks = negative, .rank_count = 1},
         ROOST_ERR_FIT,
         "rank -1 cannot be called",
         "counted from 0"},
    };
    net_open(&net, 2);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_error err;
        assert_null(links_call(net.links, &rows[i].options, &err));
        assert_int_equal(err.code, rows[i].code);
        CHECK_SAYS("message", err.message, rows[i].says);
        CHECK_SAYS("hint", err.hint, rows[i].hint);
    }
    net_close(&net);
}

/* --- lives --- */

TEST(calls_made_before_a_life_began_go_to_it)
{
    struct server servers[2];
    char *large = calloc(1, 300000);
    net_open_with(&net, (struct links_options){.rank_count = 2, .close_grace_ms = -1}, false);
    struct roost_call *small = call_all(&net, "early"), *shared;
    shared = call_with(&net, large, 300000, NULL, 0, 0);
    assert_false(roost_call_is_done(small));
    for (int32_t rank = 0; rank < 2; rank++) {
        net_join(&net, rank, 1);
        server_start(&servers[rank], &net, rank, 1);
    }
    assert_true(roost_call_wait(shared, WATCHDOG_MS));
    assert_int_equal(roost_call_outcome(shared, 1).bytes.len, 300000);
    assert_true(roost_call_wait(small, 0)); /* it was sent first */
    check_outcome(small, 1, ROOST_OUTCOME_VALUE, "early");
    roost_call_free(small);
    roost_call_free(shared);
    free(large);
    net_close(&net);
    for (int32_t rank = 0; rank < 2; rank++)
        server_join(&servers[rank]);
}

TEST(a_call_that_finds_the_socket_closed_is_not_run)
{
    struct links_options patient = {.rank_count = 1};
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 0)
            net_open(&net, 1); /* cut at once */
        else
            net_open_with(&net, patient, true); /* waits for the word of its end */
        close(net.peer[0]);
        net.peer[0] = -1;
        struct roost_call *call = call_rank(&net, 0, "x");
        links_end(net.links, 0, 1, "killed by signal 9");
        expect(call, ROOST_OUTCOME_NOT_RUN, turn ? "killed by signal 9" : "it closed its socket");
        net_close(&net);
    }
}

TEST(calls_in_flight_are_unknown_when_a_life_ends_and_later_ones_are_not_run)
{
    struct server server;
    net_open(&net, 2);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[1]);
    send_answer(net.peer[1], &request, "y");
    links_end(net.links, 0, 1, "killed by signal 9");
    assert_int_equal(links_state(net.links, 0, NULL), LINK_ENDED);
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    check_outcome(call, 0, ROOST_OUTCOME_UNKNOWN, "killed by signal 9");
    check_outcome(call, 1, ROOST_OUTCOME_VALUE, "y");
    roost_call_free(call);
    expect(call_rank(&net, 0, "x"), ROOST_OUTCOME_NOT_RUN, "killed by signal 9");
    /* The next life serves again. */
    close(net.peer[0]);
    net_join(&net, 0, 2);
    server_start(&server, &net, 0, 2);
    expect(call_rank(&net, 0, "again"), ROOST_OUTCOME_VALUE, "again");
    links_end(net.links, 0, 1, "old news");
    expect(call_rank(&net, 0, "still"), ROOST_OUTCOME_VALUE, "still");
    assert_int_equal(net.cuts, 0);
    net_close(&net);
    server_join(&server);
}

TEST(what_was_answered_before_the_end_counts)
{
    net_open(&net, 1);
    struct roost_call *first = call_all(&net, "1"), *second = call_all(&net, "2");
    struct frame request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "one");
    close(net.peer[0]);
    net.peer[0] = -1;
    links_end(net.links, 0, 1, "exit code 3");
    assert_true(roost_call_is_done(first) && roost_call_is_done(second));
    check_outcome(first, 0, ROOST_OUTCOME_VALUE, "one");
    check_outcome(second, 0, ROOST_OUTCOME_UNKNOWN, "exit code 3");
    roost_call_free(first);
    roost_call_free(second);
    net_close(&net);
}

TEST(a_life_that_never_begins_leaves_its_calls_unknown)
{
    net_open_with(&net, (struct links_options){.rank_count = 1}, false);
    struct roost_call *call = call_all(&net, "x");
    links_end(net.links, 0, 1, "could not be started");
    expect(call, ROOST_OUTCOME_UNKNOWN, "could not be started");
    net_close(&net);
}

TEST(answers_of_an_older_life_are_dropped_and_of_a_later_one_are_a_fault)
{
    net_open_with(&net, (struct links_options){.rank_count = 1}, false);
    net_join(&net, 0, 5);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[0]);
    struct frame old = answer_to(&request, 3);
    old.life = 4;
    write_all(net.peer[0], &old, sizeof old);
    write_all(net.peer[0], "old", 3);
    send_answer(net.peer[0], &request, "new");
    expect(call, ROOST_OUTCOME_VALUE, "new");
    assert_int_equal(links_counts(net.links).dropped_late, 1);
    struct frame next = frame_of(FRAME_READY, 6);
    write_all(net.peer[0], &next, sizeof next);
    links_pump(net.links);
    assert_int_equal(net.cuts, 1);
    CHECK_SAYS("cut", net.cut_why, "a life that has not begun");
    net_close(&net);
}

TEST(a_life_is_begun_once)
{
    int ends[2];
    net_open(&net, 1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_false(links_add(net.links, 0, 1, 1, ends[0]));
    assert_int_equal(fcntl(ends[0], F_GETFD), -1); /* taken all the same */
    close(ends[1]);
    net_close(&net);
}

TEST(thousands_of_ranks_are_called_at_once)
{
    enum { RANKS = 5000 };
    struct links_options options = {.rank_count = RANKS, .other_fd = -1};
    struct links *links = links_new(&options);
    assert_non_null(links);
    struct roost_call_options all = {.method = "m"};
    struct roost_call *call = links_call(links, &all, NULL);
    assert_non_null(call);
    assert_int_equal(roost_call_count(call), RANKS);
    for (int32_t rank = RANKS - 1; rank >= 0; rank--) {
        assert_false(roost_call_is_done(call));
        links_end(links, rank, 1, "never began");
    }
    assert_true(roost_call_is_done(call));
    for (size_t i = 0; i < RANKS; i++)
        check_outcome(call, i, ROOST_OUTCOME_UNKNOWN, "never began");
    roost_call_free(call);
    links_free(links);
}

/* --- answers that come twice, late, or unasked --- */

TEST(second_answers_are_dropped_and_counted)
{
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "first");
    send_answer(net.peer[0], &request, "second");
    expect(call, ROOST_OUTCOME_VALUE, "first");
    call = call_all(&net, "y");
    request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "third");
    expect(call, ROOST_OUTCOME_VALUE, "third");
    assert_int_equal(links_counts(net.links).dropped_twice, 1);
    assert_int_equal(net.cuts, 0);
    net_close(&net);
}

TEST(answers_to_calls_that_were_freed_or_too_slow_are_late)
{
    net_open(&net, 1);
    roost_call_free(call_all(&net, "x"));
    struct frame request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "late");
    struct roost_call *call = call_with(&net, "y", 1, NULL, 0, 1);
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    check_outcome(call, 0, ROOST_OUTCOME_UNKNOWN, "no answer within 1 ms");
    request = read_request(net.peer[0]);
    send_answer(net.peer[0], &request, "too late");
    links_pump(net.links);
    check_outcome(call, 0, ROOST_OUTCOME_UNKNOWN, "no answer within 1 ms");
    roost_call_free(call);
    assert_int_equal(links_counts(net.links).dropped_late, 2);
    assert_int_equal(links_counts(net.links).answers, 0);
    net_close(&net);
}

/* What one wicked worker sends; the other one must not notice. */
static void check_cut(const char *name, const void *bytes, size_t len, const char *why)
{
    struct server good;
    net_open(&net, 2);
    server_start(&good, &net, 1, 1);
    struct roost_call *call = call_rank(&net, 0, "x");
    write_all(net.peer[0], bytes, len);
    assert_true(roost_call_wait(call, WATCHDOG_MS));
    CHECK_FACT(name, roost_call_outcome(call, 0).kind == ROOST_OUTCOME_UNKNOWN);
    CHECK_SAYS(name, roost_call_outcome(call, 0).why, why);
    roost_call_free(call);
    CHECK_FACT(name, net.cuts == 1 && net.cut_rank == 0);
    CHECK_SAYS(name, net.cut_why, why);
    expect(call_rank(&net, 0, "x"), ROOST_OUTCOME_NOT_RUN, why);
    expect(call_rank(&net, 1, "fine"), ROOST_OUTCOME_VALUE, "fine");
    assert_int_equal(links_counts(net.links).cut, 1);
    net_close(&net);
    server_join(&good);
}

TEST(a_worker_that_sends_nonsense_is_cut_and_no_other)
{
    struct frame frame = frame_of(FRAME_ANSWER, 1);
    check_cut("a letter", "x", 1, "not a frame");
    check_cut("http", "GET / HTTP/1.1\r\n\r\n", 18, "not a frame");
    frame.call = 77;
    check_cut("not asked", &frame, sizeof frame, "a call that it was not asked");
    frame.call = (uint64_t)9 << 24;
    check_cut("not asked yet", &frame, sizeof frame, "a call that it was not asked");
    frame.call = (uint64_t)1 << 24;
    frame.payload_len = (uint64_t)1 << 32;
    check_cut("4 GiB", &frame, sizeof frame, "larger than allowed");
    frame.payload_len = UINT64_MAX;
    check_cut("all ones", &frame, sizeof frame, "larger than allowed");
    frame = frame_of(FRAME_CALL, 1);
    check_cut("a request", &frame, sizeof frame, "not its to send");
    frame = frame_of(FRAME_RELEASE, 1);
    frame.region = 1;
    check_cut("memory", &frame, sizeof frame, "memory that it was not given");
    struct frame twice[2] = {frame_of(FRAME_READY, 1), frame_of(FRAME_READY, 1)};
    check_cut("ready", twice, sizeof twice, "twice whether it is ready");
}

TEST(a_promise_of_4_gib_costs_nothing_before_its_bytes_come)
{
    net_open(&net, 2);
    struct roost_call *call = call_rank(&net, 0, "x");
    struct frame request = read_request(net.peer[0]);
    struct frame frame = answer_to(&request, UINT32_MAX);
    write_all(net.peer[0], &frame, sizeof frame);
    write_all(net.peer[0], "some", 4);
    links_pump(net.links);
    assert_false(roost_call_is_done(call));
    close(net.peer[0]);
    net.peer[0] = -1;
    expect(call, ROOST_OUTCOME_UNKNOWN, "it closed its socket");
    net_close(&net);
}

TEST(an_answer_may_come_in_single_bytes)
{
    net_open(&net, 1);
    struct roost_call *call = call_all(&net, "x");
    struct frame request = read_request(net.peer[0]);
    struct frame frame = answer_to(&request, 5);
    char bytes[sizeof frame + 5];
    memcpy(bytes, &frame, sizeof frame);
    memcpy(bytes + sizeof frame, "bytes", 5);
    for (size_t i = 0; i < sizeof bytes; i++) {
        assert_false(roost_call_is_done(call));
        write_all(net.peer[0], bytes + i, 1);
        links_pump(net.links);
    }
    expect(call, ROOST_OUTCOME_VALUE, "bytes");
    net_close(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_gets_an_outcome_from_each_rank_in_the_order_asked),
        cmocka_unit_test(a_worker_answers_with_its_own_errors),
        cmocka_unit_test(nothing_can_be_sent_and_answered),
        cmocka_unit_test(payloads_of_every_size_come_back_as_they_were),
        cmocka_unit_test(payloads_in_many_pieces_arrive_as_one),
        cmocka_unit_test(what_a_worker_says_when_it_is_ready_can_be_read),
        cmocka_unit_test(calls_that_make_no_sense_are_refused_with_a_cure),
        cmocka_unit_test(calls_made_before_a_life_began_go_to_it),
        cmocka_unit_test(a_call_that_finds_the_socket_closed_is_not_run),
        cmocka_unit_test(calls_in_flight_are_unknown_when_a_life_ends_and_later_ones_are_not_run),
        cmocka_unit_test(what_was_answered_before_the_end_counts),
        cmocka_unit_test(a_life_that_never_begins_leaves_its_calls_unknown),
        cmocka_unit_test(answers_of_an_older_life_are_dropped_and_of_a_later_one_are_a_fault),
        cmocka_unit_test(a_life_is_begun_once),
        cmocka_unit_test(thousands_of_ranks_are_called_at_once),
        cmocka_unit_test(second_answers_are_dropped_and_counted),
        cmocka_unit_test(answers_to_calls_that_were_freed_or_too_slow_are_late),
        cmocka_unit_test(a_worker_that_sends_nonsense_is_cut_and_no_other),
        cmocka_unit_test(a_promise_of_4_gib_costs_nothing_before_its_bytes_come),
        cmocka_unit_test(an_answer_may_come_in_single_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
