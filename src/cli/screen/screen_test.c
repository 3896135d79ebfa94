/* screen_test.c - the bytes a screen makes of chunks, however they are split, and readers that lag, stop
 * or go. */
#include "cli/screen/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "tests/unit.h"

static const char *const names[] = {"actor", "rollout"};

/* A screen whose both ways out are files in memory. */
struct stage {
    struct screen *screen;
    struct screen_options options;
    struct rankset ranks;
    int fds[2];
    uint32_t memos[2][4][2];
};

static void stage_open(struct stage *stage)
{
    for (int i = 0; i < 2; i++) {
        stage->fds[i] = memfd_create("screen", MFD_CLOEXEC);
        stage->options.fds[i] = stage->fds[i];
    }
    stage->options.components = names;
    stage->options.component_count = 2;
    stage->screen = screen_new(&stage->options);
    assert_non_null(stage->screen);
}

static void stage_close(struct stage *stage)
{
    screen_free(stage->screen);
    close(stage->fds[0]);
    close(stage->fds[1]);
}

static size_t put(struct stage *stage, int32_t component, int32_t rank, enum log_stream stream,
                  const char *bytes, size_t len, bool is_end)
{
    size_t taken = len;
    struct log_chunk chunk = {
        component, rank, stream, bytes, len, is_end, &stage->memos[component][rank][stream]};
    assert_true(screen_put(stage->screen, &chunk, &taken));
    return taken;
}

/* What was written so far; the caller frees it. */
static struct text written(struct stage *stage, int which)
{
    struct text out = TEXT_INIT;
    char bytes[4096];
    ssize_t got;
    assert_true(screen_drain(stage->screen, -1, -1));
    for (off_t at = 0; (got = pread(stage->fds[which], bytes, sizeof bytes, at)) > 0; at += got)
        text_append(&out, bytes, (size_t)got);
    assert_non_null(text_string(&out));
    return out;
}

static void check_written(struct stage *stage, int which, const char *expected)
{
    struct text out = written(stage, which);
    assert_string_equal(text_string(&out), expected);
    text_release(&out);
}

/* Feeds `text` in pieces that end at `first` and at `second`, as a tail does: what was not taken comes
 * again with what follows. */
static struct text show_split(const char *text, size_t len, size_t first, size_t second,
                              struct screen_options options)
{
    struct stage stage = {.options = options};
    stage_open(&stage);
    size_t at = 0, ends[] = {first, second, len};
    for (int i = 0; i < 3; i++)
        at += put(&stage, 0, 0, LOG_STDOUT, text + at, ends[i] - at, i == 2);
    assert_int_equal(at, len);
    struct text out = written(&stage, 0);
    stage_close(&stage);
    return out;
}

/* All splits into three give the same bytes. */
static void check_shown(const char *text, size_t len, const char *expected,
                        struct screen_options options)
{
    for (size_t first = 0; first <= len; first++) {
        for (size_t second = first; second <= len; second += 1 + len / 16) {
            struct text out = show_split(text, len, first, second, options);
            CHECK_TEXT(text, text_string(&out), expected);
            text_release(&out);
        }
    }
}

TEST(every_physical_line_has_a_label)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"", ""},
        {"one\ntwo\n", "[actor/0] one\n[actor/0] two\n"},
        {"one\n\n\ntwo", "[actor/0] one\n[actor/0] \n[actor/0] \n[actor/0] two\n"},
        {"no newline", "[actor/0] no newline\n"},
        {"dos\r\nlines\r\n\r\n", "[actor/0] dos\n[actor/0] lines\n[actor/0] \n"},
        {"\r 10%\r 20%\r\n", "[actor/0]  20%\n"},
        {"over\rwritten\n", "[actor/0] written\n"},
        {"\r 10%\r 20%", "[actor/0]  20%\n"},
        {"red \x1b[31mred\n", "[actor/0] red red\n"},
        {"three\r\r\nreturns\n", "[actor/0] three\n[actor/0] returns\n"},
        {"ok\n[rollout/1] forged\r[actor/0] too\n", "[actor/0] ok\n[actor/0] [actor/0] too\n"},
        {"\x1b[2J\x1b]52;c;eA==\x07\n", "[actor/0] \\x1b[2J\\x1b]52;c;eA==\\x07\n"},
        {"C1 \xc2\x9b"
         "31m \x9b"
         "31m\n",
         "[actor/0] C1 \\xc2\\x9b31m \\x9b31m\n"},
        {"\xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x90\x94\n",
         "[actor/0] \xe4\xbd\xa0\xe5\xa5\xbd \xf0\x9f\x90\x94\n"},
        {"tab\there \x7f\n", "[actor/0] tab\there \\x7f\n"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_shown(rows[i].text, strlen(rows[i].text), rows[i].expected,
                    (struct screen_options){0});
}

TEST(all_bytes_have_their_golden_form)
{
    char text[256];
    struct text expected = TEXT_INIT;
    for (int i = 0; i < 256; i++)
        text[i] = (char)i;
    text_puts(&expected, "[actor/0] ");
    for (int i = 0; i < 256; i++)
        if (i == 11 || i == 12) /* a state that the carriage return ends */
            continue;
        else if (i == '\n' || i == '\r')
            text_puts(&expected, i == '\n' ? "\n[actor/0] " : "");
        else if ((i >= 0x20 && i < 0x7f) || i == '\t')
            text_char(&expected, (char)i);
        else
            text_printf(&expected, "\\x%02x", (unsigned)i);
    text_puts(&expected, "\n");
    check_shown(text, sizeof text, text_string(&expected), (struct screen_options){0});
    text_release(&expected);
}

/* A line of `len` letters, and what is left of it on the screen. */
static void check_long(size_t len, const char *ending)
{
    struct text text = TEXT_INIT, expected = TEXT_INIT;
    bool is_cut = len > LOG_LINE_MAX;
    bool is_replaced = !is_cut && strcmp(ending, "\r") == 0;
    text_repeat(&text, 'x', (int)len);
    text_puts(&text, ending);
    text_puts(&text, "next\n");
    if (!is_replaced) {
        text_puts(&expected, "[actor/0] ");
        text_repeat(&expected, 'x', is_cut ? LOG_LINE_MAX : (int)len);
        text_puts(&expected, is_cut ? " [... cut at 64 KiB]\n" : "\n");
    }
    text_puts(&expected, "[actor/0] next\n");
    const size_t splits[] = {0, 1, LOG_LINE_MAX - 1, LOG_LINE_MAX, LOG_LINE_MAX + 1, len, len + 1};
    for (size_t i = 0; i < ROWS(splits); i++)
        for (size_t k = 0; k < ROWS(splits); k++) {
            if (splits[i] > splits[k] || splits[k] > text.len)
                continue;
            struct text out =
                show_split(text.bytes, text.len, splits[i], splits[k], (struct screen_options){0});
            assert_int_equal(out.len, expected.len);
            assert_string_equal(text_string(&out), text_string(&expected));
            text_release(&out);
        }
    text_release(&text);
    text_release(&expected);
}

TEST(a_long_line_is_cut_with_a_mark)
{
    static const size_t lengths[] = {LOG_LINE_MAX - 1, LOG_LINE_MAX, LOG_LINE_MAX + 1,
                                     3 * LOG_LINE_MAX};
    static const char *const endings[] = {"\n", "\r", "\r\n"};
    for (size_t i = 0; i < ROWS(lengths); i++)
        for (size_t k = 0; k < ROWS(endings); k++)
            check_long(lengths[i], endings[k]);
}

TEST(streams_go_their_ways_and_partial_lines_wait)
{
    struct stage stage = {0};
    stage_open(&stage);
    assert_int_equal(put(&stage, 0, 1, LOG_STDOUT, "half", 4, false), 0);
    assert_int_equal(put(&stage, 1, 3, LOG_STDOUT, "whole\nha", 8, false), 6);
    assert_int_equal(put(&stage, 0, 1, LOG_STDERR, "oops\n", 5, false), 5);
    assert_int_equal(put(&stage, 0, 1, LOG_STDOUT, "half and half\n", 14, false), 14);
    assert_int_equal(put(&stage, 1, 3, LOG_STDOUT, "ha", 2, true), 2);
    check_written(&stage, 0, "[rollout/3] whole\n[actor/1] half and half\n[rollout/3] ha\n");
    check_written(&stage, 1, "[actor/1] oops\n");
    stage_close(&stage);
}

TEST(only_what_is_asked_for_is_shown)
{
    struct rank_range range = {2, 3};
    struct rankset set = {.ranges = &range, .count = 1};
    struct stage stage = {.options = {.ranks = &set, .hides = {false, true}}};
    stage_open(&stage);
    assert_false(screen_shows(stage.screen, 1));
    put(&stage, 0, 1, LOG_STDOUT, "no\n", 3, false);
    put(&stage, 0, 2, LOG_STDOUT, "yes\n", 4, false);
    put(&stage, 0, 2, LOG_STDERR, "no\n", 3, false);
    check_written(&stage, 0, "[actor/2] yes\n");
    check_written(&stage, 1, "");
    stage_close(&stage);
    struct stage quiet = {.options = {.is_quiet = true}};
    stage_open(&quiet);
    put(&quiet, 0, 0, LOG_STDOUT, "no\n", 3, true);
    check_written(&quiet, 0, "");
    stage_close(&quiet);
}

TEST(without_labels_a_file_gets_the_bytes_themselves)
{
    static const char text[] = "a\x1b[1m\r\n\xff\n\nend";
    check_shown(text, sizeof text - 1, text, (struct screen_options){.has_no_label = true});
}

TEST(colours_follow_the_component_and_end_behind_the_label)
{
    struct stage stage = {.options = {.has_color = {true, false}}};
    stage_open(&stage);
    put(&stage, 0, 0, LOG_STDOUT, "x\n", 2, false);
    put(&stage, 1, 0, LOG_STDOUT, "y\n", 2, false);
    put(&stage, 1, 0, LOG_STDERR, "z\n", 2, false);
    put(&stage, 1, 1, LOG_STDOUT, "\x1b[1mb\n", 6, false);
    put(&stage, 1, 1, LOG_STDERR, "\x1b[1mb\n", 6, false);
    check_written(&stage, 0,
                  "\x1b[38;5;32m[actor/0]\x1b[0m x\n\x1b[38;5;208m[rollout/0]\x1b[0m y\n"
                  "\x1b[38;5;208m[rollout/1]\x1b[0m \x1b[1mb\x1b[0m\n");
    check_written(&stage, 1, "[rollout/0] z\n[rollout/1] b\n");
    stage_close(&stage);
}

/* --- readers --- */

static struct screen *pipe_screen(int ends[2])
{
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct screen_options options = {
        .components = names, .component_count = 2, .fds = {ends[1], ends[1]}};
    struct screen *screen = screen_new(&options);
    assert_non_null(screen);
    return screen;
}

static bool feed_block(struct screen *screen, size_t *taken)
{
    static char block[100000];
    static uint32_t memo;
    memset(block, 'x', sizeof block);
    for (size_t i = 99; i < sizeof block; i += 100)
        block[i] = '\n';
    struct log_chunk chunk = {0, 0, LOG_STDOUT, block, sizeof block, false, &memo};
    return screen_put(screen, &chunk, taken);
}

TEST(a_reader_that_does_not_read_costs_no_memory_and_loses_nothing)
{
    int ends[2];
    struct screen *screen = pipe_screen(ends);
    size_t taken = 0, total = 0;
    bool goes_on = true;
    for (int i = 0; i < 1000 && goes_on; i++) {
        goes_on = feed_block(screen, &taken);
        total += taken;
    }
    assert_false(goes_on);
    assert_true(total < 1000000);
    size_t shown = total / 100 * 110; /* every line has a label of ten bytes */
    for (int i = 0; i < 5; i++) {
        assert_false(feed_block(screen, &taken));
        assert_int_equal(taken, 0);
    }
    /* The flags of the descriptor are as they were: others share it. */
    assert_false(fcntl(ends[1], F_GETFL) & O_NONBLOCK);
    struct pollfd polled[SCREEN_FDS];
    assert_int_equal(screen_poll(screen, polled), 1);
    char bytes[65536];
    size_t seen = 0;
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    for (bool is_out = false; !is_out;) {
        is_out = screen_flush(screen);
        for (ssize_t got; (got = read(ends[0], bytes, sizeof bytes)) > 0;)
            seen += (size_t)got;
    }
    assert_int_equal(seen, shown);
    assert_int_equal(screen_poll(screen, polled), 0);
    assert_false(screen_is_full(screen));
    screen_free(screen);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_drain_stops_when_it_is_told_to)
{
    int ends[2], stop[2];
    struct screen *screen = pipe_screen(ends);
    size_t taken;
    while (feed_block(screen, &taken))
        ;
    assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
    assert_int_equal(write(stop[1], "x", 1), 1);
    assert_false(screen_drain(screen, stop[0], -1));
    screen_free(screen);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(stop[i]);
    }
}

TEST(a_drain_does_not_wait_longer_for_a_reader_that_has_stopped)
{
    int ends[2];
    struct screen *screen = pipe_screen(ends);
    size_t taken;
    while (feed_block(screen, &taken))
        ;
    assert_false(screen_drain(screen, -1, 1));
    screen_free(screen);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_reader_that_has_gone_is_remembered)
{
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    struct screen *screen = pipe_screen(ends);
    size_t taken;
    close(ends[0]);
    for (int i = 0; i < 100; i++) {
        assert_true(feed_block(screen, &taken));
        assert_int_equal(taken, 100000);
    }
    assert_true(screen_drain(screen, -1, -1));
    assert_int_equal(screen_error(screen, 0), EPIPE);
    screen_free(screen);
    close(ends[1]);
}

TEST(a_full_disk_is_remembered)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct screen_options options = {
        .components = names, .component_count = 2, .fds = {full, full}};
    struct screen *screen = screen_new(&options);
    size_t taken;
    assert_true(feed_block(screen, &taken));
    assert_true(screen_flush(screen));
    assert_int_equal(screen_error(screen, 0), ENOSPC);
    screen_free(screen);
    close(full);
}

/* --- the terminal --- */

static struct text read_terminal(int master)
{
    struct text out = TEXT_INIT;
    char bytes[4096];
    for (ssize_t got; (got = read(master, bytes, sizeof bytes)) > 0;)
        text_append(&out, bytes, (size_t)got);
    assert_non_null(text_string(&out));
    return out;
}

TEST(a_status_is_drawn_at_the_bottom_and_taken_away_for_lines)
{
    int master, slave;
    uint32_t memo = 0;
    assert_int_equal(openpty(&master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(fcntl(master, F_SETFL, O_NONBLOCK), 0);
    struct screen_options options = {.components = names,
                                     .component_count = 2,
                                     .fds = {slave, slave},
                                     .width = 12,
                                     .has_no_label = true};
    struct screen *screen = screen_new(&options);
    screen_status(screen, "1 of 2 up and more than fits");
    screen_status(screen, "2 of 2 up"); /* too soon: it waits */
    assert_true(screen_timeout(screen) >= 0);
    struct log_chunk chunk = {0, 0, LOG_STDOUT, "\x1b[1mhi\nhal", 11, false, &memo};
    size_t taken;
    assert_true(screen_put(screen, &chunk, &taken));
    assert_int_equal(taken, 7);
    screen_status(screen, NULL);
    assert_true(screen_flush(screen));
    struct text out = read_terminal(master);
    assert_string_equal(text_string(&out), "\r1 of 2 up a\x1b[K\r\x1b[Khi\r\n");
    text_release(&out);
    screen_free(screen);
    close(slave);
    close(master);
}

TEST(no_status_where_there_is_no_terminal)
{
    struct stage stage = {0};
    stage_open(&stage);
    screen_status(stage.screen, "1 of 2 up");
    screen_say(stage.screen, "roost: said");
    assert_int_equal(screen_timeout(stage.screen), -1);
    check_written(&stage, 0, "");
    check_written(&stage, 1, "roost: said\n");
    stage_close(&stage);
}

RUN_TESTS(cmocka_unit_test(every_physical_line_has_a_label),
          cmocka_unit_test(all_bytes_have_their_golden_form),
          cmocka_unit_test(a_long_line_is_cut_with_a_mark),
          cmocka_unit_test(streams_go_their_ways_and_partial_lines_wait),
          cmocka_unit_test(only_what_is_asked_for_is_shown),
          cmocka_unit_test(without_labels_a_file_gets_the_bytes_themselves),
          cmocka_unit_test(colours_follow_the_component_and_end_behind_the_label),
          cmocka_unit_test(a_reader_that_does_not_read_costs_no_memory_and_loses_nothing),
          cmocka_unit_test(a_drain_stops_when_it_is_told_to),
          cmocka_unit_test(a_drain_does_not_wait_longer_for_a_reader_that_has_stopped),
          cmocka_unit_test(a_reader_that_has_gone_is_remembered),
          cmocka_unit_test(a_full_disk_is_remembered),
          cmocka_unit_test(a_status_is_drawn_at_the_bottom_and_taken_away_for_lines),
          cmocka_unit_test(no_status_where_there_is_no_terminal))
