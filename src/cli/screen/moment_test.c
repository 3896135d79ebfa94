/* moment_test.c - times as people write them. */
#include "cli/screen/moment.h"

#include <stdlib.h>
#include <time.h>

#include "tests/unit.h"

#define NOW INT64_C(1794986540123) /* 2026-11-18T07:22:20.123Z */

static void set_zone(const char *zone)
{
    setenv("TZ", zone, 1);
    tzset();
}

TEST(a_moment_is_printed_with_its_zone_and_read_back)
{
    static const struct {
        const char *zone, *text;
    } rows[] = {
        {"UTC0", "2026-11-18T07:22:20.123+00:00"},
        {"XST-5:30", "2026-11-18T12:52:20.123+05:30"},
        {"WST3:30", "2026-11-18T03:52:20.123-03:30"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char out[MOMENT_MAX];
        int64_t back = -1;
        set_zone(rows[i].zone);
        size_t len = moment_put(out, NOW);
        CHECK_FACT(rows[i].zone, len == strlen(rows[i].text));
        assert_string_equal(out, rows[i].text);
        CHECK_FACT(rows[i].zone, moment_parse(sv_from(out), 0, &back) && back == NOW);
    }
}

TEST(times_are_read_in_the_zone_of_the_process_unless_they_name_one)
{
    static const struct {
        const char *text;
        int64_t ms;
    } rows[] = {
        {"10m", NOW - 600000},
        {"0s", NOW},
        {"9000w", 0},
        {"2026-11-18T07:22:20.123Z", NOW},
        {"2026-11-18 09:22:20.1239", NOW},
        {"2026-11-18T09:22:20", NOW - 123},
        {"2026-11-18 09:22", NOW - 20123},
        {"2026-11-18", NOW - 20123 - (9 * 60 + 22) * 60000},
        {"09:22", NOW - 20123},
        {"09:22:20.1", NOW - 23},
        {"07:22Z", NOW - 20123},
        {"2024-02-29T00:00Z", INT64_C(1709164800000)},
    };
    set_zone("EET-2");
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t ms = -1;
        CHECK_FACT(rows[i].text, moment_parse(sv_from(rows[i].text), NOW, &ms));
        CHECK_FACT(rows[i].text, ms == rows[i].ms);
    }
}

TEST(what_is_no_time_is_refused)
{
    static const char *const rows[] = {
        "",
        "now",
        "10",
        "yesterday",
        "7:22",
        "24:00",
        "07:60",
        "07:22:60",
        "07:22:20.",
        "2026-11-18T",
        "2026-13-01",
        "2026-02-29",
        "2026-11-31",
        "1969-12-31",
        "2026-11-18x07:22",
        "2026-11-18T07",
        "2026-11-18T07:22+1:00",
        "2026-11-18T07:22+01:00x",
        "2026-11-18Z",
        "2026-11-18T07:22z",
        "10m ",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t ms = -7;
        CHECK_FACT(rows[i], !moment_parse(sv_from(rows[i]), NOW, &ms));
        CHECK_FACT(rows[i], ms == -7);
    }
}

RUN_TESTS(cmocka_unit_test(a_moment_is_printed_with_its_zone_and_read_back),
          cmocka_unit_test(times_are_read_in_the_zone_of_the_process_unless_they_name_one),
          cmocka_unit_test(what_is_no_time_is_refused))
