/* palette_test.c - one colour per name. */
#include "base/palette.h"

#include <stdbool.h>
#include <stdio.h>

#include "tests/unit.h"

TEST(a_name_has_one_colour_and_the_usual_names_differ)
{
    static const char *const names[] = {"actor", "rollout", "critic", "reward", "env", "ref"};
    for (size_t i = 0; i < ROWS(names); i++) {
        assert_int_equal(palette_of_name(names[i]), palette_of_name(names[i]));
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(palette_of_name(names[i]), palette_of_name(names[k]));
    }
    assert_int_equal(palette_of_name("actor"), 32);
    assert_int_equal(palette_of_name("rollout"), 208);
}

TEST(other_names_take_many_of_the_colours)
{
    bool is_used[256] = {false};
    int used = 0;
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "worker_group_%d", i);
        int color = palette_of_name(name);
        assert_in_range(color, 16, 255);
        used += !is_used[color];
        is_used[color] = true;
    }
    assert_true(used >= 12);
}

TEST(colours_are_on_for_a_terminal_that_has_some)
{
    assert_true(palette_is_on(true, NULL, NULL));
    assert_true(palette_is_on(true, "", "xterm"));
    assert_false(palette_is_on(true, "1", "xterm"));
    assert_false(palette_is_on(true, NULL, "dumb"));
    assert_false(palette_is_on(false, NULL, "xterm"));
}

TEST(neighbours_by_number_differ)
{
    for (size_t i = 0; i < 100; i++)
        assert_int_not_equal(palette_of_index(i), palette_of_index(i + 1));
}

RUN_TESTS(cmocka_unit_test(a_name_has_one_colour_and_the_usual_names_differ),
          cmocka_unit_test(other_names_take_many_of_the_colours),
          cmocka_unit_test(colours_are_on_for_a_terminal_that_has_some),
          cmocka_unit_test(neighbours_by_number_differ))
