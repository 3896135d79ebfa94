/* source_test.c - lines, columns, and places inside scalars. */
#include "base/source.h"

#include "base/utf8.h"
#include "tests/unit.h"

TEST(lines_end_where_yaml_ends_them)
{
    static const char *const rows[] = {
        "one\ntwo\nthree",
        "one\r\ntwo\r\nthree",
        "one\rtwo\rthree",
        "one\xc2\x85two\xc2\x85three",
        "one\xe2\x80\xa8two\xe2\x80\xa9three",
        "one\ntwo\nthree\n",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct source source = {.name = "x", .text = sv_from(rows[i])};
        CHECK_FACT(rows[i], sv_is(source_line(&source, 1), "one"));
        CHECK_FACT(rows[i], sv_is(source_line(&source, 2), "two"));
        CHECK_FACT(rows[i], sv_is(source_line(&source, 3), "three"));
        CHECK_FACT(rows[i], sv_is(source_line(&source, 4), ""));
        CHECK_FACT(rows[i], sv_is(source_line(&source, 0), ""));
        CHECK_FACT(rows[i], sv_is(source_line(&source, -1), ""));
    }
}

TEST(empty_lines_and_an_empty_source_are_lines)
{
    struct source blank = {.name = "x", .text = SV("\n\nc")},
                  nothing = {.name = "x", .text = SV("")};
    assert_true(sv_is(source_line(&blank, 1), ""));
    assert_true(sv_is(source_line(&blank, 2), ""));
    assert_true(sv_is(source_line(&blank, 3), "c"));
    assert_true(sv_is(source_line(&nothing, 1), ""));
}

TEST(places_count_characters_not_bytes)
{
    struct source source = {.name = "x",
                            .text = SV("a\xc3\xa9"
                                       "b\n\xe2\x82\xac\xff"
                                       "c\r\nd")};
    static const struct {
        size_t offset;
        int32_t line, column;
    } rows[] = {
        {0, 1, 1}, {1, 1, 2},  {3, 1, 3},  {4, 1, 4},  {5, 2, 1},  {8, 2, 2},
        {9, 2, 3}, {10, 2, 4}, {12, 3, 1}, {13, 3, 2}, {99, 3, 2},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct place at = source_place(&source, rows[i].offset, 5);
        assert_int_equal(at.line, rows[i].line);
        assert_int_equal(at.column, rows[i].column);
        assert_int_equal(at.length, 5);
        assert_ptr_equal(at.source, &source);
    }
}

/* The place of `part` in the scalar `value`, which is written from `column` of the only line. */
static void check_inside(const char *line, int32_t column, const char *value, size_t from,
                         size_t to, int32_t expected, int32_t length)
{
    struct source source = {.name = "x", .text = sv_from(line)};
    struct strview text = sv_from(value);
    struct place at =
        place_inside((struct place){.source = &source, .line = 1, .column = column, .length = 99},
                     text, sv_sub(text, from, to));
    CHECK_FACT(line, at.column == expected);
    CHECK_FACT(line, at.length == length);
    CHECK_FACT(line, at.line == 1);
    struct place later = place_settle(
        place_piece((struct place){.source = &source, .line = 1, .column = column, .length = 99},
                    text, sv_sub(text, from, to)));
    CHECK_FACT(line, later.column == expected && later.length == length && later.line == 1);
}

TEST(a_part_of_a_scalar_is_found_where_the_file_has_its_bytes)
{
    check_inside("a: 0-1,b", 4, "0-1,b", 4, 5, 8, 1);
    check_inside("a: \"0-1,b\"", 4, "0-1,b", 4, 5, 9, 1);
    check_inside("a: '0-1,b'", 4, "0-1,b", 0, 3, 5, 3);
    check_inside("\xc3\xa9: \xc3\xa9,bc", 4, "\xc3\xa9,bc", 3, 5, 6, 2);
    check_inside("a: b", 4, "b", 1, 1, 5, 0); /* an empty part at the end */
}

TEST(a_part_that_is_written_otherwise_has_the_place_of_its_scalar)
{
    check_inside("a: \"0\\x2d1,b\"", 4, "0-1,b", 4, 5, 4, 99);
    check_inside("a: 'it''s,b'", 4, "it's,b", 5, 6, 4, 99);
    check_inside("a: x", 4, "something longer", 2, 4, 4, 99);
    check_inside("a: x", 400, "x", 0, 1, 400, 99); /* a column past the line */
    struct source source = {.name = "x", .text = SV("a: b,c")};
    struct place at = {.source = &source, .line = 1, .column = 4, .length = 9};
    struct strview value = SV("b,c"), other = SV("b,c and more");
    assert_int_equal(place_inside(at, value, sv_sub(other, 8, 9)).column, 4);
    assert_int_equal(place_inside(NOWHERE, value, value).line, 0);
}

TEST(a_second_place_is_named_by_its_line_or_by_the_key_of_the_line)
{
    static const char *const keys[] = {"", "cluster", "cluster.num_nodes"};
    struct source file = {.name = "x.yaml"};
    struct source keyed = {.name = "config", .line_keys = keys, .line_key_count = 3};
    struct place at = {.source = &file, .line = 3};
    assert_string_equal(place_name(at).text, "line 3");
    assert_string_equal(place_full_name(at).text, "x.yaml:3");
    at.source = &keyed;
    assert_string_equal(place_name(at).text, "cluster.num_nodes");
    assert_string_equal(place_full_name(at).text, "cluster.num_nodes");
    at.line = 4;
    assert_string_equal(place_name(at).text, "line 4");
}

RUN_TESTS(cmocka_unit_test(lines_end_where_yaml_ends_them),
          cmocka_unit_test(empty_lines_and_an_empty_source_are_lines),
          cmocka_unit_test(places_count_characters_not_bytes),
          cmocka_unit_test(a_part_of_a_scalar_is_found_where_the_file_has_its_bytes),
          cmocka_unit_test(a_part_that_is_written_otherwise_has_the_place_of_its_scalar),
          cmocka_unit_test(a_second_place_is_named_by_its_line_or_by_the_key_of_the_line))
