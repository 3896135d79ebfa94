/* duration_test.c - the one grammar of durations. */
#include "base/duration.h"

#include "tests/unit.h"

TEST(durations_are_digits_and_a_unit)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"0s", 0},
        {"90s", 90},
        {"10m", 600},
        {"007m", 420},
        {"2h", 7200},
        {"30d", 2592000},
        {"1w", 604800},
        {"9223372036854775807s", INT64_MAX},
        {"15250284452471w", 15250284452471 * 604800},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t seconds = -1;
        CHECK_FACT(rows[i].text, duration_parse(sv_from(rows[i].text), &seconds));
        CHECK_FACT(rows[i].text, seconds == rows[i].seconds);
    }
}

TEST(what_is_not_a_duration_is_refused_and_leaves_the_value_alone)
{
    static const char *const rows[] = {
        "",
        "s",
        "10",
        "m10",
        "10 m",
        "10m ",
        " 10m",
        "+10m",
        "-10m",
        "1.5h",
        "10M",
        "10min",
        "1h30m",
        "10ms",
        "1y",
        "1_0s",
        "0x10s",
        "\t1s",
        "1\ts",
        "m",
        "9223372036854775808s",
        "153722867280912931m", /* one more than fits */
        "15250284452472w",
        "99999999999999999999999999d",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t seconds = -7;
        CHECK_FACT(rows[i], !duration_parse(sv_from(rows[i]), &seconds));
        CHECK_FACT(rows[i], seconds == -7);
    }
}

RUN_TESTS(cmocka_unit_test(durations_are_digits_and_a_unit),
          cmocka_unit_test(what_is_not_a_duration_is_refused_and_leaves_the_value_alone))
