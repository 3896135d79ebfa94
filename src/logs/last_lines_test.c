/* last_lines_test.c - the end of logs of every shape. */
#include "logs/last_lines.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit.h"

static char folder[] = "/tmp/roost-last-XXXXXX";
static int run_dir;

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return mkdirat(run_dir, "actor", 0700) || mkdirat(run_dir, "actor/0", 0700);
}

static int tear_down(void **state)
{
    (void)state;
    unlinkat(run_dir, "actor/0/stderr.log", 0);
    unlinkat(run_dir, "actor/0", AT_REMOVEDIR);
    unlinkat(run_dir, "actor", AT_REMOVEDIR);
    close(run_dir);
    return rmdir(folder);
}

static void write_log(const char *bytes, size_t len)
{
    int fd = openat(run_dir, "actor/0/stderr.log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static void check_styled(const char *log, size_t len, int count, bool has_color,
                         const char *expected)
{
    struct text out = TEXT_INIT;
    write_log(log, len);
    int shown = last_lines(run_dir, "actor", 0, LOG_STDERR, count,
                           &(struct last_lines_style){"> ", has_color}, &out);
    CHECK_TEXT(log, text_string(&out) ? text_string(&out) : "", expected);
    int lines = 0;
    for (const char *at = expected; *at; at++)
        lines += *at == '\n';
    assert_int_equal(shown, lines);
    text_release(&out);
}

static void check_lines(const char *log, size_t len, int count, const char *expected)
{
    check_styled(log, len, count, false, expected);
}

TEST(the_last_lines_are_shown_safely)
{
    static const struct {
        const char *log;
        int count;
        const char *expected;
    } rows[] = {
        {"", 3, ""},
        {"\n\r\n\n", 3, ""},
        {"one\n", 3, "> one\n"},
        {"one", 3, "> one\n"},
        {"one\ntwo\nthree\nfour\n", 2, "> three\n> four\n"},
        {"one\ntwo\nthree\nfour", 3, "> two\n> three\n> four\n"},
        {"one\n\ntwo\n\n\n", 3, "> one\n> \n> two\n"},
        {"one\n\ntwo\n", 2, "> \n> two\n"},
        {"start\n10%\r20%\r30%\n", 2, "> start\n> 30%\n"},
        {"start\n\r 10%\r 20%\r 30%", 2, "> start\n>  30%\n"},
        {"start\n\r 10%\r 20%\n\n\r 30%\r 40%\n\nend\n", 4, "> start\n>  20%\n>  40%\n> end\n"},
        {"start\n\r 10%\r     \r\nend\n", 3, "> start\n>  10%\n> end\n"},
        {"dos\r\n\r\nlines\r\n", 3, "> dos\n> \n> lines\n"},
        {"\x1b[31mred\x1b[0m \x1b[1mbold\n", 1, "> red bold\n"},
        {"\x1b[2Jgone\xff\n", 1, "> \\x1b[2Jgone\\xff\n"},
        {"one\ntwo\n", 0, ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_lines(rows[i].log, strlen(rows[i].log), rows[i].count, rows[i].expected);
}

TEST(colours_end_with_their_line)
{
    static const char log[] = "a\x1b[31mb\n\rc\r\x1b[32md\n\x1b[2Je\n";
    check_styled(log, sizeof log - 1, 3, true,
                 "> a\x1b[31mb\x1b[0m\n> \x1b[32md\x1b[0m\n> \\x1b[2Je\n");
}

TEST(a_long_bar_is_one_line)
{
    struct text log = TEXT_INIT;
    text_puts(&log, "start\n");
    for (int i = 0; i < 20000; i++)
        text_printf(&log, "\rstep %d", i);
    check_lines(log.bytes, log.len, 3, "> step 19999\n");
    text_release(&log);
}

TEST(a_large_log_costs_little)
{
    struct text log = TEXT_INIT, out = TEXT_INIT;
    for (int i = 0; i < 20000; i++)
        text_printf(&log, "line %d\n", i);
    check_lines(log.bytes, log.len, 2, "> line 19998\n> line 19999\n");
    /* More lines than the part that is read: only whole ones. */
    assert_true(last_lines(run_dir, "actor", 0, LOG_STDERR, 100000,
                           &(struct last_lines_style){"", false}, &out) > 5000);
    assert_memory_equal(text_string(&out), "line 1", 6);
    text_release(&log);
    text_repeat(&log, 'x', 200000);
    write_log(log.bytes, log.len);
    out.len = 0;
    assert_int_equal(
        last_lines(run_dir, "actor", 0, LOG_STDERR, 5, &(struct last_lines_style){"", false}, &out),
        1);
    assert_int_equal(out.len, 1004);
    assert_string_equal(text_string(&out) + 1000, "...\n");
    text_release(&log);
    text_release(&out);
}

TEST(what_is_no_log_has_no_lines)
{
    struct text out = TEXT_INIT;
    assert_int_equal(
        last_lines(run_dir, "actor", 1, LOG_STDERR, 5, &(struct last_lines_style){"", false}, &out),
        0);
    assert_int_equal(last_lines(run_dir, "../actor", 0, LOG_STDERR, 5,
                                &(struct last_lines_style){"", false}, &out),
                     0);
    assert_int_equal(last_lines(run_dir, "actor", -1, LOG_STDERR, 5,
                                &(struct last_lines_style){"", false}, &out),
                     0);
    unlinkat(run_dir, "actor/0/stderr.log", 0);
    assert_int_equal(symlinkat("/etc/passwd", run_dir, "actor/0/stderr.log"), 0);
    assert_int_equal(
        last_lines(run_dir, "actor", 0, LOG_STDERR, 5, &(struct last_lines_style){"", false}, &out),
        0);
    unlinkat(run_dir, "actor/0/stderr.log", 0);
    assert_int_equal(mkfifoat(run_dir, "actor/0/stderr.log", 0600), 0);
    assert_int_equal(
        last_lines(run_dir, "actor", 0, LOG_STDERR, 5, &(struct last_lines_style){"", false}, &out),
        0);
    text_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_lines_are_shown_safely),
        cmocka_unit_test(colours_end_with_their_line), cmocka_unit_test(a_long_bar_is_one_line),
        cmocka_unit_test(a_large_log_costs_little), cmocka_unit_test(what_is_no_log_has_no_lines)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
