/* worker_test.c - the worker's side: opening, taking requests, one answer to each, and a driver that goes. */
#include <roost/worker.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "rpc/timers.h"
#include "rpc/worker_internal.h"
#include "tests/rpc_unit.h"

static struct net net;

static void check_error(const char *row, const struct roost_error *err, enum roost_code code,
                        const char *says, const char *hint)
{
    CHECK_FACT(row, err->code == code);
    CHECK_SAYS(row, err->message, says);
    CHECK_SAYS(row, err->hint, hint);
}

/* A worker on one end; the driver's end is *out. */
static struct roost_worker *worker_open(int *out)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct roost_worker *worker = roost_worker_new(ends[1], 1, NULL);
    assert_non_null(worker);
    *out = ends[0];
    return worker;
}

TEST(a_socket_is_found_by_its_variable_and_not_inherited)
{
    int ends[2];
    char variable[64];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    snprintf(variable, sizeof variable, "ROOST_CALL_SOCKET=%d:12", ends[1]);
    const char *env[] = {"ROOST_CALL_SOCKETS=1:1", "PATH=/bin", variable, NULL};
    struct roost_worker *worker = roost_worker_open(env, NULL);
    assert_non_null(worker);
    assert_int_equal(roost_worker_fd(worker), ends[1]);
    assert_int_equal(fcntl(ends[1], F_GETFD), FD_CLOEXEC);
    assert_int_equal(roost_worker_ready(worker, NULL, 0, NULL), ROOST_OK);
    struct frame frame;
    read_all(ends[0], &frame, sizeof frame);
    assert_int_equal(frame.type, FRAME_READY);
    assert_int_equal(frame.life, 12);
    roost_worker_free(worker);
    close(ends[0]);
}

TEST(a_process_without_a_socket_is_told_so)
{
    static const char *const wrong[] = {
        "", "3", "3:", ":1", "x:1", "3:1x", "-3:1", "99999999999:1", "3:99999999999"};
    const char *env[] = {"PATH=/bin", NULL};
    struct roost_error err;
    assert_null(roost_worker_open(env, &err));
    check_error("none", &err, ROOST_ERR_ENGINE, "this process has no socket to a driver",
                "start it as a process of a group");
    assert_null(roost_worker_open(NULL, &err));
    for (size_t i = 0; i < ROWS(wrong); i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "ROOST_CALL_SOCKET=%s", wrong[i]);
        env[0] = variable;
        assert_null(roost_worker_open(env, &err));
        check_error(wrong[i], &err, ROOST_ERR_ENGINE, "ROOST_CALL_SOCKET does not name a socket: '",
                    "leave it as the driver set it: DESCRIPTOR:LIFE");
    }
    env[0] = "ROOST_CALL_SOCKET=999:1";
    assert_null(roost_worker_open(env, &err));
    check_error("closed", &err, ROOST_ERR_ENGINE, "descriptor 999 is not a socket to a driver",
                "do not close descriptors");
}

TEST(a_variable_that_outlived_its_socket_closes_nothing)
{
    struct roost_error err;
    char variable[64];
    const char *env[] = {variable, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(variable, sizeof variable, "ROOST_CALL_SOCKET=%d:1", null);
    assert_null(roost_worker_open(env, &err));
    check_error("null", &err, ROOST_ERR_ENGINE, "is not a socket to a driver", "do not close");
    assert_int_equal(fcntl(null, F_GETFD), FD_CLOEXEC);
    close(null);
}

TEST(a_descriptor_that_is_no_socket_is_refused)
{
    struct roost_error err;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_null(roost_worker_new(null, 1, &err));
    check_error("null", &err, ROOST_ERR_ENGINE, "is not a socket to a driver", "do not close");
    assert_int_equal(fcntl(null, F_GETFD), -1); /* taken all the same */
    assert_null(roost_worker_new(-1, 1, &err));
}

TEST(no_request_in_time_is_none_and_a_closed_socket_is_the_end)
{
    int driver;
    struct roost_worker *worker = worker_open(&driver);
    struct roost_request *request = (struct roost_request *)worker;
    assert_int_equal(roost_worker_next(worker, 0, &request, NULL), ROOST_OK);
    assert_null(request);
    assert_int_equal(roost_worker_next(worker, 5, &request, NULL), ROOST_OK);
    assert_false(roost_worker_is_over(worker));
    struct frame half = frame_of(FRAME_CALL, 1);
    write_all(driver, &half, sizeof half - 1);
    close(driver);
    assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
    assert_null(request);
    assert_true(roost_worker_is_over(worker));
    assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
    assert_null(request);
    struct roost_error err;
    assert_int_equal(roost_worker_ready(worker, NULL, 0, &err), ROOST_ERR_IO);
    check_error("gone", &err, ROOST_ERR_IO, "the driver has gone", "end this process");
    roost_worker_free(worker);
}

TEST(requests_that_came_before_the_end_are_still_there)
{
    int driver;
    struct roost_worker *worker = worker_open(&driver);
    struct roost_request *request;
    struct frame frames[2] = {frame_of(FRAME_CALL, 0), frame_of(FRAME_CALL, 1)};
    frames[1].call = 5;
    write_all(driver, frames, sizeof frames);
    close(driver);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
        assert_non_null(request);
        assert_int_equal(roost_request_id(request), 5 * i);
        assert_string_equal(roost_request_method(request), "");
        assert_int_equal(roost_request_payload(request).len, 0);
        roost_request_free(request);
    }
    assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
    assert_null(request);
    roost_worker_free(worker);
}

static struct frame broken(enum frame_type type, uint64_t len, uint32_t region)
{
    struct frame frame = frame_of(type, 1);
    frame.payload_len = len;
    frame.region = region;
    return frame;
}

TEST(what_is_not_a_request_is_the_end_of_a_worker)
{
    struct frame other_life = frame_of(FRAME_CALL, 2), nonsense = frame_of(FRAME_CALL, 1);
    nonsense.magic++;
    const struct {
        const char *name;
        struct frame frame;
    } rows[] = {
        {"nonsense", nonsense},
        {"another life", other_life},
        {"an answer", broken(FRAME_ANSWER, 0, 0)},
        {"a region that is not there", broken(FRAME_CALL, 1, 7)},
        {"a region without its descriptor", broken(FRAME_MAP, 4096, 7)},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int driver;
        struct roost_error err;
        struct roost_worker *worker = worker_open(&driver);
        struct roost_request *request = NULL;
        write_all(driver, &rows[i].frame, sizeof rows[i].frame);
        for (int again = 0; again < 2; again++) {
            enum roost_code code = roost_worker_next(worker, WATCHDOG_MS, &request, &err);
            CHECK_FACT(rows[i].name, code == ROOST_ERR_ENGINE && !request);
            check_error(rows[i].name, &err, ROOST_ERR_ENGINE,
                        "what the driver sent is not a request", "must be of the same roost");
        }
        roost_worker_free(worker);
        close(driver);
    }
}

static void send_with_fd(int socket, const struct frame *frame, int fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec part = {(void *)(uintptr_t)frame, sizeof *frame};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *item = CMSG_FIRSTHDR(&message);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(item), &fd, sizeof fd);
    assert_int_equal(sendmsg(socket, &message, MSG_NOSIGNAL), sizeof *frame);
}

TEST(memory_shorter_than_it_is_said_to_be_is_refused)
{
    int driver;
    struct roost_worker *worker = worker_open(&driver);
    struct roost_request *request;
    int memory = memfd_create("short", MFD_CLOEXEC);
    assert_int_equal(ftruncate(memory, 4096), 0);
    struct frame map = broken(FRAME_MAP, 4096, 1), call = broken(FRAME_CALL, 4096, 1);
    send_with_fd(driver, &map, memory);
    write_all(driver, &call, sizeof call);
    assert_int_equal(roost_worker_next(worker, WATCHDOG_MS, &request, NULL), ROOST_OK);
    assert_int_equal(roost_request_payload(request).len, 4096);
    roost_request_free(request);
    call.payload_len = 4097;
    write_all(driver, &call, sizeof call);
    assert_int_equal(roost_worker_next(worker, WATCHDOG_MS, &request, NULL), ROOST_ERR_ENGINE);
    roost_worker_free(worker);
    close(driver);
    worker = worker_open(&driver);
    map.payload_len = 8192;
    send_with_fd(driver, &map, memory);
    assert_int_equal(roost_worker_next(worker, WATCHDOG_MS, &request, NULL), ROOST_ERR_ENGINE);
    roost_worker_free(worker);
    close(driver);
    close(memory);
}

static struct roost_request *next_of(struct roost_worker *worker)
{
    struct roost_request *request = NULL;
    assert_int_equal(roost_worker_next(worker, WATCHDOG_MS, &request, NULL), ROOST_OK);
    assert_non_null(request);
    return request;
}

static struct roost_worker *worker_of(int32_t rank)
{
    struct roost_worker *worker = roost_worker_new(net.peer[rank], 1, NULL);
    net.peer[rank] = -1;
    assert_non_null(worker);
    return worker;
}

TEST(a_request_is_answered_once)
{
    struct roost_error err;
    struct roost_bytes bytes[] = {{"on", 2}, {"", 0}, {"ce", 2}};
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    struct roost_call *call = call_all(&net, "x");
    struct roost_request *request = next_of(worker);
    assert_string_equal(roost_request_method(request), "echo");
    assert_int_equal(roost_request_reply(request, bytes, 3, NULL), ROOST_OK);
    assert_int_equal(roost_request_fail(request, bytes, 1, &err), ROOST_ERR_USAGE);
    check_error("twice", &err, ROOST_ERR_USAGE, "the request was answered before",
                "answer each request once");
    roost_request_free(request);
    expect(call, ROOST_OUTCOME_VALUE, "once");
    assert_int_equal(links_counts(net.links).dropped_twice, 0);
    call = call_all(&net, "x");
    roost_request_free(next_of(worker));
    expect(call, ROOST_OUTCOME_ERROR, "the worker did not answer");
    roost_worker_free(worker);
    net_close(&net);
}

TEST(a_worker_says_once_whether_it_is_ready)
{
    struct roost_error err;
    struct roost_bytes bytes = {"no GPU", 6}, said;
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    assert_int_equal(roost_worker_refuse(worker, &bytes, 1, NULL), ROOST_OK);
    assert_int_equal(roost_worker_ready(worker, NULL, 0, &err), ROOST_ERR_USAGE);
    check_error("twice", &err, ROOST_ERR_USAGE, "the driver was told already whether",
                "call roost_worker_ready or roost_worker_refuse once");
    links_pump(net.links);
    assert_int_equal(links_state(net.links, 0, &said), LINK_REFUSED);
    assert_memory_equal(said.at, "no GPU", 6);
    roost_worker_free(worker);
    net_close(&net);
}

static void reply_number(struct roost_request *request, void *context)
{
    struct roost_bytes bytes = {context, 1};
    (void)!roost_request_reply(request, &bytes, 1, NULL);
    roost_request_free(request);
}

static void *serve_numbers(void *context)
{
    (void)!roost_worker_serve(context, NULL);
    roost_worker_free(context);
    return NULL;
}

TEST(handlers_are_found_by_name_and_may_be_replaced)
{
    static char digits[] = "0123456789";
    char name[16];
    pthread_t thread;
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "m%d", i / 2);
        assert_int_equal(
            roost_worker_on(worker, name, reply_number, &digits[i % 2 ? i / 10 : 0], NULL),
            ROOST_OK);
    }
    assert_int_equal(pthread_create(&thread, NULL, serve_numbers, worker), 0);
    for (int i = 0; i < 50; i += 7) {
        snprintf(name, sizeof name, "m%d", i);
        struct roost_call_options options = {.method = name};
        char expected[2] = {digits[(2 * i + 1) / 10], '\0'};
        expect(links_call(net.links, &options, NULL), ROOST_OUTCOME_VALUE, expected);
    }
    net_close(&net);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* --- answers from several threads --- */

enum { THREADS = 4, EACH = 100, LARGE = 100000 };

static void *answer_later(void *context)
{
    struct roost_request **requests = context;
    char *large = malloc(LARGE);
    for (int i = 0; i < EACH; i++) {
        memset(large, 'a' + i % 26, LARGE);
        struct roost_bytes bytes[] = {roost_request_payload(requests[i]), {large, LARGE}};
        assert_int_equal(roost_request_reply(requests[i], bytes, 2, NULL), ROOST_OK);
        roost_request_free(requests[i]);
    }
    free(large);
    return NULL;
}

TEST(answers_of_several_threads_stay_whole)
{
    static struct roost_call *calls[THREADS * EACH];
    static struct roost_request *requests[THREADS * EACH];
    pthread_t threads[THREADS];
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    for (int i = 0; i < THREADS * EACH; i++) {
        calls[i] = call_with(&net, &i, sizeof i, NULL, 0, 0);
        requests[i] = next_of(worker);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, answer_later, requests + EACH * i), 0);
    for (int i = 0; i < THREADS * EACH; i++) {
        assert_true(roost_call_wait(calls[i], WATCHDOG_MS));
        struct roost_outcome it = roost_call_outcome(calls[i], 0);
        assert_int_equal(it.bytes.len, sizeof i + LARGE);
        assert_memory_equal(it.bytes.at, &i, sizeof i);
        const char *large = (const char *)it.bytes.at + sizeof i;
        assert_true(large[0] == 'a' + i % EACH % 26 && memcmp(large, large + 1, LARGE - 1) == 0);
        roost_call_free(calls[i]);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    roost_worker_free(worker);
    net_close(&net);
}

/* --- waiting --- */

static volatile sig_atomic_t heard_count;

static void hear(int number)
{
    (void)number;
    heard_count++;
}

/* What a handler did while it looked would be forgotten in the sleep. A busy machine may keep the process
 * from looking at all, but not each time. */
TEST(looks_in_vain_come_back_before_the_wait_sleeps)
{
    int driver, tries = 0;
    struct roost_worker *worker = worker_open(&driver);
    struct roost_request *request = NULL;
    struct sigaction heard = {.sa_handler = hear};
    struct itimerval later = {.it_value.tv_usec = 20000, .it_interval.tv_usec = 20000};
    assert_int_equal(sigaction(SIGALRM, &heard, NULL), 0);
    do {
        assert_int_equal(setitimer(ITIMER_REAL, &later, NULL), 0);
        heard_count = 0;
        worker->spin.is_expected = true;
        assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
        assert_null(request);
    } while (heard_count && ++tries < 100);
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), 0);
    assert_true(tries < 100);
    close(driver);
    roost_worker_free(worker);
}

TEST(a_signal_ends_a_wait_whether_it_looks_or_sleeps)
{
    int driver;
    struct roost_worker *worker = worker_open(&driver);
    struct roost_request *request = NULL;
    struct sigaction heard = {.sa_handler = hear};
    assert_int_equal(sigaction(SIGALRM, &heard, NULL), 0);
    /* Again and again: one may come while it does neither. */
    struct itimerval often = {.it_value.tv_usec = 2000, .it_interval.tv_usec = 2000};
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int turn = 0; turn < 4; turn++) {
        if (turn == 2) /* a socket that never blocks */
            assert_int_equal(fcntl(roost_worker_fd(worker), F_SETFL, O_NONBLOCK), 0);
        worker->spin.is_expected = turn % 2; /* sleeps at once, or looks first */
        assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
        assert_null(request);
        assert_false(roost_worker_is_over(worker));
    }
    assert_int_equal(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL), 0);
    close(driver);
    roost_worker_free(worker);
}

static void *close_later(void *context)
{
    struct rusage before, after;
    int64_t start = timers_now();
    getrusage(RUSAGE_SELF, &before);
    while (timers_now() - start < 300 * INT64_C(1000000))
        (void)poll(NULL, 0, 50);
    getrusage(RUSAGE_SELF, &after);
    int64_t burned = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * INT64_C(1000000) +
                     (after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                     (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * INT64_C(1000000) +
                     (after.ru_stime.tv_usec - before.ru_stime.tv_usec);
    close(*(int *)context);
    return burned < 100000 ? context : NULL;
}

TEST(a_worker_that_nobody_asks_sleeps_whatever_its_socket_is)
{
    for (int flags = 0; flags <= O_NONBLOCK; flags += O_NONBLOCK) {
        int driver;
        pthread_t closer;
        void *has_slept;
        struct roost_worker *worker = worker_open(&driver);
        struct roost_request *request = NULL;
        assert_int_equal(fcntl(roost_worker_fd(worker), F_SETFL, flags), 0);
        worker->spin.is_expected = true;
        assert_int_equal(pthread_create(&closer, NULL, close_later, &driver), 0);
        while (!roost_worker_is_over(worker))
            assert_int_equal(roost_worker_next(worker, -1, &request, NULL), ROOST_OK);
        assert_int_equal(pthread_join(closer, &has_slept), 0);
        assert_non_null(has_slept);
        roost_worker_free(worker);
    }
}

TEST(an_answer_that_is_too_large_is_refused_and_another_one_is_not)
{
    struct roost_error err;
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    struct roost_call *call = call_rank(&net, 0, "x");
    struct roost_request *request = next_of(worker);
    struct roost_bytes parts[] = {{"y", 1}, {"y", (size_t)FRAME_ANSWER_MAX}}; /* never read */
    assert_int_equal(roost_request_reply(request, parts, 2, &err), ROOST_ERR_LIMIT);
    check_error("large", &err, ROOST_ERR_LIMIT,
                "an answer of 4294967296 bytes is too large: at most 4294967295",
                "answer in several calls");
    assert_int_equal(roost_request_fail(request, parts, 1, NULL), ROOST_OK);
    roost_request_free(request);
    expect(call, ROOST_OUTCOME_ERROR, "y");
    roost_worker_free(worker);
    net_close(&net);
}

TEST(a_process_that_the_worker_forks_tells_the_driver_nothing)
{
    net_open(&net, 1);
    struct roost_worker *worker = worker_of(0);
    struct roost_call *call = call_rank(&net, 0, "x");
    struct roost_request *request = next_of(worker);
    struct roost_bytes bytes = {"mine", 4};
    assert_false(roost_worker_is_forked(worker));
    pid_t child = fork();
    if (child == 0) {
        struct roost_error err;
        struct roost_request *next = NULL;
        bool is_mute = roost_worker_is_forked(worker) &&
                       roost_worker_ready(worker, NULL, 0, NULL) == ROOST_ERR_USAGE &&
                       roost_request_reply(request, &bytes, 1, &err) == ROOST_ERR_USAGE &&
                       strstr(err.message, "was forked from the worker") &&
                       strstr(err.hint, "_exit()") &&
                       roost_worker_next(worker, -1, &next, NULL) == ROOST_ERR_USAGE && !next;
        roost_request_free(request);
        _exit(is_mute ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(roost_request_reply(request, &bytes, 1, NULL), ROOST_OK);
    roost_request_free(request);
    expect(call, ROOST_OUTCOME_VALUE, "mine");
    assert_int_equal(links_counts(net.links).answers, 1);
    roost_worker_free(worker);
    net_close(&net);
}

RUN_TESTS(cmocka_unit_test(a_process_that_the_worker_forks_tells_the_driver_nothing),
          cmocka_unit_test(looks_in_vain_come_back_before_the_wait_sleeps),
          cmocka_unit_test(a_signal_ends_a_wait_whether_it_looks_or_sleeps),
          cmocka_unit_test(a_worker_that_nobody_asks_sleeps_whatever_its_socket_is),
          cmocka_unit_test(an_answer_that_is_too_large_is_refused_and_another_one_is_not),
          cmocka_unit_test(a_socket_is_found_by_its_variable_and_not_inherited),
          cmocka_unit_test(a_process_without_a_socket_is_told_so),
          cmocka_unit_test(a_variable_that_outlived_its_socket_closes_nothing),
          cmocka_unit_test(a_descriptor_that_is_no_socket_is_refused),
          cmocka_unit_test(no_request_in_time_is_none_and_a_closed_socket_is_the_end),
          cmocka_unit_test(requests_that_came_before_the_end_are_still_there),
          cmocka_unit_test(what_is_not_a_request_is_the_end_of_a_worker),
          cmocka_unit_test(memory_shorter_than_it_is_said_to_be_is_refused),
          cmocka_unit_test(a_request_is_answered_once),
          cmocka_unit_test(a_worker_says_once_whether_it_is_ready),
          cmocka_unit_test(handlers_are_found_by_name_and_may_be_replaced),
          cmocka_unit_test(answers_of_several_threads_stay_whole))
