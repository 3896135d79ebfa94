/* path_merge_test.c - lists of folders joined. */
#include "command/path_merge.h"

#include "tests/unit.h"

TEST(new_entries_come_first_and_none_comes_twice)
{
    static const struct {
        const char *new, *old, *expected;
    } rows[] = {
        {"/c:/a", "/a:/b", "/c:/a:/b"},
        {"", "/a:/b", "/a:/b"},
        {"/a", "", "/a"},
        {"", "", ""},
        {"::/a::", ":/b:/a:", "/a:/b"},
        {"/a:/a:/b", "/b:/c:/c", "/a:/b:/c"},
        {"/ab", "/a:/abc", "/ab:/a:/abc"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text out = TEXT_INIT;
        path_merge(&out, sv_from(rows[i].new), sv_from(rows[i].old));
        CHECK_TEXT(rows[i].new, text_string(&out), rows[i].expected);
        text_release(&out);
    }
}

TEST(only_the_lists_that_rlinf_knows_are_joined)
{
    static const char *const names[] = {"PATH",         "PYTHONPATH",        "LD_LIBRARY_PATH",
                                        "LIBRARY_PATH", "CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH",
                                        "CPATH"};
    for (size_t i = 0; i < ROWS(names); i++)
        CHECK_FACT(names[i], is_path_variable(sv_from(names[i])));
    assert_false(is_path_variable(SV("LD_PRELOAD")));
    assert_false(is_path_variable(SV("MANPATH")));
}

RUN_TESTS(cmocka_unit_test(new_entries_come_first_and_none_comes_twice),
          cmocka_unit_test(only_the_lists_that_rlinf_knows_are_joined), )
