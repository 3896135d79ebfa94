/* calls_stress_test.c - many calls of several threads while workers are killed and begin again.
 *
 * Workers are processes that count in shared memory what they ran. The books must agree: a value was run
 * once by that rank, a call that was not run was run by nobody, and nothing was run twice. ROOST_SOAK=1
 * in the environment makes it ten times as long. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/rpc_unit.h"

enum { RANKS = 8, THREADS = 4, SIZE_MAX_SENT = 300 * 1024 };

static struct {
    struct links *links;
    int calls, kills; /* in all */
    atomic_int made, done_threads;
    atomic_uchar *ran; /* [calls][RANKS], shared with the workers */
    atomic_int outcomes[ROOST_OUTCOME_NOT_RUN + 1];
    struct life *lives; /* [RANKS + kills], in the order they are needed */
    struct life *of_rank[RANKS];
} it;

/* A life of a worker. All are forked before the first thread begins, when nobody can hold a lock of the
 * allocator, and wait for their first request. */
struct life {
    int32_t rank, life;
    pid_t pid;
    int fd;
};

/* --- a worker --- */

struct request_head {
    int32_t call;
    uint32_t size;
};

static int32_t own_rank;

static void run_it(struct roost_request *request, void *context)
{
    struct roost_bytes bytes = roost_request_payload(request);
    struct request_head head;
    (void)context;
    memcpy(&head, bytes.at, sizeof head);
    atomic_fetch_add(&it.ran[head.call * RANKS + own_rank], 1);
    bool is_whole = bytes.len == head.size && ((const char *)bytes.at)[bytes.len - 1] == 'e';
    struct roost_bytes answer[] = {{&head, sizeof head}, {bytes.at, head.call % 3 ? 0 : bytes.len}};
    if (is_whole)
        (void)!roost_request_reply(request, answer, 2, NULL);
    roost_request_free(request);
}

static void serve_calls(int fd, int32_t rank, int32_t life)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* Ends of others' sockets would keep those open. */
    (void)close_range(3, (unsigned)fd - 1, 0);
    (void)close_range((unsigned)fd + 1, ~0U, 0);
    own_rank = rank;
    struct roost_worker *worker = roost_worker_new(fd, life, NULL);
    if (worker && roost_worker_on(worker, "run", run_it, NULL, NULL) == ROOST_OK)
        (void)!roost_worker_serve(worker, NULL);
    _exit(0);
}

static void fork_worker(struct life *start, int32_t rank, int32_t life)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *start = (struct life){.rank = rank, .life = life, .pid = fork(), .fd = ends[0]};
    assert_true(start->pid >= 0);
    if (start->pid == 0)
        serve_calls(ends[1], rank, life);
    close(ends[1]);
}

static uint32_t next_random(uint32_t *state)
{
    return (*state = *state * 1664525 + 1013904223) >> 8;
}

/* One life of each rank, and one more for each kill. */
static void fork_workers(void)
{
    uint32_t random = 42;
    int32_t lives[RANKS] = {0};
    for (int32_t i = 0; i < RANKS + it.kills; i++) {
        int32_t rank = i < RANKS ? i : (int32_t)(next_random(&random) % RANKS);
        fork_worker(&it.lives[i], rank, ++lives[rank]);
    }
}

static void begin_worker(struct life *start)
{
    it.of_rank[start->rank] = start;
    assert_true(links_add(it.links, start->rank, start->life, start->pid, start->fd));
}

static void end_worker(const struct life *start)
{
    int status;
    assert_int_equal(kill(start->pid, SIGKILL), 0);
    assert_int_equal(waitpid(start->pid, &status, 0), start->pid);
    links_end(it.links, start->rank, start->life, "killed");
}

/* --- who calls --- */

static size_t choose_size(uint32_t random)
{
    return random % 100 == 0  ? SIZE_MAX_SENT - random % 1000
           : random % 100 < 5 ? 40000 + random % 1000
                              : sizeof(struct request_head) + 1 + random % 200;
}

static bool is_right(const struct roost_outcome *outcome, int32_t number, uint32_t size)
{
    int ran = atomic_load(&it.ran[number * RANKS + outcome->rank]);
    const struct request_head *head = outcome->bytes.at;
    size_t len = sizeof *head + (number % 3 ? 0 : size);
    switch (outcome->kind) {
    case ROOST_OUTCOME_VALUE: return ran == 1 && outcome->bytes.len == len && head->call == number;
    case ROOST_OUTCOME_UNKNOWN: return ran <= 1 && strcmp(outcome->why, "killed") == 0;
    case ROOST_OUTCOME_NOT_RUN: return ran == 0 && strcmp(outcome->why, "killed") == 0;
    default: return false;
    }
}

static void *make_calls(void *context)
{
    uint32_t random = (uint32_t)(uintptr_t)context;
    char *bytes = malloc(SIZE_MAX_SENT);
    memset(bytes, 'e', SIZE_MAX_SENT);
    for (int32_t number; (number = atomic_fetch_add(&it.made, 1)) < it.calls;) {
        struct request_head head = {number, (uint32_t)choose_size(next_random(&random))};
        memcpy(bytes, &head, sizeof head);
        int32_t ranks[RANKS], first = (int32_t)(next_random(&random) % RANKS);
        size_t count = next_random(&random) % 3 ? 1 : 1 + next_random(&random) % RANKS;
        for (size_t i = 0; i < count; i++)
            ranks[i] = (first + (int32_t)i) % RANKS;
        struct roost_bytes piece = {bytes, head.size};
        struct roost_call_options options = {
            .method = "run", .bytes = &piece, .byte_count = 1, .ranks = ranks, .rank_count = count};
        struct roost_call *call = links_call(it.links, &options, NULL);
        assert_true(call && roost_call_wait(call, 10 * WATCHDOG_MS));
        for (size_t i = 0; i < count; i++) {
            struct roost_outcome outcome = roost_call_outcome(call, i);
            if (!is_right(&outcome, number, head.size))
                fail_msg("call %d, rank %d: %s '%s', run %d times", (int)number, (int)outcome.rank,
                         roost_outcome_word(outcome.kind), outcome.why,
                         (int)it.ran[number * RANKS + outcome.rank]);
            atomic_fetch_add(&it.outcomes[outcome.kind], 1);
        }
        roost_call_free(call);
    }
    free(bytes);
    atomic_fetch_add(&it.done_threads, 1);
    return NULL;
}

static bool is_far(void *context)
{
    return atomic_load(&it.made) >= *(const int *)context || atomic_load(&it.done_threads);
}

TEST(every_call_has_one_outcome_of_each_rank_while_workers_are_killed)
{
    pthread_t threads[THREADS];
    int factor = getenv("ROOST_SOAK") ? 10 : 1;
    it.calls = 20000 * factor;
    it.kills = 50 * factor;
    struct links_options options = {.rank_count = RANKS, .other_fd = -1, .close_grace_ms = 60000};
    it.links = links_new(&options);
    assert_non_null(it.links);
    it.ran = mmap(NULL, (size_t)it.calls * RANKS, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(it.ran != MAP_FAILED);
    it.lives = calloc((size_t)(RANKS + it.kills), sizeof *it.lives);
    assert_non_null(it.lives);
    fork_workers();
    for (int32_t rank = 0; rank < RANKS; rank++)
        begin_worker(&it.lives[rank]);
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_calls, (void *)(i + 1)), 0);
    for (int i = 0; i < it.kills; i++) {
        struct life *next = &it.lives[RANKS + i];
        int goal = (int)((int64_t)it.calls * i / it.kills);
        assert_true(links_wait(it.links, 10 * WATCHDOG_MS, is_far, &goal));
        end_worker(it.of_rank[next->rank]);
        begin_worker(next);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct links_counts counts = links_counts(it.links);
    assert_int_equal(counts.answers, it.outcomes[ROOST_OUTCOME_VALUE]);
    assert_int_equal(counts.dropped_late + counts.dropped_twice + counts.cut, 0);
    assert_true(it.outcomes[ROOST_OUTCOME_VALUE] > it.calls / 2);
    assert_int_equal(it.outcomes[ROOST_OUTCOME_ERROR], 0);
    for (int i = 0; i < it.calls * RANKS; i++)
        assert_true(it.ran[i] <= 1);
    links_free(it.links);
    for (int32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(waitpid(it.of_rank[rank]->pid, NULL, 0), it.of_rank[rank]->pid);
    free(it.lives);
    munmap(it.ran, (size_t)it.calls * RANKS);
}

RUN_TESTS(cmocka_unit_test(every_call_has_one_outcome_of_each_rank_while_workers_are_killed))
