/* line_reader_test.c - lines of bytes, however the bytes are divided. */
#include "logs/line_reader.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "tests/unit.h"

/* Reads [at, at + len) as a tail does: what is not consumed comes again, with what follows. */
static struct text read_split(const char *at, size_t len, size_t first, size_t second)
{
    struct text out = TEXT_INIT;
    size_t ends[] = {first, second, len}, from = 0;
    uint32_t memo = 0;
    char *line = malloc(LOG_LINE_ROOM);
    for (int i = 0; i < 3; i++) {
        struct line_reader reader = {.at = at + from,
                                     .end = at + ends[i],
                                     .memo = memo,
                                     .is_end = i == 2,
                                     .has_color = true};
        char *to = line;
        while (line_read(&reader, &to) == LINE_WHOLE) {
            text_append(&out, line, (size_t)(to - line));
            text_puts(&out, "|");
            to = line;
        }
        from = (size_t)(reader.at - at);
        memo = reader.memo;
    }
    assert_int_equal(from, len);
    free(line);
    assert_non_null(text_string(&out));
    return out;
}

TEST(a_line_shows_its_newest_state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"", ""},
        {"one\ntwo\n", "one|two|"},
        {"\n\n", "||"},
        {"no newline", "no newline|"},
        {"dos\r\nlines\r\n\r\n", "dos|lines||"},
        {"three\r\r\nreturns\n", "three|returns|"},
        {"\r 10%\r 20%\r 30%\n", " 30%|"},
        {"\r 10%\r 20%\r 30%", " 30%|"},
        {"\r 10%\r 20%\r", " 20%|"},
        {"10%\r20%\r\n", "20%|"},
        {"10%\r20%\r   \r", "20%|"},
        {"10%\r20%\r   \rdone\n", "done|"},
        {"   \r\n", "   |"},
        {"\r\r\r", ""},
        {"bar 1\rbar 2\nline\nbar 3\rbar 4\n", "bar 2|line|bar 4|"},
        {"\r\x1b[32m##\x1b[0m\r\x1b[32m###\x1b[0m\n", "\x1b[32m###\x1b[0m|"},
        {"\r\x1b[32m##\r\x1b[32m###", "\x1b[32m###\x1b[0m|"},
        {"forged\r[actor/1] label\n", "[actor/1] label|"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t len = strlen(rows[i].text);
        for (size_t first = 0; first <= len; first++)
            for (size_t second = first; second <= len; second++) {
                struct text out = read_split(rows[i].text, len, first, second);
                CHECK_TEXT(rows[i].text, text_string(&out), rows[i].expected);
                text_release(&out);
            }
    }
}

TEST(an_open_bar_is_known_and_its_line_is_not_yet_there)
{
    char *line = malloc(LOG_LINE_ROOM), *to = line;
    static const char text[] = "line\n 10%\r 20%\r  ";
    struct line_reader reader = {.at = text, .end = text + sizeof text - 1};
    assert_int_equal(line_read(&reader, &to), LINE_WHOLE);
    to = line;
    assert_int_equal(line_read(&reader, &to), LINE_OPEN);
    assert_int_equal(to - line, 4);
    assert_memory_equal(line, " 20%", 4);
    assert_true(line_is_open(reader.memo));
    assert_string_equal(reader.at, " 20%\r  ");
    /* A line without a carriage return is not a bar. */
    reader = (struct line_reader){.at = text, .end = text + 3};
    to = line;
    assert_int_equal(line_read(&reader, &to), LINE_NONE);
    assert_ptr_equal(to, line);
    assert_false(line_is_open(reader.memo));
    free(line);
}

static void check_long(const struct text *text, const char *expected)
{
    const size_t splits[] = {0,
                             1,
                             LOG_LINE_MAX - 1,
                             LOG_LINE_MAX,
                             LOG_LINE_MAX + 1,
                             2 * LOG_LINE_MAX,
                             2 * LOG_LINE_MAX + 2,
                             text->len - 1,
                             text->len};
    for (size_t i = 0; i < ROWS(splits); i++)
        for (size_t k = i; k < ROWS(splits); k++) {
            if (splits[k] > text->len || splits[i] > splits[k])
                continue;
            struct text out = read_split(text->bytes, text->len, splits[i], splits[k]);
            assert_string_equal(text_string(&out) + (out.len > 60 ? out.len - 60 : 0),
                                expected + (strlen(expected) > 60 ? strlen(expected) - 60 : 0));
            assert_int_equal(out.len, strlen(expected));
            text_release(&out);
        }
}

TEST(a_state_that_is_too_long_is_cut_wherever_it_stands)
{
    static const char *const before[] = {"", "10%\r"}, *const after[] = {"\n", "\r", "\r\n", ""};
    for (size_t b = 0; b < ROWS(before); b++)
        for (size_t a = 0; a < ROWS(after); a++) {
            struct text text = TEXT_INIT, expected = TEXT_INIT;
            text_puts(&text, before[b]);
            text_repeat(&text, 'x', 3 * LOG_LINE_MAX);
            text_puts(&text, after[a]);
            text_repeat(&expected, 'x', LOG_LINE_MAX);
            text_puts(&expected, " [... cut at 64 KiB]|");
            check_long(&text, text_string(&expected));
            text_release(&text);
            text_release(&expected);
        }
}

TEST(the_bytes_to_keep_are_few)
{
    /* A bar, and then blanks or carriage returns for ever. */
    static const char *const wipes[] = {"  \r", "\r"};
    for (size_t i = 0; i < ROWS(wipes); i++) {
        struct text text = TEXT_INIT;
        text_puts(&text, "10%\r");
        while (text.len < (size_t)LOG_LINE_BYTES)
            text_puts(&text, wipes[i]);
        char *line = malloc(LOG_LINE_ROOM), *to = line;
        struct line_reader reader = {.at = text.bytes, .end = text.bytes + text.len};
        assert_int_not_equal(line_read(&reader, &to), LINE_WHOLE);
        assert_true(reader.at > text.bytes);
        free(line);
        check_long(&text, i == 0 ? "  |" : "");
        text_release(&text);
    }
}

RUN_TESTS(cmocka_unit_test(a_line_shows_its_newest_state),
          cmocka_unit_test(an_open_bar_is_known_and_its_line_is_not_yet_there),
          cmocka_unit_test(a_state_that_is_too_long_is_cut_wherever_it_stands),
          cmocka_unit_test(the_bytes_to_keep_are_few))
