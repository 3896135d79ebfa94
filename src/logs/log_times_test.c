/* log_times_test.c - marks as bytes, and bytes that are no marks. */
#include "logs/log_times.h"

#include "tests/unit.h"

TEST(marks_are_read_as_they_were_written)
{
    static const struct times_mark rows[] = {
        {1794986540123, 0, LOG_STDOUT, 80},
        {1794986540123, 0, LOG_STDERR, 1},
        {1794986540186, 19999, LOG_STDERR, 100000},
        {1794982940186, 3, LOG_STDOUT, -5}, /* the clock was set back, and the log was cut */
        {0, INT32_MAX, LOG_STDERR, INT64_MAX},
        {TIMES_TIME_MAX, 0, LOG_STDOUT, INT64_MIN},
    };
    uint8_t bytes[ROWS(rows) * TIMES_MARK_MAX];
    size_t len = 0, at = 0;
    int64_t before = 0;
    for (size_t i = 0; i < ROWS(rows); i++) {
        size_t more = times_put(bytes + len, before, &rows[i]);
        assert_in_range(more, 3, TIMES_MARK_MAX);
        len += more;
        before = rows[i].time;
    }
    before = 0;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct times_mark mark;
        size_t used = 0;
        for (size_t part = 0; part < 3; part++)
            assert_int_equal(times_get(bytes + at, part, before, &mark, &used), TIMES_PART);
        assert_int_equal(times_get(bytes + at, len - at, before, &mark, &used), TIMES_OK);
        assert_true(mark.time == rows[i].time && mark.rank == rows[i].rank &&
                    mark.stream == rows[i].stream && mark.growth == rows[i].growth);
        at += used;
        before = mark.time;
    }
    assert_int_equal(at, len);
}

TEST(a_line_within_the_next_second_costs_few_bytes)
{
    uint8_t bytes[TIMES_MARK_MAX];
    struct times_mark mark = {1794986540123, 7, LOG_STDERR, 60};
    assert_int_equal(times_put(bytes, mark.time - 50, &mark), 3);
    assert_int_equal(times_put(bytes, mark.time - 1000, &mark), 4);
}

TEST(what_is_no_mark_is_bad_and_leaves_the_answer_alone)
{
    static const struct {
        const char *why, *bytes;
        size_t len;
    } rows[] = {
        {"a time before 1970", "\x01\x00\x00", 3},
        {"a rank below 0", "\x00\x01\x00", 3},
        {"a rank beyond 32 bits", "\x00\x80\x80\x80\x80\x80\x01\x00", 8},
        {"a time beyond the year 9999", "\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00", 10},
        {"a number beyond 64 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00", 12},
        {"a number without an end", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct times_mark mark = {.rank = -7};
        size_t used = 77;
        CHECK_FACT(rows[i].why, times_get((const uint8_t *)rows[i].bytes, rows[i].len, 0, &mark,
                                          &used) == TIMES_BAD);
        CHECK_FACT(rows[i].why, mark.rank == -7 && used == 77);
    }
}

RUN_TESTS(cmocka_unit_test(marks_are_read_as_they_were_written),
          cmocka_unit_test(a_line_within_the_next_second_costs_few_bytes),
          cmocka_unit_test(what_is_no_mark_is_bad_and_leaves_the_answer_alone))
