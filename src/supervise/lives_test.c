/* lives_test.c - the supervisor's decisions about workers, on a host without any process. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervise/supervisor.h"
#include "tests/unit.h"

/* --- a host that remembers what it was asked for --- */

enum { WORKERS = 3, ASKED_MAX = 64 };

static char asked[ASKED_MAX * 16]; /* "begin 0/1, signal 0/15, ..." */

static void note(const char *what, const struct worker *worker, int32_t number)
{
    size_t len = strlen(asked);
    snprintf(asked + len, sizeof asked - len, "%s%s %d/%d", len ? ", " : "", what, worker->rank,
             number);
}

static bool begin(struct supervisor *supervisor, struct worker *worker)
{
    note("begin", worker, worker->life);
    worker_begin(&supervisor->watcher, worker, 1000 + worker->rank, -1);
    lives_began(supervisor, worker, -1);
    return true;
}

static void signal_worker(struct supervisor *supervisor, const struct worker *worker,
                          int32_t number)
{
    (void)supervisor;
    note("signal", worker, number);
}

static bool is_ready(struct supervisor *supervisor, struct worker *worker)
{
    (void)supervisor;
    (void)worker;
    return false;
}

static void ended(struct supervisor *supervisor, struct worker *worker)
{
    (void)supervisor;
    (void)worker;
}

static void describe_survivor(const struct supervisor *supervisor, const struct worker *worker,
                              char *out, size_t size)
{
    (void)supervisor;
    snprintf(out, size, "%d survives", worker->pid);
}

static const struct host fake_host = {.begin = begin,
                                      .signal = signal_worker,
                                      .is_ready = is_ready,
                                      .ended = ended,
                                      .describe_survivor = describe_survivor,
                                      .kill_ms = 0};

/* --- a run of one component on it --- */

static struct supervisor supervisor;
static struct spec_component component;
static struct spec_process processes[WORKERS];
static struct worker workers[WORKERS];
static struct component_run run;
static int ends[2], folder;
static char folder_path[32];

/* All workers of the component are started. */
static void start(enum spec_restart restart, int32_t restart_max, bool keeps_going)
{
    asked[0] = '\0';
    component = (struct spec_component){
        .name = "actor", .restart = restart, .restart_max = restart_max, .process_count = WORKERS};
    run = (struct component_run){.log_dir = -1, .forker = -1};
    for (int32_t i = 0; i < WORKERS; i++) {
        processes[i] = (struct spec_process){.rank = i, .cwd = "", .ready_what = ""};
        workers[i] = (struct worker){.rank = i, .pidfd = -1};
    }
    snprintf(folder_path, sizeof folder_path, "/tmp/roost-unit-XXXXXX");
    assert_non_null(mkdtemp(folder_path));
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0 && socket_pair_open(ends));
    supervisor =
        (struct supervisor){.watcher = {.setup = {.process_count = WORKERS, .grace_ms = 60000},
                                        .spec = {.components = &component,
                                                 .component_count = 1,
                                                 .processes = processes,
                                                 .process_count = WORKERS},
                                        .workers = workers,
                                        .components = &run,
                                        .left = WORKERS,
                                        .outbox = {.socket = ends[0], .events = TEXT_INIT},
                                        .run_dir = folder,
                                        .lives = -1},
                            .host = &fake_host,
                            .records = -1,
                            .control = -1};
    supervisor.watcher.setup.keeps_going = keeps_going;
    assert_int_equal(records_open(&supervisor), 0);
    assert_false(order_start_some(&supervisor));
    assert_string_equal(asked, "begin 0/1, begin 1/1, begin 2/1");
    asked[0] = '\0';
}

static void finish(void)
{
    static const char *const files[] = {"records.jsonl", ".lives"};
    outbox_release(&supervisor.watcher.outbox);
    int fds[] = {ends[0], ends[1], supervisor.records, supervisor.watcher.lives};
    for (size_t i = 0; i < ROWS(fds); i++)
        close(fds[i]);
    for (size_t i = 0; i < ROWS(files); i++)
        (void)unlinkat(folder, files[i], 0);
    close(folder);
    assert_int_equal(rmdir(folder_path), 0);
}

static void end_worker(int32_t rank, int32_t exit_code)
{
    struct roost_event event = outbox_event(ROOST_EVENT_ENDED, &workers[rank]);
    event.end = ROOST_END_EXITED;
    event.exit_code = exit_code;
    lives_ended(&supervisor, &workers[rank], &event);
}

TEST(the_first_failure_stops_the_others_and_decides_the_status)
{
    start(SPEC_RESTART_NEVER, 0, false);
    end_worker(1, 7);
    assert_string_equal(asked, "signal 0/15, signal 0/18, signal 2/15, signal 2/18");
    assert_int_equal(supervisor.phase, PHASE_STOPPING);
    end_worker(0, 9);
    end_worker(2, 0);
    assert_int_equal(supervisor.failure.rank, 1);
    assert_int_equal(supervisor.failure.exit_code, 7);
    assert_int_equal(supervisor.watcher.left, 0);
    finish();
}

TEST(a_run_that_keeps_going_stops_nothing_and_still_fails)
{
    start(SPEC_RESTART_NEVER, 0, true);
    end_worker(1, 7);
    assert_string_equal(asked, "");
    assert_int_equal(supervisor.phase, PHASE_RUNNING);
    assert_true(supervisor.has_failed);
    assert_int_equal(supervisor.watcher.left, 2);
    finish();
}

TEST(a_worker_lives_again_as_often_as_its_policy_says)
{
    start(SPEC_RESTART_ON_FAILURE, 1, false);
    end_worker(0, 1);
    assert_int_equal(workers[0].state, WORKER_RESTING);
    assert_false(supervisor.has_failed);
    workers[0].restart_at = 0; /* it has rested */
    (void)lives_tick(&supervisor);
    assert_string_equal(asked, "begin 0/2");
    end_worker(0, 1);
    assert_int_equal(workers[0].state, WORKER_ENDED);
    assert_int_equal(supervisor.phase, PHASE_STOPPING);
    finish();
}

TEST(after_the_grace_workers_are_killed_and_what_survives_is_lost)
{
    start(SPEC_RESTART_NEVER, 0, false);
    lives_stop(&supervisor, SIGINT, "");
    assert_int_equal(supervisor.failure.signal, SIGINT);
    end_worker(0, 0);
    asked[0] = '\0';
    supervisor.kill_at = 0; /* the grace is over */
    (void)lives_tick(&supervisor);
    assert_string_equal(asked, "signal 1/9, signal 2/9");
    assert_int_equal(supervisor.watcher.left, 0); /* kill_ms is 0: they were given up at once */
    assert_true(supervisor.has_given_up);
    assert_string_equal(supervisor.failure.message, "1001 survives");
    finish();
}

RUN_TESTS(cmocka_unit_test(the_first_failure_stops_the_others_and_decides_the_status),
          cmocka_unit_test(a_run_that_keeps_going_stops_nothing_and_still_fails),
          cmocka_unit_test(a_worker_lives_again_as_often_as_its_policy_says),
          cmocka_unit_test(after_the_grace_workers_are_killed_and_what_survives_is_lost))
