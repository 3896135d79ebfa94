/* utf8_test.c - every code point there and back, and every way to be wrong. */
#include "base/utf8.h"

#include "base/strview.h"
#include "tests/unit.h"

TEST(every_code_point_but_surrogates_is_written_and_read_back)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char bytes[4];
        uint32_t got = UINT32_MAX;
        size_t len = utf8_put(bytes, code);
        bool is_surrogate = code >= 0xd800 && code < 0xe000;
        assert_int_equal(utf8_next(bytes, bytes + len, &got), is_surrogate ? 0 : len);
        assert_int_equal(got, is_surrogate ? UINT32_MAX : code);
        for (size_t cut = 1; cut < len; cut++)
            assert_int_equal(utf8_next(bytes, bytes + cut, NULL), 0);
    }
}

TEST(bytes_that_are_not_a_character_have_no_length)
{
    static const struct strview rows[] = {
        SV(""),
        SV("\x80"),
        SV("\xbf"),
        SV("\xc0\x80"), /* overlong NUL */
        SV("\xc1\xbf"),
        SV("\xc3"),
        SV("\xc3("),
        SV("\xe0\x80\x80"),
        SV("\xe0\x9f\xbf"), /* overlong, one below the first */
        SV("\xed\xa0\x80"),
        SV("\xed\xbf\xbf"),
        SV("\xe2\x82("),
        SV("\xf0\x80\x80\x80"),
        SV("\xf0\x8f\xbf\xbf"),
        SV("\xf4\x90\x80\x80"), /* one above the last */
        SV("\xf5\x80\x80\x80"),
        SV("\xfe"),
        SV("\xff"),
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        uint32_t code = 7;
        assert_int_equal(utf8_next(rows[i].at, rows[i].at + rows[i].len, &code), 0);
        assert_int_equal(code, 7);
    }
}

TEST(characters_are_as_wide_as_a_terminal_shows_them)
{
    static const struct {
        uint32_t code;
        int width;
    } rows[] = {
        {'a', 1},    {0xe9, 1},   {0x300, 0},   {0x36f, 0},   {0x370, 1},    {0x200b, 0},
        {0x10ff, 1}, {0x1100, 2}, {0x4e2d, 2},  {0x9fff, 2},  {0xac00, 2},   {0xff01, 2},
        {0xff61, 1}, {0xfe0f, 0}, {0x1f600, 2}, {0x20000, 2}, {0x10ffff, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(utf8_width(rows[i].code), rows[i].width);
}

RUN_TESTS(cmocka_unit_test(every_code_point_but_surrogates_is_written_and_read_back),
          cmocka_unit_test(bytes_that_are_not_a_character_have_no_length),
          cmocka_unit_test(characters_are_as_wide_as_a_terminal_shows_them))
