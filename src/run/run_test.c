/* run_test.c - what roost_run_start reports when it cannot begin. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "roost/roost.h"
#include "tests/unit.h"

static const char text[] =
    "cluster: {num_nodes: 1, component_placement: {a: {node_group: node, placement: 0}}}\n"
    "roost: {launch: {a: {command: ['true']}}}\n";

/* Starts a run with this program as its guardian; must fail. */
static struct roost_error start_with(const char *program)
{
    char folder[] = "/tmp/roost-run-XXXXXX";
    char state[64], runtime[64], remove[128];
    assert_non_null(mkdtemp(folder));
    snprintf(state, sizeof state, "XDG_STATE_HOME=%s", folder);
    snprintf(runtime, sizeof runtime, "XDG_RUNTIME_DIR=%s", folder);
    const char *env[] = {state, runtime, NULL};
    struct roost_error err = {0};
    struct roost_config_options reading = {
        .path = "train.yaml", .text = text, .text_len = sizeof text - 1};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    assert_non_null(config);
    struct roost_cluster_options wanted = {.text = "1x0", .config = config};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, NULL, &err);
    assert_non_null(cluster);
    struct roost_plan *plan = roost_plan_new(config, cluster, NULL, NULL, &err);
    assert_non_null(plan);
    struct roost_run_options options = {
        .config = config, .cluster = cluster, .plan = plan, .env = env, .program = program};
    assert_null(roost_run_start(&options, NULL, &err));
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    /* Nothing of the try is left: only the empty places for runs and sockets. */
    snprintf(remove, sizeof remove, "%s/roost/runs", folder);
    assert_int_equal(rmdir(remove), 0);
    snprintf(remove, sizeof remove, "%s/roost/roost.namespace", folder);
    (void)unlink(remove);
    snprintf(remove, sizeof remove, "%s/roost", folder);
    assert_int_equal(rmdir(remove), 0);
    assert_int_equal(rmdir(folder), 0);
    return err;
}

TEST(a_program_that_is_not_there_is_named)
{
    struct roost_error err = start_with("/nowhere/roost");
    assert_int_equal(err.code, ROOST_ERR_ENGINE);
    assert_string_equal(err.message,
                        "cannot run the program '/nowhere/roost' as the guardian of the "
                        "run: No such file or directory");
    assert_string_equal(err.hint, "install the roost program, or let `program` name it");
}

TEST(a_program_that_is_no_guardian_is_noticed)
{
    struct roost_error err = start_with("/bin/true");
    assert_int_equal(err.code, ROOST_ERR_ENGINE);
    assert_string_equal(err.message, "the guardian of the run ended before it began");
}

TEST(too_few_descriptors_are_reported)
{
    struct rlimit limit, less;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int first_free = dup(0);
    close(first_free);
    less = limit;
    less.rlim_cur = (rlim_t)first_free + 5; /* enough for the directories, not for the socket */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    struct roost_error err = start_with("/bin/true");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(err.code, ROOST_ERR_ENGINE);
    assert_non_null(strstr(err.message, "cannot make the socket to the supervisor: Too many open"));
}

/* Names become folders, labels and JSON: a run of one component takes those that a config may have. */
TEST(a_name_that_cannot_be_a_folder_is_refused_before_anything_starts)
{
    static const char *const bad[] = {"",           "/tmp/abs", "../evil", "a/b",
                                      "a\x1b[31mb", "a\"b",     "other:1", NULL};
    struct roost_error err = {0};
    struct roost_cluster_options wanted = {.text = "1x2"};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, NULL, &err);
    assert_non_null(cluster);
    struct roost_config_options reading = {
        .path = "train.yaml", .text = text, .text_len = sizeof text - 1};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    assert_non_null(config);
    struct roost_plan *plan = roost_plan_new(config, cluster, NULL, NULL, &err);
    assert_non_null(plan);
    static const char *const command[] = {"true"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct roost_run_options options = {
            .cluster = cluster,
            .single = {.placed = roost_plan_component(plan, 0), .name = bad[i]},
            .command = command,
            .command_count = 1,
            .program = "/nowhere/roost"};
        assert_null(roost_run_start(&options, NULL, &err));
        assert_int_equal(err.code, ROOST_ERR_NAME);
        assert_non_null(strstr(err.message, "cannot be the name of a group"));
        assert_null(strchr(err.message, '\x1b'));
    }
    roost_plan_free(plan);
    roost_config_free(config);
    roost_cluster_free(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_that_is_not_there_is_named),
        cmocka_unit_test(a_program_that_is_no_guardian_is_noticed),
        cmocka_unit_test(too_few_descriptors_are_reported),
        cmocka_unit_test(a_name_that_cannot_be_a_folder_is_refused_before_anything_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
