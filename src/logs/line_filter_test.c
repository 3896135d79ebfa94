/* line_filter_test.c - which sequences pass, and that nothing else reaches a terminal. */
#include "logs/line_filter.h"

#include <stdio.h>

#include "tests/terminal.h"
#include "tests/unit.h"

static const char *filtered(const char *text, size_t len, bool has_color)
{
    static char out[8192];
    char *to = out;
    assert_true(len * ESCAPE_GROWTH + FILTER_SLACK <= sizeof out);
    (void)filter_line(text, text + len, has_color, &to);
    *to = '\0';
    return out;
}

TEST(colours_pass_or_are_removed_and_end_with_the_line)
{
    static const struct {
        const char *text, *with_color, *without;
    } rows[] = {
        {"plain", "plain", "plain"},
        {"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m", "red"},
        {"\x1b[31mred\x1b[m", "\x1b[31mred\x1b[m", "red"},
        {"\x1b[31mred", "\x1b[31mred\x1b[0m", "red"},
        {"a\x1b[0mb\x1b[1;4m", "a\x1b[0mb\x1b[1;4m\x1b[0m", "ab"},
        {"\x1b[38;5;12mx\x1b[0m", "\x1b[38;5;12mx\x1b[0m", "x"},
        {"\x1b[38;2;10;11;12;1mx\x1b[0m", "\x1b[38;2;10;11;12;1mx\x1b[0m", "x"},
        {"\x1b[38:2::10:11:12mx\x1b[0m", "\x1b[38:2::10:11:12mx\x1b[0m", "x"},
        {"\x1b[4:3mcurly\x1b[0m", "\x1b[4:3mcurly\x1b[0m", "curly"},
        {"\xe4\xbd\xa0\x1b[32m\xe5\xa5\xbd\n", "\xe4\xbd\xa0\x1b[32m\xe5\xa5\xbd\x1b[0m",
         "\xe4\xbd\xa0\xe5\xa5\xbd"},
        {"\x1b[31mup to here\rnot", "\x1b[31mup to here\x1b[0m", "up to here"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CHECK_TEXT(rows[i].text, filtered(rows[i].text, strlen(rows[i].text), true),
                   rows[i].with_color);
        CHECK_TEXT(rows[i].text, filtered(rows[i].text, strlen(rows[i].text), false),
                   rows[i].without);
    }
}

TEST(every_other_sequence_is_escaped)
{
    static const char *const rows[][2] = {
        {"\x1b[2J", "\\x1b[2J"},                    /* clears */
        {"\x1b[1A", "\\x1b[1A"},                    /* goes up */
        {"\x1b[K", "\\x1b[K"},                      /* erases */
        {"\x1b]0;title\x07", "\\x1b]0;title\\x07"}, /* sets a title */
        {"\x1b[>4;2m", "\\x1b[>4;2m"},              /* changes keys */
        {"\x1b[?25l", "\\x1b[?25l"},                /* hides the cursor */
        {"\x1b[31 m", "\\x1b[31 m"},                /* a blank makes it another sequence */
        {"\x1b[11mx", "\\x1b[11mx"},                /* a font, which outlives a reset */
        {"\x1b[1;12mx", "\\x1b[1;12mx"},            /* the same, behind another */
        {"\x1b[38;5;1;11m", "\\x1b[38;5;1;11m"},    /* the same, behind a colour */
        {"\x1b[4294967307m", "\\x1b[4294967307m"},  /* 11, where numbers have 32 bits */
        {"\x1b[31", "\\x1b[31"},                    /* never finished */
        {"\x1b[", "\\x1b["},
        {"\x1b", "\\x1b"},
        {"\x1b[\x1b[31mx", "\\x1b[\x1b[31mx\x1b[0m"},
        {"\x9b"
         "31m",
         "\\x9b31m"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"},
        {"a\bb\vc\fd\x7f", "a\\x08b\\x0bc\\x0cd\\x7f"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i][0], filtered(rows[i][0], strlen(rows[i][0]), true), rows[i][1]);
}

TEST(a_sequence_has_a_greatest_length)
{
    char text[256] = "\x1b[";
    size_t len = 2;
    while (len < FILTER_SGR_MAX - 1) {
        text[len++] = '1';
        text[len++] = ';';
    }
    text[FILTER_SGR_MAX - 1] = 'm';
    assert_int_equal(filter_sgr_length(text, text + FILTER_SGR_MAX), FILTER_SGR_MAX);
    text[FILTER_SGR_MAX - 1] = ';';
    text[FILTER_SGR_MAX] = 'm';
    assert_int_equal(filter_sgr_length(text, text + FILTER_SGR_MAX + 1), 0);
}

TEST(a_cut_divides_neither_characters_nor_sequences)
{
    static const struct {
        const char *text;
        size_t whole;
    } rows[] = {{"abc", 3},         {"ab\x1b", 2},        {"ab\x1b[", 2}, {"ab\x1b[3", 2},
                {"ab\x1b[31;4", 2}, {"ab\x1b[31m", 7},    {"[31;4", 5},   {"ab[31", 5},
                {"a\xe4\xbd", 1},   {"a\xe4\xbd\xa0", 4}, {"", 0}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *end = rows[i].text + strlen(rows[i].text);
        assert_int_equal(filter_whole(rows[i].text, end) - rows[i].text, rows[i].whole);
    }
}

/* Bytes that mean something to a terminal come up far more often than by chance. */
static size_t make_bytes(char *out, size_t room, uint32_t *seed)
{
    static const char *const pieces[] = {
        "\x1b", "[", "\x1b[", "m",    ";",    ":",    "1",   "0",     "38", "48",
        "5",    "2", "11",    "\x9b", "\xc2", "\x9b", "]0;", "\a",    "\b", "\x1b[31m",
        "A",    "K", "\t",    "\xe4", "\xbd", "\xa0", "x",   "\x1b[m"};
    size_t len = 0;
    while (len + 8 < room) {
        *seed = *seed * 1664525 + 1013904223;
        const char *piece = pieces[(*seed >> 16) % ROWS(pieces)];
        memcpy(out + len, piece, strlen(piece));
        len += strlen(piece);
        if (*seed >> 28 == 0)
            break;
    }
    return len;
}

TEST(no_bytes_can_do_more_to_a_terminal_than_colour_their_line)
{
    static struct terminal terminal;
    uint32_t seed = 1;
    for (int i = 0; i < 50000; i++) {
        char bytes[128];
        size_t len = make_bytes(bytes, sizeof bytes, &seed);
        for (int has_color = 0; has_color < 2; has_color++) {
            const char *text = filtered(bytes, len, has_color);
            terminal_write(&terminal, text, strlen(text));
            terminal_write(&terminal, "\n", 1);
            assert_true(has_color || !strchr(text, '\x1b'));
        }
        if (!terminal_is_calm(&terminal))
            fail_msg("%s", filtered(bytes, len, true));
    }
}

RUN_TESTS(cmocka_unit_test(colours_pass_or_are_removed_and_end_with_the_line),
          cmocka_unit_test(every_other_sequence_is_escaped),
          cmocka_unit_test(a_sequence_has_a_greatest_length),
          cmocka_unit_test(a_cut_divides_neither_characters_nor_sequences),
          cmocka_unit_test(no_bytes_can_do_more_to_a_terminal_than_colour_their_line))
