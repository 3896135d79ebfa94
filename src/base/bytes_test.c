/* bytes_test.c - sizes that are read, and texts that are none. */
#include "base/bytes.h"

#include "tests/unit.h"

TEST(sizes_are_read_in_steps_of_1024)
{
    const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {{"0K", 0},
                {"1K", 1024},
                {"3M", 3 * 1048576},
                {"10G", (int64_t)10 << 30},
                {"2T", (int64_t)2 << 40},
                {"8388607T", (int64_t)8388607 << 40}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        int64_t bytes = -1;
        assert_true(bytes_parse(sv_from(rows[i].text), &bytes));
        assert_int_equal(bytes, rows[i].bytes);
    }
}

TEST(anything_else_is_no_size)
{
    const char *const texts[] = {"",    "G",   "10",   "10g", "10GB", "10 G", " 10G",     "10G ",
                                 "-1G", "+1G", "1.5G", "1,0", "1P",   "0x1G", "8388608T", "1KK"};
    for (size_t i = 0; i < ROWS(texts); i++) {
        int64_t bytes = -1;
        assert_false(bytes_parse(sv_from(texts[i]), &bytes));
        assert_int_equal(bytes, -1);
    }
}

RUN_TESTS(cmocka_unit_test(sizes_are_read_in_steps_of_1024),
          cmocka_unit_test(anything_else_is_no_size))
