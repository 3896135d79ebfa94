/* log_recorder_test.c - logs that grow under a recorder, and the marks it leaves. The recorder's clock is the
 * machine's: a test turns it by hand, as often as it needs, and never asks how long something took. */
#include "logs/log_recorder.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "logs/log_merge.h"
#include "tests/unit.h"

static char folder[64];
static int run_dir;
static struct log_recorder *recorder;
static int64_t due; /* monotonic ms: a tick before this does nothing */

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/roost-recorder-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    recorder = log_recorder_new(run_dir);
    due = 0;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int tear_down(void **state)
{
    (void)state;
    log_recorder_free(recorder);
    close(run_dir);
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int open_log(int rank, const char *file)
{
    char path[64];
    mkdirat(run_dir, "actor", 0700);
    snprintf(path, sizeof path, "actor/%d", rank);
    mkdirat(run_dir, path, 0700);
    snprintf(path, sizeof path, "actor/%d/%s", rank, file);
    int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void append(int rank, const char *file, size_t len)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    int fd = open_log(rank, file);
    assert_int_equal(write(fd, text, len), len);
    close(fd);
}

/* Waits until the clock of files has moved: what is written then has another time. */
static int64_t next_moment(void)
{
    struct timespec start, now;
    clock_gettime(CLOCK_REALTIME_COARSE, &start);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec == start.tv_sec && now.tv_nsec / 1000000 == start.tv_nsec / 1000000);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the next turn is due, and calls for it. */
static int64_t tick(void)
{
    while (now_ms() < due) {
        struct timespec span = {0, 1000000};
        (void)nanosleep(&span, NULL);
    }
    int64_t wait = log_recorder_tick(recorder);
    due = now_ms() + RECORDER_MS;
    return wait;
}

static void begin(int32_t id, int rank)
{
    append(rank, "stdout.log", 0);
    append(rank, "stderr.log", 0);
    log_recorder_begin(recorder, id, "actor", rank);
}

static int64_t size_of(const char *path)
{
    struct stat info;
    return fstatat(run_dir, path, &info, 0) == 0 ? (int64_t)info.st_size : -1;
}

/* "0:4 1!3": rank, ":" for standard output, growth. Times must not fall. */
static void check_marks(const char *expected)
{
    char found[512] = "";
    struct log_merge *merge = log_merge_new(run_dir);
    struct times_mark mark;
    bool has_file;
    int32_t component;
    int64_t before = 0;
    size_t len = 0;
    assert_true(log_merge_add(merge, "actor", 0, &has_file) && has_file);
    while (log_merge_next(merge, &component, &mark) && len < sizeof found - 64) {
        assert_true(mark.time >= before);
        before = mark.time;
        len += (size_t)snprintf(found + len, sizeof found - len, "%s%d%c%lld", len ? " " : "",
                                mark.rank, mark.stream == LOG_STDOUT ? ':' : '!',
                                (long long)mark.growth);
    }
    assert_int_equal(log_merge_damaged(merge), -1);
    log_merge_free(merge);
    assert_string_equal(found, expected);
}

TEST(the_file_is_there_before_the_first_line)
{
    begin(0, 0);
    assert_int_equal(size_of("actor/" TIMES_FILE), TIMES_MAGIC_LEN);
    check_marks("");
    assert_true(log_recorder_tick(recorder) >= 0);
}

TEST(growth_is_noted_and_the_end_of_a_process_is_a_look)
{
    begin(0, 0);
    begin(1, 1);
    append(0, "stdout.log", 4);
    tick();
    next_moment();
    append(1, "stderr.log", 3);
    tick();
    next_moment();
    append(0, "stdout.log", 5);
    log_recorder_end(recorder, 0);
    append(0, "stdout.log", 7); /* a child that is left: nobody looks any more */
    log_recorder_end(recorder, 1);
    tick();
    tick();
    assert_int_equal(tick(), -1);
    check_marks("0:4 1!3 0:5");
    begin(0, 0); /* the next life */
    tick();
    tick();
    check_marks("0:4 1!3 0:5 0:7");
}

/* The time of the last mark. */
static int64_t last_time(void)
{
    struct log_merge *merge = log_merge_new(run_dir);
    struct times_mark mark = {.time = -1};
    bool has_file;
    int32_t component;
    assert_true(log_merge_add(merge, "actor", 0, &has_file) && has_file);
    while (log_merge_next(merge, &component, &mark))
        continue;
    log_merge_free(merge);
    return mark.time;
}

TEST(marks_have_the_time_of_the_last_write)
{
    struct stat info;
    begin(0, 0);
    tick();
    next_moment();
    append(0, "stdout.log", 4);
    assert_int_equal(fstatat(run_dir, "actor/0/stdout.log", &info, 0), 0);
    next_moment();
    tick();
    tick();
    assert_int_equal(last_time(), info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1000000);
}

TEST(a_time_that_cannot_be_is_not_believed)
{
    static const struct timespec wrong[][2] = {{{1, 0}, {1, 0}},
                                               {{99999999999, 0}, {99999999999, 0}}};
    begin(0, 0);
    for (size_t i = 0; i < ROWS(wrong); i++) {
        int64_t start = next_moment();
        append(0, "stdout.log", 4);
        int fd = open_log(0, "stdout.log");
        assert_int_equal(futimens(fd, wrong[i]), 0);
        close(fd);
        tick();
        tick();
        tick();
        int64_t time = last_time();
        assert_true(time >= start && time <= next_moment());
    }
    check_marks("0:4 0:4");
}

TEST(a_log_that_was_cut_goes_on)
{
    begin(0, 0);
    append(0, "stdout.log", 10);
    tick();
    int fd = open_log(0, "stdout.log");
    assert_int_equal(ftruncate(fd, 0), 0);
    close(fd);
    append(0, "stdout.log", 4);
    tick();
    tick();
    check_marks("0:10 0:-6");
}

TEST(the_file_is_at_most_a_part_of_the_logs)
{
    int64_t logged = 0;
    begin(0, 0);
    int fd = open_log(0, "stdout.log");
    /* One byte at a time is more than the file has room for, once its first bytes are used up. */
    for (int i = 0; i < 40000; i++) {
        logged += write(fd, "x", 1);
        log_recorder_end(recorder, 0); /* a look */
        log_recorder_begin(recorder, 0, "actor", 0);
    }
    close(fd);
    log_recorder_free(recorder);
    recorder = NULL;
    int64_t size = size_of("actor/" TIMES_FILE);
    assert_true(size > RECORDER_ROOM / 2);
    assert_true(size <= RECORDER_ROOM + logged / RECORDER_SHARE);
}

TEST(a_write_that_fails_leaves_whole_marks_and_loses_no_bytes)
{
    begin(0, 0);
    append(0, "stdout.log", 100);
    tick();
    tick();
    int64_t size = size_of("actor/" TIMES_FILE);
    assert_true(size > TIMES_MAGIC_LEN);
    struct rlimit limit, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    append(0, "stdout.log", 200);
    small = limit;
    small.rlim_cur = (rlim_t)size + 1; /* one byte of the next mark fits */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tick();
    tick();
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(size_of("actor/" TIMES_FILE), size);
    check_marks("0:100");
    append(0, "stdout.log", 30);
    tick();
    tick();
    check_marks("0:100 0:230");
}

TEST(a_file_of_times_that_cannot_be_made_leaves_the_run_alone)
{
    append(0, "stdout.log", 1);
    assert_int_equal(symlinkat("elsewhere", run_dir, "actor/" TIMES_FILE), 0);
    begin(0, 0);
    append(0, "stdout.log", 4);
    tick();
    tick();
    assert_int_equal(size_of("actor/elsewhere"), -1);
    log_recorder_begin(NULL, 0, "actor", 0); /* without memory for a recorder */
    log_recorder_end(NULL, 0);
    assert_int_equal(log_recorder_tick(NULL), -1);
}

TEST(many_processes_are_looked_at_in_turns_and_marks_stay_in_order)
{
    enum { MANY = RECORDER_LOOKS }; /* two turns and more */
    for (int32_t i = 0; i < MANY; i++)
        begin(i, i);
    next_moment();
    append(MANY - 1, "stdout.log", 2);
    next_moment();
    append(0, "stdout.log", 3);
    for (int i = 0; i < 6; i++) /* two rounds and one turn more */
        tick();
    check_marks("499:2 0:3");
}

RUN_TESTS(
    cmocka_unit_test_setup_teardown(the_file_is_there_before_the_first_line, set_up, tear_down),
    cmocka_unit_test_setup_teardown(growth_is_noted_and_the_end_of_a_process_is_a_look, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(marks_have_the_time_of_the_last_write, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_time_that_cannot_be_is_not_believed, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_log_that_was_cut_goes_on, set_up, tear_down),
    cmocka_unit_test_setup_teardown(the_file_is_at_most_a_part_of_the_logs, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_whole_marks_and_loses_no_bytes,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_file_of_times_that_cannot_be_made_leaves_the_run_alone,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(many_processes_are_looked_at_in_turns_and_marks_stay_in_order,
                                    set_up, tear_down))
