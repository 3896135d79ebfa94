/* log_history_test.c - recorded runs made by hand: what a recorder notes, and in which order it comes back. */
#include "logs/log_history.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "logs/log_merge.h"
#include "logs/log_recorder.h"
#include "tests/unit.h"

static char folder[64];
static int run_dir;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/roost-history-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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
    close(run_dir);
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Appends to a log and sets the time of its last write, in ms since 1970; 0 = now. */
static void append_at(const char *component, int rank, const char *file, const char *text,
                      int64_t time)
{
    char path[128];
    mkdirat(run_dir, component, 0700);
    snprintf(path, sizeof path, "%s/%d", component, rank);
    mkdirat(run_dir, path, 0700);
    snprintf(path, sizeof path, "%s/%d/%s", component, rank, file);
    int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    struct timespec times[2] = {{time / 1000, time % 1000 * 1000000},
                                {time / 1000, time % 1000 * 1000000}};
    if (time)
        assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void append(const char *component, int rank, const char *file, const char *text)
{
    append_at(component, rank, file, text, 0);
}

/* --- a file of times, by hand --- */

struct row {
    int64_t time;
    int32_t rank;
    enum log_stream stream;
    int64_t growth;
};

static void write_times(const char *component, const struct row *rows, size_t count,
                        const char *more, size_t more_len)
{
    char path[128];
    mkdirat(run_dir, component, 0700);
    snprintf(path, sizeof path, "%s/" TIMES_FILE, component);
    int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, TIMES_MAGIC, TIMES_MAGIC_LEN), TIMES_MAGIC_LEN);
    int64_t before = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[TIMES_MARK_MAX];
        struct times_mark mark = {rows[i].time, rows[i].rank, rows[i].stream, rows[i].growth};
        size_t len = times_put(bytes, before, &mark);
        assert_int_equal(write(fd, bytes, len), len);
        before = rows[i].time;
    }
    assert_int_equal(write(fd, more, more_len), more_len);
    close(fd);
}

/* --- reading it back --- */

struct seen {
    struct log_tail *tail;
    struct text text;
};

/* "a/0@5 text;", whole lines as a screen takes them. */
static bool note(void *ctx, const struct log_chunk *chunk, size_t *taken)
{
    struct seen *seen = ctx;
    size_t at = 0;
    while (at < chunk->len) {
        const char *end = memchr(chunk->bytes + at, '\n', chunk->len - at);
        if (!end && !chunk->is_end)
            break;
        size_t stop = end ? (size_t)(end - chunk->bytes) : chunk->len;
        text_printf(&seen->text, "%s%c/%d@%d %.*s", seen->text.len ? ";" : "",
                    "ab"[chunk->component_index], chunk->rank, (int)log_tail_time(seen->tail),
                    (int)(stop - at), chunk->bytes + at);
        at = end ? stop + 1 : stop;
    }
    *taken = at;
    return true;
}

/* Both components with two ranks each. */
static struct log_tail *open_tail(void)
{
    struct log_tail *tail = log_tail_new_still(run_dir, NULL);
    assert_non_null(tail);
    for (int32_t c = 0; c < 2; c++)
        for (int32_t rank = 0; rank < 2; rank++)
            assert_true(log_tail_add(tail, c ? "b" : "a", c, rank, true));
    return tail;
}

static void check_with(struct log_history_options options, int64_t start, const char *expected)
{
    struct seen seen = {open_tail(), TEXT_INIT};
    options.run_dir = run_dir;
    struct log_history *history = log_history_new(seen.tail, &options);
    assert_non_null(history);
    /* The second walk is as the first. */
    for (int walk = 0; walk < 2; walk++) {
        text_release(&seen.text);
        seen.text = (struct text)TEXT_INIT;
        log_history_start(history, start);
        assert_true(log_history_read(history, note, &seen));
        assert_string_equal(text_string(&seen.text), expected);
    }
    log_history_free(history);
    log_tail_free(seen.tail);
    text_release(&seen.text);
}

static void check(const char *expected)
{
    check_with((struct log_history_options){0}, 0, expected);
}

static void make_run(void)
{
    append("a", 0, "stdout.log", "one\nfour\nend");
    append("a", 1, "stderr.log", "three\n");
    append("b", 0, "stdout.log", "two\nfive\n");
    static const struct row a[] = {{10, 0, LOG_STDOUT, 4},
                                   {30, 1, LOG_STDERR, 6},
                                   {40, 0, LOG_STDOUT, 3},
                                   {50, 0, LOG_STDOUT, 2},
                                   {60, 0, LOG_STDOUT, 3}};
    static const struct row b[] = {{20, 0, LOG_STDOUT, 4}, {50, 0, LOG_STDOUT, 5}};
    write_times("a", a, ROWS(a), "", 0);
    write_times("b", b, ROWS(b), "", 0);
}

TEST(lines_come_in_the_order_of_their_times)
{
    make_run();
    /* "four" has two marks: its newline came with the second. */
    check("a/0@10 one;b/0@20 two;a/1@30 three;a/0@50 four;b/0@50 five;a/0@60 end");
}

TEST(a_walk_may_start_at_any_mark_and_has_whole_lines)
{
    make_run();
    check_with((struct log_history_options){0}, 4, "a/0@50 four;b/0@50 five;a/0@60 end");
    check_with((struct log_history_options){0}, 6, "a/0@60 end");
    check_with((struct log_history_options){0}, 7, "");
    check_with((struct log_history_options){.since = 50}, 0, "a/0@50 four;b/0@50 five;a/0@60 end");
    check_with((struct log_history_options){.since = 50}, 1, "b/0@50 five;a/0@60 end");
}

TEST(a_history_that_is_followed_leaves_the_last_line_to_the_tail)
{
    make_run();
    check_with((struct log_history_options){.is_followed = true}, 0,
               "a/0@10 one;b/0@20 two;a/1@30 three;a/0@50 four;b/0@50 five");
    struct seen seen = {open_tail(), TEXT_INIT};
    struct log_history_options options = {.run_dir = run_dir, .is_followed = true};
    struct log_history *history = log_history_new(seen.tail, &options);
    log_history_start(history, log_history_marks(history));
    assert_true(log_history_read(history, note, &seen));
    append("a", 0, "stdout.log", "ed\nnew\n");
    append("b", 1, "stdout.log", "late\n");
    assert_true(log_tail_finish(seen.tail, note, &seen));
    assert_string_equal(text_string(&seen.text), "a/0@0 ended;a/0@0 new;b/1@0 late");
    log_history_free(history);
    log_tail_free(seen.tail);
    text_release(&seen.text);
}

TEST(what_has_no_mark_comes_last_by_the_time_of_its_log)
{
    make_run();
    append_at("a", 1, "stderr.log", "lost\n", 9000);
    append_at("b", 0, "stdout.log", "lost too\n", 8000);
    check("a/0@10 one;b/0@20 two;a/1@30 three;a/0@50 four;b/0@50 five;a/0@60 end;"
          "b/0@8000 lost too;a/1@9000 lost");
}

TEST(a_damaged_file_is_used_up_to_the_damage)
{
    append_at("a", 0, "stdout.log", "one\ntwo\n", 99);
    append_at("b", 0, "stdout.log", "other\n", 98);
    static const struct row a[] = {{10, 0, LOG_STDOUT, 4}};
    write_times("a", a, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12);
    write_times("b", NULL, 0, "\x80", 1); /* one that is not whole */
    struct seen seen = {open_tail(), TEXT_INIT};
    struct log_history_options options = {.run_dir = run_dir};
    struct log_history *history = log_history_new(seen.tail, &options);
    assert_true(log_history_has_times(history));
    assert_true(log_history_read(history, note, &seen));
    assert_string_equal(text_string(&seen.text), "a/0@10 one;b/0@98 other;a/0@99 two");
    assert_int_equal(log_history_damaged(history), 0);
    log_history_free(history);
    log_tail_free(seen.tail);
    text_release(&seen.text);
}

TEST(marks_that_lie_show_every_line_once)
{
    append_at("a", 0, "stdout.log", "one\ntwo\n", 99);
    static const struct row a[] = {{10, 0, LOG_STDOUT, INT64_MAX}, {20, 0, LOG_STDOUT, INT64_MAX},
                                   {30, 0, LOG_STDOUT, INT64_MIN}, {40, 5, LOG_STDERR, 3},
                                   {50, 1, LOG_STDOUT, 100},       {60, 0, LOG_STDOUT, 2}};
    write_times("a", a, ROWS(a), "", 0);
    check("a/0@10 one;a/0@10 two");
}

TEST(a_run_without_times_comes_log_by_log)
{
    append_at("b", 0, "stdout.log", "b0\n", 1000);
    append_at("a", 1, "stdout.log", "a1\n", 2000);
    append_at("a", 0, "stderr.log", "a0 err\n", 3000);
    append_at("a", 0, "stdout.log", "a0\n", 4000);
    check("a/0@4000 a0;a/0@3000 a0 err;a/1@2000 a1;b/0@1000 b0");
    struct log_tail *tail = open_tail();
    struct log_history_options options = {.run_dir = run_dir};
    struct log_history *history = log_history_new(tail, &options);
    assert_false(log_history_has_times(history));
    assert_int_equal(log_history_logs(history), 4);
    log_history_free(history);
    log_tail_free(tail);
}

TEST(files_of_times_of_another_kind_are_not_read)
{
    make_run();
    assert_int_equal(unlinkat(run_dir, "b/" TIMES_FILE, 0), 0);
    assert_int_equal(symlinkat("../a/" TIMES_FILE, run_dir, "b/" TIMES_FILE), 0);
    assert_int_equal(unlinkat(run_dir, "a/" TIMES_FILE, 0), 0);
    assert_int_equal(mkfifoat(run_dir, "a/" TIMES_FILE, 0600), 0);
    struct log_merge *merge = log_merge_new(run_dir);
    bool has_file = true;
    assert_true(log_merge_add(merge, "a", 0, &has_file) && !has_file);
    has_file = true;
    assert_true(log_merge_add(merge, "b", 1, &has_file) && !has_file);
    log_merge_free(merge);
}

RUN_TESTS(
    cmocka_unit_test_setup_teardown(lines_come_in_the_order_of_their_times, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_walk_may_start_at_any_mark_and_has_whole_lines, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(a_history_that_is_followed_leaves_the_last_line_to_the_tail,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_has_no_mark_comes_last_by_the_time_of_its_log, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(a_damaged_file_is_used_up_to_the_damage, set_up, tear_down),
    cmocka_unit_test_setup_teardown(marks_that_lie_show_every_line_once, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_run_without_times_comes_log_by_log, set_up, tear_down),
    cmocka_unit_test_setup_teardown(files_of_times_of_another_kind_are_not_read, set_up, tear_down))
