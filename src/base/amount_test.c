/* amount_test.c - decimals are exact, and nothing that is not one is taken. */
#include "base/amount.h"

#include "tests/unit.h"

TEST(decimals_are_ten_thousandths)
{
    static const struct {
        const char *text;
        enum amount_result result;
        int64_t value;
    } rows[] = {
        {"0.4", AMOUNT_OK, 4000},          {"1", AMOUNT_OK, 10000},
        {" 0.2 ", AMOUNT_OK, 2000},        {".5", AMOUNT_OK, 5000},
        {"0.0001", AMOUNT_OK, 1},          {"0.40000000", AMOUNT_OK, 4000},
        {"007.25", AMOUNT_OK, 72500},      {"0", AMOUNT_OK, 0},
        {"0.00001", AMOUNT_TOO_FINE, 0},   {"0.30000000000000004", AMOUNT_TOO_FINE, 0},
        {"8.0001", AMOUNT_TOO_LARGE, 0},   {"99999999999999999999", AMOUNT_TOO_LARGE, 0},
        {"", AMOUNT_MALFORMED, 0},         {".", AMOUNT_MALFORMED, 0},
        {"1.", AMOUNT_MALFORMED, 0},       {"-0.4", AMOUNT_MALFORMED, 0},
        {"+0.4", AMOUNT_MALFORMED, 0},     {"1e-1", AMOUNT_MALFORMED, 0},
        {"0.4.2", AMOUNT_MALFORMED, 0},    {"0,4", AMOUNT_MALFORMED, 0},
        {"0.00001x", AMOUNT_MALFORMED, 0},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t value = 0;
        enum amount_result result = amount_parse(sv_from(rows[i].text), 80000, &value);
        CHECK_FACT(rows[i].text, result == rows[i].result && value == rows[i].value);
    }
}

TEST(amounts_are_written_as_short_as_they_are)
{
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0"},       {4000, "0.4"},  {10000, "1"},       {1, "0.0001"},
                {100000, "10"}, {190000, "19"}, {500020, "50.002"}, {104000, "10.4"}};
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i].text, amount_text(rows[i].value).text, rows[i].text);
}

RUN_TESTS(cmocka_unit_test(decimals_are_ten_thousandths),
          cmocka_unit_test(amounts_are_written_as_short_as_they_are))
