/* log_tail_test.c - files that grow, are cut, come late, vanish or are no files, and many of them. */
#include "logs/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "logs/log_tail_internal.h"
#include "tests/unit.h"

static char folder[64];
static int run_dir;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/roost-tail-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return mkdirat(run_dir, "actor", 0700);
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

static const char *path_of(int rank, const char *file)
{
    static char path[64];
    snprintf(path, sizeof path, "actor/%d%s%s", rank, file[0] ? "/" : "", file);
    return path;
}

static void make_rank(int rank)
{
    assert_int_equal(mkdirat(run_dir, path_of(rank, ""), 0700), 0);
}

static void append(int rank, const char *file, const char *text)
{
    int fd = openat(run_dir, path_of(rank, file), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A sink that writes down what it gets: "0o:text" for stdout of rank 0, "!" for an end. */
struct notes {
    struct text text;
    size_t chunks, bytes, ends;
    bool takes_lines; /* only whole ones */
    bool is_full;     /* takes nothing */
};

static bool take_note(void *ctx, const struct log_chunk *chunk, size_t *taken)
{
    struct notes *notes = ctx;
    if (notes->is_full) {
        *taken = 0;
        return false;
    }
    if (notes->takes_lines && !chunk->is_end) {
        const char *last = memrchr(chunk->bytes, '\n', chunk->len);
        *taken = last ? (size_t)(last + 1 - chunk->bytes) : 0;
    }
    notes->chunks++;
    notes->bytes += *taken;
    notes->ends += chunk->is_end;
    if (*taken == 0 && !chunk->is_end)
        return true;
    text_printf(&notes->text, "%d%c:", chunk->rank, chunk->stream == LOG_STDOUT ? 'o' : 'e');
    text_append(&notes->text, chunk->bytes, *taken < 64 ? *taken : 64);
    text_puts(&notes->text, chunk->is_end ? "!" : "");
    return true;
}

static void read_all(struct log_tail *tail, struct notes *notes)
{
    while (log_tail_read(tail, take_note, notes))
        ;
}

static void check_notes(struct notes *notes, const char *expected)
{
    const char *got = text_string(&notes->text);
    assert_string_equal(got ? got : "", expected);
    text_release(&notes->text);
}

/* Waits for news as a caller does, then reads; for at most some seconds. */
static void wait_and_read(struct log_tail *tail, struct notes *notes, size_t bytes)
{
    size_t wanted = notes->bytes + bytes;
    for (int i = 0; i < 100 && notes->bytes < wanted; i++) {
        struct pollfd polled = {.fd = log_tail_fd(tail), .events = POLLIN};
        int timeout = log_tail_timeout(tail);
        poll(&polled, 1, timeout < 0 ? 10000 : timeout);
        read_all(tail, notes);
    }
    assert_int_equal(notes->bytes, wanted);
}

static struct log_tail *tail_of(int ranks, bool from_start)
{
    struct roost_error err;
    struct log_tail *tail = log_tail_new(run_dir, &err);
    assert_non_null(tail);
    for (int rank = 0; rank < ranks; rank++)
        assert_true(log_tail_add(tail, "actor", 7, rank, from_start));
    return tail;
}

TEST(what_is_there_and_what_comes_is_handed_on)
{
    struct notes notes = {.text = TEXT_INIT};
    make_rank(0);
    append(0, "stdout.log", "one\n");
    struct log_tail *tail = tail_of(1, true);
    assert_int_equal(log_tail_timeout(tail), 0);
    read_all(tail, &notes);
    check_notes(&notes, "0o:one\n");
    assert_int_equal(log_tail_timeout(tail), -1); /* nothing to do, nothing to wake up for */
    assert_int_equal(log_tail_unwatched(tail), 0);
    append(0, "stdout.log", "two\n");
    wait_and_read(tail, &notes, 4);
    append(0, "stderr.log", "oops\n"); /* a file that was not there */
    wait_and_read(tail, &notes, 5);
    check_notes(&notes, "0o:two\n0e:oops\n");
    log_tail_free(tail);
}

TEST(what_was_there_can_be_left_out)
{
    struct notes notes = {.text = TEXT_INIT};
    make_rank(0);
    append(0, "stdout.log", "old\n");
    struct log_tail *tail = tail_of(1, false);
    append(0, "stdout.log", "new\n");
    append(0, "stderr.log", "all\n");
    read_all(tail, &notes);
    check_notes(&notes, "0o:new\n0e:all\n");
    log_tail_free(tail);
}

TEST(a_rank_may_come_late)
{
    struct notes notes = {.text = TEXT_INIT};
    struct log_tail *tail = tail_of(1, true);
    read_all(tail, &notes);
    assert_true(log_tail_timeout(tail) >= 0);
    assert_int_equal(log_tail_unwatched(tail), 0); /* it is not for want of watches */
    make_rank(0);
    append(0, "stdout.log", "late\n");
    wait_and_read(tail, &notes, 5);
    assert_int_equal(log_tail_timeout(tail), -1);
    check_notes(&notes, "0o:late\n");
    log_tail_free(tail);
}

TEST(what_is_not_taken_comes_again)
{
    struct notes notes = {.text = TEXT_INIT, .takes_lines = true};
    make_rank(0);
    append(0, "stdout.log", "one\nha");
    struct log_tail *tail = tail_of(1, true);
    read_all(tail, &notes);
    check_notes(&notes, "0o:one\n");
    assert_int_equal(log_tail_timeout(tail), -1); /* no spinning over half a line */
    append(0, "stdout.log", "lf\nrest");
    wait_and_read(tail, &notes, 5);
    check_notes(&notes, "0o:half\n");
    notes.is_full = true;
    append(0, "stdout.log", "\n");
    struct pollfd polled = {.fd = log_tail_fd(tail), .events = POLLIN};
    assert_int_equal(poll(&polled, 1, 10000), 1);
    assert_true(log_tail_read(tail, take_note, &notes));
    assert_true(log_tail_read(tail, take_note, &notes));
    notes.is_full = false;
    read_all(tail, &notes);
    check_notes(&notes, "0o:rest\n");
    log_tail_free(tail);
}

TEST(the_end_brings_half_lines)
{
    struct notes notes = {.text = TEXT_INIT, .takes_lines = true};
    make_rank(0);
    make_rank(1);
    append(0, "stdout.log", "half");
    append(1, "stdout.log", "whole\n");
    append(1, "stderr.log", "also half");
    struct log_tail *tail = tail_of(2, true);
    read_all(tail, &notes);
    check_notes(&notes, "1o:whole\n");
    log_tail_end(tail, 7, 0);
    read_all(tail, &notes);
    check_notes(&notes, "0o:half!");
    append(0, "stdout.log", "second life\n");
    wait_and_read(tail, &notes, 12);
    check_notes(&notes, "0o:second life\n");
    log_tail_end(tail, 7, 99); /* nobody */
    while (!log_tail_finish(tail, take_note, &notes))
        ;
    check_notes(&notes, "0o:!1o:!1e:also half!");
    log_tail_free(tail);
}

TEST(what_was_not_handed_on_is_counted)
{
    struct notes notes = {.text = TEXT_INIT, .takes_lines = true, .is_full = true};
    struct log_rest rest = {.bytes = -1};
    make_rank(0);
    make_rank(1);
    append(0, "stdout.log", "five\n");
    append(1, "stdout.log", "one\n");
    append(1, "stderr.log", "longest\n");
    struct log_tail *tail = tail_of(2, true);
    assert_false(log_tail_finish(tail, take_note, &notes));
    assert_int_equal(log_tail_rest(tail, &rest), 3);
    assert_true(rest.component_index == 7 && rest.rank == 1 && rest.stream == LOG_STDERR);
    assert_int_equal(rest.bytes, 8);
    notes.is_full = false;
    while (!log_tail_finish(tail, take_note, &notes))
        ;
    rest.bytes = -1;
    assert_int_equal(log_tail_rest(tail, &rest), 0);
    assert_int_equal(rest.bytes, -1);
    text_release(&notes.text);
    log_tail_free(tail);
}

TEST(a_file_that_was_cut_or_replaced_starts_over)
{
    struct notes notes = {.text = TEXT_INIT};
    make_rank(0);
    append(0, "stdout.log", "a long first text\n");
    struct log_tail *tail = tail_of(1, true);
    read_all(tail, &notes);
    int fd = openat(run_dir, path_of(0, "stdout.log"), O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_int_equal(write(fd, "cut\n", 4), 4);
    close(fd);
    wait_and_read(tail, &notes, 4);
    assert_int_equal(unlinkat(run_dir, path_of(0, "stdout.log"), 0), 0);
    append(0, "stdout.log", "replaced\n");
    wait_and_read(tail, &notes, 9);
    check_notes(&notes, "0o:a long first text\n0o:cut\n0o:replaced\n");
    /* Without the whole directory there is nothing to read and nothing to fail. */
    unlinkat(run_dir, path_of(0, "stdout.log"), 0);
    unlinkat(run_dir, path_of(0, ""), AT_REMOVEDIR);
    read_all(tail, &notes);
    assert_true(log_tail_finish(tail, take_note, &notes));
    text_release(&notes.text);
    log_tail_free(tail);
}

TEST(what_is_no_regular_file_is_not_read)
{
    struct notes notes = {.text = TEXT_INIT};
    struct log_trouble trouble;
    make_rank(0);
    make_rank(1);
    assert_int_equal(symlinkat("/etc/passwd", run_dir, path_of(0, "stdout.log")), 0);
    assert_int_equal(mkfifoat(run_dir, path_of(0, "stderr.log"), 0600), 0);
    assert_int_equal(mkdirat(run_dir, path_of(1, "stdout.log"), 0700), 0);
    append(1, "stderr.log", "good\n");
    assert_int_equal(symlinkat("1", run_dir, path_of(2, "")), 0); /* a rank that is a link */
    struct log_tail *tail = tail_of(3, true);
    read_all(tail, &notes);
    check_notes(&notes, "1e:good\n");
    assert_true(log_tail_trouble(tail, &trouble));
    assert_int_equal(trouble.error, ELOOP);
    assert_int_equal(trouble.component_index, 7);
    assert_int_equal(trouble.rank, 0);
    assert_false(log_tail_add(tail, "../actor", 0, 0, true));
    assert_false(log_tail_add(tail, "", 0, 0, true));
    assert_false(log_tail_add(tail, "actor", 0, -1, true));
    log_tail_free(tail);
}

TEST(a_loud_rank_does_not_starve_others)
{
    struct notes notes = {.text = TEXT_INIT};
    struct text loud = TEXT_INIT;
    make_rank(0);
    make_rank(1);
    text_repeat(&loud, 'x', 1 << 20);
    append(0, "stdout.log", text_string(&loud));
    append(1, "stdout.log", "quiet\n");
    struct log_tail *tail = tail_of(2, true);
    assert_true(log_tail_read(tail, take_note, &notes));
    assert_int_equal(notes.chunks, 2);
    assert_int_equal(notes.bytes, LOG_CHUNK_MAX + 6);
    read_all(tail, &notes);
    assert_int_equal(notes.bytes, (1 << 20) + 6);
    text_release(&loud);
    text_release(&notes.text);
    log_tail_free(tail);
}

/* What a tail does when the system has no watch for it. */
static void take_watches_away(struct log_tail *tail)
{
    close(tail->notify);
    tail->notify = -1;
}

TEST(without_watches_files_are_looked_at_in_turns)
{
    struct notes notes = {.text = TEXT_INIT};
    struct roost_error err;
    struct log_tail *tail = log_tail_new(run_dir, &err);
    take_watches_away(tail);
    for (int rank = 0; rank < 3; rank++) {
        make_rank(rank);
        assert_true(log_tail_add(tail, "actor", 7, rank, true));
    }
    assert_int_equal(log_tail_fd(tail), -1);
    assert_int_equal(log_tail_unwatched(tail), 3);
    read_all(tail, &notes);
    append(2, "stdout.log", "seen\n");
    wait_and_read(tail, &notes, 5);
    int wait = log_tail_timeout(tail);
    assert_true(wait > 0 && wait <= 100); /* no busy loop */
    append(2, "stdout.log", "again\n");
    append(1, "stderr.log", "other\n");
    wait_and_read(tail, &notes, 12);
    log_tail_free(tail);
    text_release(&notes.text);
}

TEST(lost_events_are_made_up_for)
{
    struct notes notes = {.text = TEXT_INIT};
    make_rank(0);
    struct log_tail *tail = tail_of(1, true);
    read_all(tail, &notes);
    append(0, "stdout.log", "lost\n");
    char events[4096];
    assert_true(read(tail->notify, events, sizeof events) > 0);
    tail->checks_all = true; /* what an overflow of the queue does */
    wait_and_read(tail, &notes, 5);
    check_notes(&notes, "0o:lost\n");
    log_tail_free(tail);
}

enum { MANY = 1000 };

TEST(a_thousand_ranks_need_few_descriptors)
{
    struct notes notes = {.text = TEXT_INIT};
    struct rlimit usual, few;
    for (int rank = 0; rank < MANY; rank++) {
        make_rank(rank);
        append(rank, "stdout.log", "out\n");
        append(rank, "stderr.log", "err\n");
    }
    getrlimit(RLIMIT_NOFILE, &usual);
    few = usual;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct log_tail *tail = tail_of(MANY, true);
    read_all(tail, &notes);
    assert_int_equal(notes.bytes, 8 * MANY);
    setrlimit(RLIMIT_NOFILE, &usual);
    for (int rank = 0; rank < MANY; rank++)
        append(rank, "stdout.log", "more\n");
    few.rlim_cur = 3; /* none to be had, whatever is closed */
    setrlimit(RLIMIT_NOFILE, &few);
    read_all(tail, &notes);
    assert_int_equal(notes.bytes, 8 * MANY);
    assert_true(log_tail_timeout(tail) > 0); /* not now: later */
    setrlimit(RLIMIT_NOFILE, &usual);
    wait_and_read(tail, &notes, 5 * MANY);
    while (!log_tail_finish(tail, take_note, &notes))
        ;
    assert_int_equal(notes.ends, 2 * MANY);
    struct log_trouble trouble;
    assert_false(log_tail_trouble(tail, &trouble));
    log_tail_free(tail);
    text_release(&notes.text);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_TESTS(WITH_FOLDER(what_is_there_and_what_comes_is_handed_on),
          WITH_FOLDER(what_was_there_can_be_left_out), WITH_FOLDER(a_rank_may_come_late),
          WITH_FOLDER(what_is_not_taken_comes_again), WITH_FOLDER(the_end_brings_half_lines),
          WITH_FOLDER(what_was_not_handed_on_is_counted),
          WITH_FOLDER(a_file_that_was_cut_or_replaced_starts_over),
          WITH_FOLDER(what_is_no_regular_file_is_not_read),
          WITH_FOLDER(a_loud_rank_does_not_starve_others),
          WITH_FOLDER(without_watches_files_are_looked_at_in_turns),
          WITH_FOLDER(lost_events_are_made_up_for),
          WITH_FOLDER(a_thousand_ranks_need_few_descriptors))
