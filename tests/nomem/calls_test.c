/* calls_test.c - calls when there is no memory.
 *
 * A driver and two workers in one thread do all kinds of calls, once to count allocations, then again for
 * each of them: once with only that one failing, once with all from there on. Every call that was made has
 * one outcome of each rank in the end, nothing is left open, and (under ASan) nothing leaks. */
#include "rpc/call_reader.h"
#include "rpc/links_internal.h"
#include "tests/nomem/heap.h"
#include "tests/rpc_unit.h"

/* --- the scenario --- */

enum { RANKS = 2, CALLS = 6, HUGE = 700 * 1024, PIECES = 50 };

static char block[HUGE];
static const struct step {
    size_t len, pieces;
    bool is_early; /* made before there is a worker */
} steps[CALLS] = {
    {5, 1, true},     {HUGE, 1, true},      {100, 1, false},
    {HUGE, 1, false}, {500, PIECES, false}, {60000, 1, false}, /* shared, or copied to both */
};

struct actors {
    struct links *links;
    struct roost_call_reader *reader;
    struct roost_worker *workers[RANKS];
    struct roost_call *calls[CALLS];
    size_t values, lost; /* outcomes */
};

static void make_call(struct actors *it, int which)
{
    struct roost_bytes pieces[PIECES];
    struct roost_error err = {0};
    size_t count = steps[which].pieces;
    for (size_t i = 0; i < count; i++)
        pieces[i] = (struct roost_bytes){block, steps[which].len / count};
    struct roost_call_options options = {
        .method = "m", .bytes = pieces, .byte_count = count, .timeout_ms = WATCHDOG_MS};
    it->calls[which] = links_call(it->links, &options, &err);
    if (!it->calls[which])
        assert_int_equal(err.code, ROOST_ERR_MEMORY);
}

/* Every worker answers what has come, with as much. */
static void work(struct actors *it)
{
    for (int turn = 0; turn < 40; turn++) {
        links_pump(it->links);
        for (int i = 0; i < RANKS; i++) {
            struct roost_request *request = NULL;
            while (it->workers[i] &&
                   roost_worker_next(it->workers[i], 0, &request, NULL) == ROOST_OK && request) {
                struct roost_bytes bytes = roost_request_payload(request);
                bytes.len = bytes.len < 50000 ? bytes.len : 50000;
                (void)!roost_request_reply(request, &bytes, 1, NULL);
                roost_request_free(request);
                links_pump(it->links);
            }
        }
    }
}

static void add_worker(struct actors *it, int32_t rank)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    if (!links_add(it->links, rank, 1, 1, ends[0])) {
        close(ends[1]);
        return;
    }
    it->workers[rank] = roost_worker_new(ends[1], 1, NULL);
    if (it->workers[rank] && roost_worker_on(it->workers[rank], "m", echo, NULL, NULL) == ROOST_OK)
        (void)!roost_worker_ready(it->workers[rank], NULL, 0, NULL);
}

static void look_at(struct actors *it)
{
    for (int i = 0; i < CALLS; i++) {
        if (!it->calls[i])
            continue;
        assert_true(roost_call_is_done(it->calls[i]));
        for (size_t k = 0; k < RANKS; k++) {
            struct roost_outcome outcome = roost_call_outcome(it->calls[i], k);
            assert_true(outcome.kind != ROOST_OUTCOME_PENDING);
            it->values += outcome.kind == ROOST_OUTCOME_VALUE;
            bool is_lost =
                outcome.kind == ROOST_OUTCOME_UNKNOWN || outcome.kind == ROOST_OUTCOME_NOT_RUN;
            assert_true(is_lost == (outcome.why[0] != '\0'));
            it->lost += is_lost;
        }
    }
}

static struct actors run(size_t fails_at, bool fails_on)
{
    struct actors it = {0};
    heap.calls = 0;
    heap.fails_at = fails_at;
    heap.fails_on = fails_on;
    heap.is_on = true;
    struct links_options options = {.rank_count = RANKS, .other_fd = -1, .close_grace_ms = -1};
    it.links = links_new(&options);
    it.reader = roost_call_reader_new();
    if (it.links && it.reader && reader_add(it.reader, it.links))
        assert_true(roost_call_reader_has_groups(it.reader));
    for (int i = 0; it.links && i < CALLS; i++) {
        if (i > 0 && steps[i - 1].is_early && !steps[i].is_early)
            for (int32_t rank = 0; rank < RANKS; rank++)
                add_worker(&it, rank);
        /* From here on large payloads go by the sockets. */
        if (i == 3)
            it.links->regions.bytes_max = 1;
        make_call(&it, i);
        if (!steps[i].is_early)
            work(&it);
    }
    for (int32_t rank = 0; it.links && rank < RANKS; rank++)
        links_end(it.links, rank, 1, "the end");
    if (it.links)
        look_at(&it);
    for (int i = 0; i < CALLS; i++)
        roost_call_free(it.calls[i]);
    for (int i = 0; i < RANKS; i++)
        roost_worker_free(it.workers[i]);
    roost_call_reader_free(it.reader);
    links_free(it.links);
    heap.is_on = false;
    return it;
}

static int next_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

TEST(any_allocation_may_fail_while_workers_are_called)
{
    int before = next_fd();
    struct actors usual = run(0, false);
    size_t count = heap.calls;
    assert_int_equal(usual.values, CALLS * RANKS);
    assert_true(count > 30);
    for (size_t n = 1; n <= count; n++)
        for (int fails_on = 0; fails_on < 2; fails_on++) {
            struct actors got = run(n, fails_on);
            assert_true(got.values <= usual.values);
            assert_int_equal(next_fd(), before);
        }
}

RUN_TESTS(cmocka_unit_test(any_allocation_may_fail_while_workers_are_called))
