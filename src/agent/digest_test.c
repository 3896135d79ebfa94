/* digest_test.c - what of a process's start is told apart. */
#include "agent/digest.h"

#include "tests/unit.h"

/* The planned process of every test here. */
static char *argv[] = {"./train", "--rank", "1", NULL};
static const char *const planned_env[] = {"CUDA_VISIBLE_DEVICES=1", "RANK=1", NULL};
static const struct spec_process process = {
    .env = {.first = "CUDA_VISIBLE_DEVICES=1\0RANK=1", .count = 2}, .cwd = "/home"};

static const char *compare(char *const *executed_argv, char *const *executed_env)
{
    struct digest planned = digest_planned((const char *const *)argv, planned_env, process.cwd);
    struct digest executed = digest_executed(&process, executed_argv, executed_env);
    return digest_difference(planned.text, executed.text);
}

TEST(a_process_that_is_executed_as_planned_is_as_planned_whatever_its_node_adds)
{
    char *env[] = {"PATH=/bin", "CUDA_VISIBLE_DEVICES=1", "RANK=1", "LISTEN_FDS=1", NULL};
    assert_null(compare(argv, env));
    assert_null(compare(argv, env + 1));
}

TEST(another_value_or_a_missing_variable_is_not_as_planned)
{
    char *envs[][4] = {{"CUDA_VISIBLE_DEVICES=0", "RANK=1"},
                       {"CUDA_VISIBLE_DEVICES=1", "RANK=11"},
                       {"RANK=1"},
                       {"CUDA_VISIBLE_DEVICES=1RANK=1", "RANK="},
                       {NULL}};
    for (size_t i = 0; i < ROWS(envs); i++) {
        const char *what = compare(argv, envs[i]);
        assert_non_null(what);
        assert_string_equal(what, "variables");
    }
}

TEST(a_variable_of_the_node_that_hides_one_of_the_plan_is_not_as_planned)
{
    char *env[] = {"RANK=7", "CUDA_VISIBLE_DEVICES=1", "RANK=1", NULL};
    assert_string_equal(compare(argv, env), "variables");
    env[0] = "RANKING=7";
    assert_null(compare(argv, env));
}

TEST(other_words_are_not_as_planned)
{
    char *env[] = {"CUDA_VISIBLE_DEVICES=1", "RANK=1", NULL};
    char *others[][5] = {{"./train", "--rank", "2"},
                         {"./train", "--rank1"},
                         {"./train", "--rank", "1", "-v"},
                         {"./train", "--rank", "1", ""},
                         {NULL}};
    for (size_t i = 0; i < ROWS(others); i++)
        assert_string_equal(compare(others[i], env), "command");
    struct digest elsewhere = digest_planned((const char *const *)argv, planned_env, "/");
    assert_string_equal(
        digest_difference(elsewhere.text, digest_executed(&process, argv, env).text), "command");
}

TEST(a_start_without_a_digest_is_not_as_planned)
{
    struct digest planned = digest_planned((const char *const *)argv, planned_env, process.cwd);
    assert_string_equal(digest_difference(planned.text, ""), "command");
}

RUN_TESTS(
    cmocka_unit_test(a_process_that_is_executed_as_planned_is_as_planned_whatever_its_node_adds),
    cmocka_unit_test(another_value_or_a_missing_variable_is_not_as_planned),
    cmocka_unit_test(a_variable_of_the_node_that_hides_one_of_the_plan_is_not_as_planned),
    cmocka_unit_test(other_words_are_not_as_planned),
    cmocka_unit_test(a_start_without_a_digest_is_not_as_planned))
