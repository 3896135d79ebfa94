/* logs_view_test.c - run directories made by hand, shown in order and followed. */
#include "cli/screen/logs_view.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/unit.h"

static char folder[64];
static int run_dir, outs[2];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/roost-logs-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 2; i++)
        outs[i] = memfd_create("logs", MFD_CLOEXEC);
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
    close(outs[0]);
    close(outs[1]);
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void append(const char *component, int rank, const char *file, const char *text)
{
    char path[128];
    mkdirat(run_dir, component, 0700);
    snprintf(path, sizeof path, "%s/%d", component, rank);
    mkdirat(run_dir, path, 0700);
    snprintf(path, sizeof path, "%s/%d/%s", component, rank, file);
    int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void check_out(int which, const char *expected)
{
    char bytes[8192];
    ssize_t got = pread(outs[which], bytes, sizeof bytes - 1, 0);
    assert_true(got >= 0);
    bytes[got] = '\0';
    assert_string_equal(bytes, expected);
}

static bool show(struct logs_options options, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    int failed = 0;
    options.screen.fds[0] = outs[0];
    options.screen.fds[1] = outs[1];
    bool is_good = logs_show(run_dir, &options, &failed, &diag);
    assert_int_equal(failed, 0);
    return is_good;
}

static void make_run(void)
{
    append("rollout", 0, "stdout.log", "r0\n");
    append("actor10", 0, "stdout.log", "a10\n");
    append("actor9", 10, "stdout.log", "ten\n");
    append("actor9", 2, "stdout.log", "two\nhalf");
    append("actor9", 2, "stderr.log", "\x1b[31moops\n");
    int fd = openat(run_dir, "run.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    mkdirat(run_dir, "actor9/02", 0700); /* no rank */
    mkdirat(run_dir, "actor9/notes", 0700);
    assert_int_equal(symlinkat("actor9", run_dir, "link"), 0);
}

TEST(logs_come_in_natural_order)
{
    struct roost_error err;
    make_run();
    assert_true(show((struct logs_options){0}, &err));
    check_out(
        0, "[actor9/2] two\n[actor9/2] half\n[actor9/10] ten\n[actor10/0] a10\n[rollout/0] r0\n");
    check_out(1, "roost: this run has no times of its lines: its logs follow one after the other\n"
                 "[actor9/2] oops\n");
}

TEST(component_ranks_and_stream_narrow_it)
{
    struct roost_error err;
    struct rank_range range = {0, 2};
    struct rankset set = {.ranges = &range, .count = 1};
    make_run();
    assert_true(show(
        (struct logs_options){.components = "actor9", .ranks = &set, .screen = {.hides = {true}}},
        &err));
    check_out(0, "");
    check_out(1, "[actor9/2] oops\n");
}

TEST(without_labels_the_bytes_are_the_logs)
{
    struct roost_error err;
    make_run();
    assert_true(show(
        (struct logs_options){.components = "actor9", .screen = {.has_no_label = true}}, &err));
    check_out(0, "two\nhalften\n");
    check_out(1, "\x1b[31moops\n");
}

TEST(a_component_that_is_not_there_is_said)
{
    struct roost_error err;
    make_run();
    assert_false(show((struct logs_options){.components = "rolout"}, &err));
    assert_int_equal(err.code, ROOST_ERR_USAGE);
    assert_string_equal(err.message, "this run has no logs of a component 'rolout'");
    assert_string_equal(err.hint, "did you mean 'rollout'?");
    assert_false(show((struct logs_options){.components = "xyzzy"}, &err));
    assert_string_equal(err.hint, "leave --component out to see all");
}

TEST(a_run_without_logs_shows_nothing)
{
    struct roost_error err;
    assert_true(show((struct logs_options){0}, &err));
    check_out(0, "");
}

/* A run that lives as long as this is asked, and does something each time. */
static bool live(void *ctx)
{
    int *turn = ctx;
    switch ((*turn)++) {
    case 0: append("actor", 0, "stdout.log", "lf\n"); return true;
    case 1: append("actor", 1, "stderr.log", "late rank\n"); return true;
    case 2: append("env", 0, "stdout.log", "late component\n"); return true;
    default: append("env", 1, "stdout.log", "last words"); return false;
    }
}

TEST(following_shows_what_comes_until_the_run_has_ended)
{
    struct roost_error err;
    int turn = 0;
    append("actor", 0, "stdout.log", "start\nha");
    assert_true(show((struct logs_options){.follows = true, .is_alive = live, .ctx = &turn}, &err));
    check_out(0, "[actor/0] start\n[actor/0] half\n[env/0] late component\n[env/1] last words\n");
    check_out(1, "[actor/1] late rank\n");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_TESTS(WITH_FOLDER(logs_come_in_natural_order),
          WITH_FOLDER(component_ranks_and_stream_narrow_it),
          WITH_FOLDER(without_labels_the_bytes_are_the_logs),
          WITH_FOLDER(a_component_that_is_not_there_is_said),
          WITH_FOLDER(a_run_without_logs_shows_nothing),
          WITH_FOLDER(following_shows_what_comes_until_the_run_has_ended))
