/* number_test.c - the one integer grammar. */
#include "base/number.h"

#include "tests/unit.h"

TEST(integers_are_read_as_users_write_them)
{
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"7", 7},
        {"007", 7},
        {"+1", 1},
        {"+007", 7},
        {"  42\t", 42},
        {" +5 ", 5},
        {"00000000000000000000000000000000000000012", 12},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t value = -1;
        CHECK_FACT(rows[i].text,
                   number_parse(sv_from(rows[i].text), INT64_MAX, &value) == NUMBER_OK);
        CHECK_FACT(rows[i].text, value == rows[i].value);
    }
}

TEST(what_is_not_an_integer_is_malformed_and_leaves_the_value_alone)
{
    static const char *const rows[] = {
        "",
        " ",
        "+",
        "-",
        "-1",
        "++1",
        "+ 1",
        "1 2",
        "1_0",
        "1.0",
        "1e3",
        "0x3",
        "a",
        "1a",
        "1-2",
        "\xd9\xa3",
        "\xef\xbc\x91",
        "99999999999999999999999999x", /* malformed wins over too large */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t value = -7;
        CHECK_FACT(rows[i], number_parse(sv_from(rows[i]), 100, &value) == NUMBER_MALFORMED);
        CHECK_FACT(rows[i], value == -7);
    }
}

TEST(an_integer_one_above_the_largest_is_too_large)
{
    static const struct {
        const char *text;
        int64_t max;
        enum number_result result;
    } rows[] = {
        {"99", 100, NUMBER_OK},
        {"100", 100, NUMBER_OK},
        {"101", 100, NUMBER_TOO_LARGE},
        {"2147483647", INT32_MAX, NUMBER_OK},
        {"2147483648", INT32_MAX, NUMBER_TOO_LARGE},
        {"9223372036854775808", INT64_MAX, NUMBER_TOO_LARGE},
        {"18446744073709551617", INT64_MAX, NUMBER_TOO_LARGE}, /* 1 when it wraps */
        {"99999999999999999999999999999999999", INT64_MAX, NUMBER_TOO_LARGE},
        {"0", -1, NUMBER_TOO_LARGE}, /* an index of an empty list */
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t value;
        CHECK_FACT(rows[i].text,
                   number_parse(sv_from(rows[i].text), rows[i].max, &value) == rows[i].result);
    }
}

RUN_TESTS(cmocka_unit_test(integers_are_read_as_users_write_them),
          cmocka_unit_test(what_is_not_an_integer_is_malformed_and_leaves_the_value_alone),
          cmocka_unit_test(an_integer_one_above_the_largest_is_too_large))
