/* screen_footer_test.c - progress bars of workers on a real terminal, whose bytes a tiny one interprets. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/screen/screen.h"
#include "tests/terminal.h"
#include "tests/unit.h"

enum { RANKS = 8 };

struct stage {
    int master, slave;
    struct screen *screen;
    struct terminal terminal;
    uint32_t memos[RANKS];
    size_t draws; /* times that the first bar was drawn */
};

static void stage_open(struct stage *stage, struct screen_options options)
{
    static const char *const names[] = {"actor"};
    *stage = (struct stage){0};
    assert_int_equal(openpty(&stage->master, &stage->slave, NULL, NULL, NULL), 0);
    assert_int_equal(fcntl(stage->master, F_SETFL, O_NONBLOCK), 0);
    options.components = names;
    options.component_count = 1;
    options.fds[0] = options.fds[1] = stage->slave;
    stage->screen = screen_new(&options);
    assert_non_null(stage->screen);
}

static void stage_close(struct stage *stage)
{
    screen_free(stage->screen);
    close(stage->slave);
    close(stage->master);
}

/* Lets the terminal show what has been written. */
static void look(struct stage *stage)
{
    char bytes[8192];
    for (bool is_out = false; !is_out;) {
        is_out = screen_flush(stage->screen);
        for (ssize_t got; (got = read(stage->master, bytes, sizeof bytes)) > 0;) {
            terminal_write(&stage->terminal, bytes, (size_t)got);
            for (const char *at = bytes;
                 (at = memmem(at, (size_t)(bytes + got - at), "[actor/0] 1", 11)); at++)
                stage->draws++;
        }
    }
    assert_int_equal(stage->terminal.controls, 0);
    assert_int_equal(stage->terminal.leaks, 0);
}

/* Waits until the footer may be drawn again, and looks. */
static void look_later(struct stage *stage)
{
    for (int timeout; (timeout = screen_timeout(stage->screen)) >= 0; look(stage))
        poll(NULL, 0, timeout);
    look(stage);
}

static size_t put(struct stage *stage, int32_t rank, const char *bytes, size_t len, bool is_end)
{
    struct log_chunk chunk = {0, rank, LOG_STDERR, bytes, len, is_end, &stage->memos[rank]};
    size_t taken = len;
    assert_true(screen_put(stage->screen, &chunk, &taken));
    return taken;
}

#define PUT(stage, rank, text) put(stage, rank, text, strlen(text), false)

static void check_rows(const struct stage *stage, const char *const *rows)
{
    int row = 0;
    for (; rows[row]; row++)
        assert_string_equal(stage->terminal.cells[row], rows[row]);
    for (; row < TERMINAL_ROWS; row++)
        assert_string_equal(stage->terminal.cells[row], "");
}

TEST(a_bar_updates_one_row_per_rank_and_becomes_a_line_when_it_ends)
{
    struct stage stage;
    stage_open(&stage, (struct screen_options){.height = 24, .width = 80});
    screen_status(stage.screen, "2 of 3 up");
    assert_int_equal(PUT(&stage, 1, "\r 10%\r 20%"), 6);
    PUT(&stage, 0, "\r 50%");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/0]  50%", "[actor/1]  20%", "2 of 3 up", NULL});
    PUT(&stage, 2, "a line\n");
    screen_say(stage.screen, "roost: said");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/2] a line", "roost: said", "[actor/0]  50%",
                                        "[actor/1]  20%", "2 of 3 up", NULL});
    screen_status(stage.screen, NULL);
    PUT(&stage, 1, " 20%\r100%\n");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/2] a line", "roost: said", "[actor/1] 100%",
                                        "[actor/0]  50%", NULL});
    /* It ends without a newline: the newest state stays. */
    put(&stage, 0, " 50%\r 60%", 9, true);
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/2] a line", "roost: said", "[actor/1] 100%",
                                        "[actor/0]  60%", NULL});
    stage_close(&stage);
}

TEST(a_bar_is_drawn_five_times_a_second_at_most)
{
    struct stage stage;
    stage_open(&stage, (struct screen_options){.height = 24});
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    int64_t passed = 0;
    for (int i = 0; passed < 700; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s1 step %d", i ? "" : "\r", i);
        PUT(&stage, 0, text);
        look(&stage);
        clock_gettime(CLOCK_MONOTONIC, &now);
        passed = (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    }
    assert_true(stage.draws >= 1);
    assert_true((int64_t)stage.draws <= passed / 200 + 1);
    stage_close(&stage);
}

TEST(bars_leave_half_of_the_terminal_to_lines)
{
    struct stage stage;
    stage_open(&stage, (struct screen_options){.height = 4});
    for (int32_t rank = 0; rank < 4; rank++)
        PUT(&stage, rank, "\r50%");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/0] 50%", "[actor/1] 50%", NULL});
    PUT(&stage, 3, "50%\rdone\n");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/3] done", "[actor/0] 50%", "[actor/1] 50%", NULL});
    screen_end_footer(stage.screen);
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/3] done", NULL});
    stage_close(&stage);
}

TEST(a_bar_is_never_wider_than_the_terminal)
{
    struct stage stage;
    stage_open(&stage,
               (struct screen_options){.height = 24, .width = 20, .has_color = {true, true}});
    PUT(&stage, 0, "\r\x1b[32m########\x1b[0m########");
    PUT(&stage, 1, "\r\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0");
    PUT(&stage, 2, "\r1\t2\t3");
    look_later(&stage);
    check_rows(&stage,
               (const char *[]){"[actor/0] #########", "[actor/1] ????", "[actor/2] 1 2 3", NULL});
    stage_close(&stage);
}

TEST(no_bars_where_none_are_wanted)
{
    struct stage stage;
    stage_open(&stage, (struct screen_options){0});
    PUT(&stage, 0, "\r 10%\r 20%");
    look_later(&stage);
    check_rows(&stage, (const char *[]){NULL});
    PUT(&stage, 0, " 20%\n");
    look_later(&stage);
    check_rows(&stage, (const char *[]){"[actor/0]  20%", NULL});
    stage_close(&stage);
}

/* Whatever ranks write: below each other stand labelled rows, and no row is written over. */
TEST(no_bytes_of_a_rank_reach_beyond_its_row)
{
    static const char *const pieces[] = {"\r",
                                         "\n",
                                         "\x1b[31m",
                                         "\x1b[2A",
                                         "\x1b[K",
                                         "\x1b]0;x\a",
                                         "50%",
                                         "\b\b\b\b",
                                         "   ",
                                         "\xc2\x9b"
                                         "A",
                                         "\x1b[11m",
                                         "\xe4\xbd\xa0",
                                         "\x1b[",
                                         "\v"};
    struct stage stage;
    stage_open(&stage,
               (struct screen_options){.height = 24, .width = 60, .has_color = {true, true}});
    static char logs[RANKS][1 << 16];
    size_t lens[RANKS] = {0}, taken[RANKS] = {0};
    uint32_t seed = 7;
    for (int i = 0; i < 4000; i++) {
        seed = seed * 1664525 + 1013904223;
        int32_t rank = (int32_t)(seed >> 8) % RANKS;
        const char *piece = pieces[(seed >> 16) % ROWS(pieces)];
        memcpy(logs[rank] + lens[rank], piece, strlen(piece));
        lens[rank] += strlen(piece);
        taken[rank] += put(&stage, rank, logs[rank] + taken[rank], lens[rank] - taken[rank], false);
        if (i % 500 == 0)
            look_later(&stage);
        look(&stage);
    }
    for (int32_t rank = 0; rank < RANKS; rank++)
        put(&stage, rank, logs[rank] + taken[rank], lens[rank] - taken[rank], true);
    look_later(&stage);
    for (int row = 0; row < stage.terminal.row; row++)
        assert_memory_equal(stage.terminal.cells[row], "[actor/", 7);
    assert_string_equal(stage.terminal.cells[stage.terminal.row], "");
    stage_close(&stage);
}

RUN_TESTS(cmocka_unit_test(a_bar_updates_one_row_per_rank_and_becomes_a_line_when_it_ends),
          cmocka_unit_test(a_bar_is_drawn_five_times_a_second_at_most),
          cmocka_unit_test(bars_leave_half_of_the_terminal_to_lines),
          cmocka_unit_test(a_bar_is_never_wider_than_the_terminal),
          cmocka_unit_test(no_bars_where_none_are_wanted),
          cmocka_unit_test(no_bytes_of_a_rank_reach_beyond_its_row))
