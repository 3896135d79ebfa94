/* text_test.c - growing texts, streamed texts, and JSON strings of awkward bytes. */
#include "base/text.h"

#include <stdlib.h>

#include "tests/unit.h"

TEST(text_safe_shows_what_a_terminal_would_obey_as_bytes)
{
    struct text text = TEXT_INIT;
    text_safe(&text, SV("a\x1b[1m\xff\n\xe2\x80\xae\xc3\xa9"));
    assert_string_equal(text_string(&text), "a\\x1b[1m\\xff\\x0a\\xe2\\x80\\xae\xc3\xa9");
    text_release(&text);
}

TEST(a_text_is_what_was_put_into_it)
{
    struct text text = TEXT_INIT;
    text_puts(&text, "a");
    text_char(&text, 'b');
    text_put(&text, SV("cd"));
    text_append(&text, "efg", 2);
    text_append(&text, "", 0);
    text_repeat(&text, '-', 3);
    text_repeat(&text, '-', 0);
    text_repeat(&text, '-', -1);
    text_int(&text, INT64_MIN);
    text_printf(&text, " %d%s", 7, "x");
    assert_string_equal(text_string(&text), "abcdef----9223372036854775808 7x");
    text_puts(&text, "!");
    assert_string_equal(text_string(&text), "abcdef----9223372036854775808 7x!");
    assert_true(text_finish(&text));
    text_release(&text);
    assert_string_equal(text_string(&text), "");
    text_release(&text);
}

TEST(a_fixed_text_stays_in_its_bytes_and_fails_beyond_them)
{
    char bytes[9] = "--------";
    struct text text = text_fixed(bytes, sizeof bytes - 1);
    text_puts(&text, "abc");
    text_int(&text, -1234);
    assert_false(text.has_failed);
    assert_int_equal(text.len, 8);
    text_puts(&text, "xy");
    assert_true(text.has_failed);
    assert_memory_equal(bytes, "abc-1234", 8);
    assert_int_equal(bytes[8], '\0');
}

TEST(printing_makes_room_for_any_length)
{
    char long_word[5000];
    for (size_t len = 100; len < sizeof long_word; len = len * 5 / 4) {
        struct text text = TEXT_INIT;
        memset(long_word, 'x', len);
        long_word[len] = '\0';
        text_printf(&text, "<%s>", long_word);
        assert_int_equal(text.len, len + 2);
        assert_int_equal(text_string(&text)[len + 1], '>');
        text_release(&text);
    }
}

TEST(digits_of_every_length_are_formatted)
{
    static const int32_t rows[] = {0,         1,         9,   10,    99,     100,
                                   -1,        -9,        -10, 12345, 999999, 1000000000,
                                   INT32_MAX, INT32_MIN, -99, 65536};
    for (size_t i = 0; i < ROWS(rows); i++) {
        char got[12] = "";
        struct text expected = TEXT_INIT;
        text_printf(&expected, "%d", rows[i]);
        assert_int_equal(format_int32(got, rows[i]), expected.len);
        assert_string_equal(got, text_string(&expected));
        text_release(&expected);
    }
}

/* A reader of a streamed text that refuses from call number `refuses_at` on. */
struct sink {
    struct text all;
    int calls, refuses_at;
    size_t largest;
};

static bool take(void *ctx, const char *bytes, size_t len)
{
    struct sink *sink = ctx;
    if (++sink->calls >= sink->refuses_at && sink->refuses_at)
        return false;
    sink->largest = len > sink->largest ? len : sink->largest;
    text_append(&sink->all, bytes, len);
    return true;
}

static void put_lines(struct text *text, int count)
{
    for (int i = 0; i < count; i++)
        text_printf(text, "line %d of many, with some words behind it\n", i);
}

TEST(a_streamed_text_arrives_whole_and_in_bounded_pieces)
{
    enum { LINES = 40000, PIECE = 256 * 1024 };
    static const size_t large[] = {PIECE / 2 - 1, PIECE / 2, PIECE / 2 + 1, PIECE, 3 * PIECE + 17};
    struct sink sink = {.all = TEXT_INIT};
    struct text streamed = {.flush = take, .ctx = &sink}, grown = TEXT_INIT;
    put_lines(&streamed, LINES);
    put_lines(&grown, LINES);
    for (size_t i = 0; i < ROWS(large); i++) {
        char *block = malloc(large[i]);
        assert_non_null(block);
        memset(block, 'a' + (int)i, large[i]);
        text_append(&streamed, block, large[i]);
        text_append(&grown, block, large[i]);
        free(block);
    }
    assert_true(text_finish(&streamed));
    assert_int_equal(sink.all.len, grown.len);
    assert_memory_equal(sink.all.bytes, grown.bytes, grown.len);
    assert_true(sink.calls > 3);
    assert_true(sink.largest <= PIECE);
    text_release(&streamed);
    text_release(&grown);
    text_release(&sink.all);
}

TEST(a_refused_piece_stops_the_stream_for_good)
{
    for (int refuses_at = 1; refuses_at <= 4; refuses_at++) {
        struct sink sink = {.all = TEXT_INIT, .refuses_at = refuses_at};
        struct text text = {.flush = take, .ctx = &sink};
        put_lines(&text, 40000);
        text_puts(&text, "more");
        text_int(&text, 1);
        assert_false(text_reserve(&text, 1));
        assert_false(text_finish(&text));
        assert_false(text_finish(&text));
        assert_true(text.has_failed);
        assert_int_equal(sink.calls, refuses_at);
        text_release(&text);
        text_release(&sink.all);
    }
}

TEST(the_last_piece_may_be_refused_too)
{
    struct sink sink = {.all = TEXT_INIT, .refuses_at = 1};
    struct text text = {.flush = take, .ctx = &sink};
    text_puts(&text, "short");
    assert_int_equal(sink.calls, 0);
    assert_false(text_finish(&text));
    assert_int_equal(sink.calls, 1);
    text_release(&text);
}

TEST(a_streamed_text_of_nothing_is_good_and_calls_nobody)
{
    struct sink sink = {.all = TEXT_INIT};
    struct text text = {.flush = take, .ctx = &sink};
    assert_true(text_finish(&text));
    assert_int_equal(sink.calls, 0);
    text_release(&text);
}

TEST(a_streamed_text_has_no_room_beyond_its_buffer)
{
    struct sink sink = {.all = TEXT_INIT};
    struct text text = {.flush = take, .ctx = &sink};
    assert_true(text_reserve(&text, 256 * 1024));
    assert_false(text_reserve(&text, 256 * 1024 + 1));
    assert_false(text_finish(&text));
    text_release(&text);
}

RUN_TESTS(cmocka_unit_test(text_safe_shows_what_a_terminal_would_obey_as_bytes),
          cmocka_unit_test(a_text_is_what_was_put_into_it),
          cmocka_unit_test(a_fixed_text_stays_in_its_bytes_and_fails_beyond_them),
          cmocka_unit_test(printing_makes_room_for_any_length),
          cmocka_unit_test(digits_of_every_length_are_formatted),
          cmocka_unit_test(a_streamed_text_arrives_whole_and_in_bounded_pieces),
          cmocka_unit_test(a_refused_piece_stops_the_stream_for_good),
          cmocka_unit_test(the_last_piece_may_be_refused_too),
          cmocka_unit_test(a_streamed_text_of_nothing_is_good_and_calls_nobody),
          cmocka_unit_test(a_streamed_text_has_no_room_beyond_its_buffer))
