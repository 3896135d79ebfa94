/* strview_test.c - views, quoting for messages, suggestions and names. */
#include "base/strview.h"

#include "base/utf8.h"
#include "tests/unit.h"

TEST(a_part_of_a_view_never_leaves_it)
{
    static const struct {
        size_t from, to;
        const char *part;
    } rows[] = {
        {0, 5, "hello"}, {1, 3, "el"},   {3, 3, ""},   {4, 2, ""},
        {5, 9, ""},      {2, 99, "llo"}, {99, 99, ""}, {SIZE_MAX, SIZE_MAX, ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct strview part = sv_sub(SV("hello"), rows[i].from, rows[i].to);
        CHECK_FACT(rows[i].part, sv_is(part, rows[i].part));
    }
}

TEST(trimming_takes_blanks_at_both_ends_and_nothing_else)
{
    static const char *const rows[][2] = {
        {"", ""},           {"   ", ""},
        {" a ", "a"},       {"\t\r\n a b \n", "a b"},
        {"a", "a"},         {"\xc2\xa0", "\xc2\xa0"},
        {"\va\f", "\va\f"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_FACT(rows[i][0], sv_is(sv_trim(sv_from(rows[i][0])), rows[i][1]));
}

TEST(finding_starts_where_asked_and_ends_with_the_length)
{
    struct strview text = SV("a,b,c");
    assert_int_equal(sv_find(text, ',', 0), 1);
    assert_int_equal(sv_find(text, ',', 1), 1);
    assert_int_equal(sv_find(text, ',', 2), 3);
    assert_int_equal(sv_find(text, ',', 4), 5);
    assert_int_equal(sv_find(text, ',', 99), 5);
    assert_int_equal(sv_find(SV(""), ',', 0), 0);
}

TEST(views_compare_by_bytes_and_then_by_length)
{
    static const char *const rising[] = {"", "A", "a", "aa", "ab", "b", "\x7f", "\x80", "\xff"};
    for (size_t i = 0; i < ROWS(rising); i++) {
        for (size_t k = 0; k < ROWS(rising); k++) {
            int order = sv_compare(sv_from(rising[i]), sv_from(rising[k]));
            CHECK_FACT(rising[i], (order > 0) - (order < 0) == (i > k) - (i < k));
            CHECK_FACT(rising[i], sv_equal(sv_from(rising[i]), sv_from(rising[k])) == (i == k));
        }
    }
}

TEST(case_is_ignored_for_ascii_letters_only)
{
    assert_true(sv_is_nocase(SV("ALL"), "all"));
    assert_true(sv_is_nocase(SV("aLl"), "all"));
    assert_false(sv_is_nocase(SV(" all"), "all"));
    assert_false(sv_is_nocase(SV("al"), "all"));
    assert_false(sv_is_nocase(SV("\xc3\x84"), "\xc3\xa4"));
    assert_true(sv_starts(SV("ROOST_X"), "ROOST_"));
    assert_false(sv_starts(SV("ROOST"), "ROOST_"));
    assert_true(sv_matches(SV("ROOST_PORT_HTTP"), "ROOST_PORT_*"));
    assert_true(sv_matches(SV("RANK"), "RANK"));
    assert_false(sv_matches(SV("RANKS"), "RANK"));
    assert_false(sv_matches(SV("ROOST_POR"), "ROOST_PORT_*"));
    assert_false(sv_matches(SV("RANK"), ""));
    assert_int_equal(sv_from(NULL).len, 0);
}

TEST(quote_shows_text_and_escapes_what_a_terminal_would_obey)
{
    static const struct {
        struct strview text;
        const char *shown;
    } rows[] = {
        {SV(""), ""},
        {SV("0-3,5"), "0-3,5"},
        {SV("a b'c\"d\\e"), "a b'c\"d\\e"},
        {SV("a\nb\tc\rd"), "a\\x0ab\\x09c\\x0dd"},
        {SV("\033[31m"), "\\x1b[31m"},
        {SV("a\0b"), "a\\x00b"},
        {SV("\x7f"), "\\x7f"},
        {SV("\xc2\x80"), "\\xc2\\x80"}, /* first C1 control */
        {SV("\xc2\x9b"
            "31m"),
         "\\xc2\\x9b"
         "31m"}, /* CSI in one character */
        {SV("\xc2\x9f"), "\\xc2\\x9f"},
        {SV("\xc2\xa0"), "\xc2\xa0"}, /* first behind them */
        {SV("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {SV("\xff\xfe"), "\\xff\\xfe"},
        {SV("\xc0\xaf"), "\\xc0\\xaf"},                   /* overlong "/" */
        {SV("\xed\xa0\x80"), "\\xed\\xa0\\x80"},          /* surrogate */
        {SV("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80"}, /* above U+10FFFF */
        {SV("a\xc3"), "a\\xc3"},                          /* cut off */
        {SV("\xc3 b"), "\\xc3 b"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i].shown, quote(rows[i].text).text, rows[i].shown);
}

/* `count` times 'a', then `tail`. */
static struct strview after_letters(char *room, size_t count, struct strview tail)
{
    memset(room, 'a', count);
    memcpy(room + count, tail.at, tail.len);
    return (struct strview){room, count + tail.len};
}

TEST(quote_cuts_long_text_between_characters)
{
    enum { FITS = 92 };
    static const struct strview tails[] = {SV("z"),   SV("\xc3\xa9"), SV("\xe2\x82\xac"),
                                           SV("\n"),  SV("\xc2\x85"), SV("\xf0\x9f\x98\x80"),
                                           SV("\xff")};
    static const size_t lengths[] = {1, 2, 3, 4, 8, 4, 4}; /* as they are shown */
    char room[FITS + 16], expected[FITS + 16];
    for (size_t t = 0; t < ROWS(tails); t++) {
        for (size_t count = FITS - 10; count <= FITS; count++) {
            struct quote shown = quote(after_letters(room, count, tails[t]));
            bool fits = count + lengths[t] <= FITS;
            struct strview end = fits ? sv_from(quote(tails[t]).text) : SV("...");
            struct strview wanted = after_letters(expected, count, end);
            expected[wanted.len] = '\0';
            CHECK_TEXT("tail", shown.text, expected);
        }
    }
}

TEST(quote_of_any_two_bytes_is_printable_utf8)
{
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[2] = {(char)(pair >> 8), (char)pair};
        struct quote shown = quote((struct strview){bytes, 2});
        const char *end = shown.text + strlen(shown.text);
        for (const char *at = shown.text; at < end;) {
            uint32_t code;
            size_t len = utf8_next(at, end, &code);
            assert_true(len > 0 && code >= 0x20 && (code < 0x7f || code >= 0xa0));
            at += len;
        }
    }
}

TEST(nearest_word_suggests_slips_and_stays_silent_about_other_words)
{
    static const char *const words[] = {
        "cluster", "component_placement", "num_nodes", "node_groups", "actor", "at", NULL};
    static const struct {
        const char *text, *near;
    } rows[] = {
        {"cluster", "cluster"},
        {"clutser", "cluster"}, /* neighbours swapped count once */
        {"clustr", "cluster"},
        {"custer", "cluster"},
        {"Cluster", "cluster"},
        {"node_group", "node_groups"},
        {"num-nodes", "num_nodes"},
        {"component_placment", "component_placement"},
        {"acto", "actor"},
        {"banana", NULL},
        {"zzzzzzzzzzzz", NULL},
        {"", NULL},
        {"component_placement_component_placement_", NULL},
        {"component_placement_component_placement_x", NULL}, /* longer than the rows */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *near = nearest_word(sv_from(rows[i].text), words);
        CHECK_TEXT(rows[i].text, near ? near : "none", rows[i].near ? rows[i].near : "none");
    }
    static const char *const twins[] = {"ab", "ac", NULL};
    assert_string_equal(nearest_word(SV("ad"), twins), "ab");
    static const char *const short_ones[] = {"", "a", "b2", NULL};
    assert_null(nearest_word(SV("e"), short_ones)); /* nothing of it would be left */
    assert_string_equal(nearest_word(SV("b"), short_ones), "b2");
}

TEST(names_are_letters_digits_underscores_and_inner_points_and_dashes)
{
    static const char *const good[] = {
        "a",       "A",
        "0",       "_",
        "4090",    "actor",
        "a.b-c_d", "a-",
        "a.",      "a23456789012345678901234567890123456789012345678901234567890123"};
    static const char *const wrong[] = {
        "",    "-a",
        ".a",  "a b",
        "a,b", "a/b",
        "a:b", "\xc3\xa9",
        "a\n", "a234567890123456789012345678901234567890123456789012345678901234"};
    for (size_t i = 0; i < ROWS(good); i++)
        CHECK_FACT(good[i], is_name(sv_from(good[i])));
    for (size_t i = 0; i < ROWS(wrong); i++)
        CHECK_FACT(wrong[i], !is_name(sv_from(wrong[i])));
}

TEST(variable_names_do_not_start_with_a_digit)
{
    static const char *const good[] = {"A", "_", "a1", "ROOST_PORT_HTTP", "__x__"};
    static const char *const wrong[] = {"", "1A", "A-B", "A.B", "A B", "A=", "\xc3\xa9"};
    for (size_t i = 0; i < ROWS(good); i++)
        CHECK_FACT(good[i], is_variable_name(sv_from(good[i])));
    for (size_t i = 0; i < ROWS(wrong); i++)
        CHECK_FACT(wrong[i], !is_variable_name(sv_from(wrong[i])));
}

RUN_TESTS(cmocka_unit_test(a_part_of_a_view_never_leaves_it),
          cmocka_unit_test(trimming_takes_blanks_at_both_ends_and_nothing_else),
          cmocka_unit_test(finding_starts_where_asked_and_ends_with_the_length),
          cmocka_unit_test(views_compare_by_bytes_and_then_by_length),
          cmocka_unit_test(case_is_ignored_for_ascii_letters_only),
          cmocka_unit_test(quote_shows_text_and_escapes_what_a_terminal_would_obey),
          cmocka_unit_test(quote_cuts_long_text_between_characters),
          cmocka_unit_test(quote_of_any_two_bytes_is_printable_utf8),
          cmocka_unit_test(nearest_word_suggests_slips_and_stays_silent_about_other_words),
          cmocka_unit_test(names_are_letters_digits_underscores_and_inner_points_and_dashes),
          cmocka_unit_test(variable_names_do_not_start_with_a_digit))
