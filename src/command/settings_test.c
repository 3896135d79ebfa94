/* settings_test.c - which engine is chosen, and what the environment may set. */
#include <roost/engine/driver.h>
#include <string.h>

#include "tests/unit.h"

TEST(the_engine_is_the_one_asked_for_then_the_environments_then_local)
{
    static const struct {
        const char *asked, *from_env, *chosen;
    } rows[] = {
        {NULL, NULL, "local"}, {"", "", "local"},         {NULL, "ray", "ray"},
        {"", "ray", "ray"},    {"local", "ray", "local"}, {"mars", "ray", "mars"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_FACT(rows[i].chosen,
                   strcmp(roost_engine_choose(rows[i].asked, rows[i].from_env, NULL),
                          rows[i].chosen) == 0);
}

TEST(only_local_and_ray_are_engines)
{
    assert_true(roost_engine_is_known("local") && roost_engine_is_known("ray"));
    assert_true(!roost_engine_is_known("mars") && !roost_engine_is_known(""));
}

TEST(settings_are_the_defaults_where_nothing_is_set)
{
    static const char *const rows[][3] = {
        {NULL}, {"ROOST_CGROUP=", "ROOST_PORT_BASE="}, {"ROOST_CGROUP=auto"}};
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_settings settings = {.port_base = -1, .has_no_cgroup = true};
        assert_true(roost_settings_read(rows[i], &settings, NULL) == ROOST_OK);
        assert_true(settings.port_base == 0 && !settings.has_no_cgroup);
    }
}

TEST(settings_are_read_from_the_environment)
{
    static const char *const env[] = {"ROOST_PORT_BASE=21000", "ROOST_CGROUP=never", NULL};
    struct roost_settings settings;
    assert_true(roost_settings_read(env, &settings, NULL) == ROOST_OK);
    assert_true(settings.port_base == 21000 && settings.has_no_cgroup);
}

TEST(a_setting_that_is_wrong_is_refused_with_its_value)
{
    static const struct {
        const char *entry, *message;
    } rows[] = {
        {"ROOST_PORT_BASE=80", "ROOST_PORT_BASE is a port from 1024 to 65535, not '80'"},
        {"ROOST_PORT_BASE=65536", "ROOST_PORT_BASE is a port from 1024 to 65535, not '65536'"},
        {"ROOST_PORT_BASE=http", "ROOST_PORT_BASE is a port from 1024 to 65535, not 'http'"},
        {"ROOST_CGROUP=yes", "ROOST_CGROUP is 'auto' or 'never', not 'yes'"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *const env[] = {rows[i].entry, NULL};
        struct roost_settings settings = {.port_base = -1};
        struct roost_error err;
        CHECK_FACT(rows[i].entry, roost_settings_read(env, &settings, &err) == ROOST_ERR_USAGE);
        CHECK_FACT(err.message, strcmp(err.message, rows[i].message) == 0);
        assert_true(settings.port_base == -1);
    }
}

RUN_TESTS(cmocka_unit_test(the_engine_is_the_one_asked_for_then_the_environments_then_local),
          cmocka_unit_test(only_local_and_ray_are_engines),
          cmocka_unit_test(settings_are_the_defaults_where_nothing_is_set),
          cmocka_unit_test(settings_are_read_from_the_environment),
          cmocka_unit_test(a_setting_that_is_wrong_is_refused_with_its_value), )
