/* escape_test.c - what is shown as it is, and what is not. */
#include "base/escape.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit.h"

static const char *escaped(const char *bytes, size_t len)
{
    static char out[2][4096];
    char *to = out[0], *plain = out[1];
    const char *stop = escape_line(bytes, bytes + len, &to);
    const char *stop_plain = escape_line_plain(bytes, bytes + len, &plain);
    *to = *plain = '\0';
    assert_ptr_equal(stop, stop_plain);
    assert_int_equal(to - out[0], plain - out[1]);
    assert_string_equal(out[0], out[1]);
    return out[0];
}

TEST(a_text_is_one_line)
{
    char out[256];
    escape_text("runs\x1b]0;x\a\r\n\nroost: run is done\t\xc3\xa9\n", out);
    assert_string_equal(out, "runs\\x1b]0;x\\x07\\x0d\\x0a\\x0aroost: run is done\t\xc3\xa9\\x0a");
    escape_text("", out);
    assert_string_equal(out, "");
}

TEST(every_single_byte_is_shown_or_escaped)
{
    for (int byte = 0; byte < 256; byte++) {
        char one[1] = {(char)byte}, expected[8];
        if (byte == '\n' || byte == '\r')
            snprintf(expected, sizeof expected, "%s", "");
        else if ((byte >= 0x20 && byte < 0x7f) || byte == '\t')
            snprintf(expected, sizeof expected, "%c", byte);
        else
            snprintf(expected, sizeof expected, "\\x%02x", (unsigned)byte);
        assert_string_equal(escaped(one, 1), expected);
    }
}

TEST(characters_of_utf8_are_shown_and_controls_among_them_are_not)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"\xe4\xbd\xa0\xe5\xa5\xbd", "\xe4\xbd\xa0\xe5\xa5\xbd"},
        {"\xf0\x9f\x90\x94 \xc3\xa9", "\xf0\x9f\x90\x94 \xc3\xa9"},
        {"\xc2\x80", "\\xc2\\x80"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* CSI in UTF-8 */
        {"\xc2\x9f\xc2\xa0", "\\xc2\\x9f\xc2\xa0"},
        {"\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"},
        {"\xc0\x9b", "\\xc0\\x9b"}, /* overlong */
        {"\xe2\x82", "\\xe2\\x82"}, /* cut short */
        {"\xe2\x82z", "\\xe2\\x82z"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"}, /* a surrogate */
        {"\xe2\x80\xae"
         "x",
         "\\xe2\\x80\\xaex"},                /* right to left from here */
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"}, /* a line separator */
        {"\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
        {"\xe2\x80\xa6", "\xe2\x80\xa6"}, /* an ellipsis */
        {"a\tb", "a\tb"},
        {"back\\slash", "back\\slash"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i].expected, escaped(rows[i].text, strlen(rows[i].text)), rows[i].expected);
}

TEST(the_block_does_not_matter_where_something_special_stands)
{
    for (size_t len = 1; len < 80; len++) {
        for (size_t at = 0; at < len; at++) {
            char *text = malloc(len), expected[128]; /* exactly: ASan sees a byte read too much */
            memset(text, 'a', len);
            text[at] = '\x7f';
            memset(expected, 'a', sizeof expected);
            memcpy(expected + at, "\\x7f", 4);
            expected[len + 3] = '\0';
            assert_string_equal(escaped(text, len), expected);
            text[at] = at % 2 ? '\n' : '\r';
            expected[at] = '\0';
            assert_string_equal(escaped(text, len), expected);
            free(text);
        }
    }
}

TEST(random_bytes_are_the_same_both_ways)
{
    uint32_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        size_t len = 0;
        for (; len < sizeof text; len++) {
            seed = seed * 1664525 + 1013904223;
            text[len] = (char)(seed >> 24);
            if (seed & 0x10000)
                text[len] = (char)('a' + (seed >> 27));
        }
        const char *out = escaped(text, len);
        for (; *out; out++)
            assert_true((unsigned char)*out >= 0x20 || *out == '\t');
    }
}

TEST(a_cut_does_not_fall_into_a_character)
{
    static const struct {
        const char *text;
        size_t kept;
    } rows[] = {
        {"", 0},          {"abc", 3},          {"ab\xc3", 2},           {"ab\xc3\xa9", 4},
        {"a\xe4\xbd", 1}, {"\xf0\x9f\x90", 0}, {"\xf0\x9f\x90\x94", 4}, {"\x80\x80\x80\x80", 4},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *end = rows[i].text + strlen(rows[i].text);
        CHECK_FACT(rows[i].text,
                   escape_whole_characters(rows[i].text, end) == rows[i].text + rows[i].kept);
    }
}

RUN_TESTS(cmocka_unit_test(a_text_is_one_line),
          cmocka_unit_test(every_single_byte_is_shown_or_escaped),
          cmocka_unit_test(characters_of_utf8_are_shown_and_controls_among_them_are_not),
          cmocka_unit_test(the_block_does_not_matter_where_something_special_stands),
          cmocka_unit_test(random_bytes_are_the_same_both_ways),
          cmocka_unit_test(a_cut_does_not_fall_into_a_character))
