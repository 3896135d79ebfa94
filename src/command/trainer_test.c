/* trainer_test.c - the variables of one trainer. */
#include <roost/engine/trainer.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit.h"

/* "NAME=value" lines. */
struct taken {
    char lines[4096];
    size_t len;
};

static bool take(void *ctx, const char *name, const char *value)
{
    struct taken *it = ctx;
    int len = snprintf(it->lines + it->len, sizeof it->lines - it->len, "%s=%s\n", name, value);
    it->len += (size_t)len;
    return it->len < sizeof it->lines;
}

static bool has(const struct taken *taken, const char *line)
{
    const char *at = strstr(taken->lines, line);
    return at && (at == taken->lines || at[-1] == '\n') && at[strlen(line)] == '\n';
}

static const struct roost_trainer third = {
    .rank = 3, .world_size = 16, .master_addr = "10.0.0.1", .master_port = 20007, .gpu_id = "5"};

TEST(a_trainer_has_its_ranks_the_defaults_and_the_switches)
{
    static const char *const lines[] = {
        "RANK=3",
        "WORLD_SIZE=16",
        "LOCAL_RANK=5",
        "MASTER_ADDR=10.0.0.1",
        "MASTER_PORT=20007",
        "NCCL_CUMEM_ENABLE=0",
        "NVTE_FP8_BLOCK_SCALING_FP32_SCALES=1",
        "RAY_USE_UVLOOP=0",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=1",
        "RAY_EXPERIMENTAL_NOSET_HIP_VISIBLE_DEVICES=1",
        "RAY_EXPERIMENTAL_NOSET_TPU_VISIBLE_CHIPS=1",
    };
    struct taken taken = {0};
    assert_int_equal(roost_trainer_variables(&third, take, &taken, NULL, NULL), ROOST_OK);
    for (size_t i = 0; i < ROWS(lines); i++)
        CHECK_FACT(lines[i], has(&taken, lines[i]));
    assert_null(strstr(taken.lines, "LD_PRELOAD"));
    assert_null(strstr(taken.lines, "ENABLE_ROUTING_REPLAY"));
}

TEST(local_rank_is_the_place_among_the_visible_devices)
{
    static const struct {
        const char *id, *visible, *line;
    } rows[] = {
        {"5", "3,5", "LOCAL_RANK=1"},
        {"5", NULL, "LOCAL_RANK=5"},
        {"5", "", "LOCAL_RANK=5"},
        {"7", "3,5", "LOCAL_RANK=7"},
        {"GPU-b", "GPU-a, GPU-b", "LOCAL_RANK=1"},
        {"GPU-a", "GPU-a", "LOCAL_RANK=0"},
        {"0", "0", "LOCAL_RANK=0"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_trainer trainer = third;
        struct taken taken = {0};
        trainer.gpu_id = rows[i].id;
        trainer.visible = rows[i].visible;
        assert_int_equal(roost_trainer_variables(&trainer, take, &taken, NULL, NULL), ROOST_OK);
        CHECK_FACT(rows[i].line, has(&taken, rows[i].line));
    }
}

TEST(a_gpu_that_is_not_visible_is_refused)
{
    struct roost_trainer trainer = third;
    struct taken taken = {0};
    struct roost_error err;
    trainer.gpu_id = "GPU-c";
    trainer.visible = "GPU-a,GPU-b";
    assert_int_equal(roost_trainer_variables(&trainer, take, &taken, NULL, &err), ROOST_ERR_RANK);
    assert_string_equal(err.message, "rank 3: GPU id 'GPU-c' is neither a number nor among the "
                                     "node's visible devices 'GPU-a,GPU-b'");
    assert_int_equal(taken.len, 0);
}

TEST(the_drivers_value_stands_for_a_default_and_the_users_wins_over_both)
{
    static const char *const env[] = {"NCCL_CUMEM_ENABLE=1", "NVTE_FP8_BLOCK_SCALING_FP32_SCALES=7",
                                      "RAY_USE_UVLOOP=1", NULL};
    static const char *const own[] = {"NVTE_FP8_BLOCK_SCALING_FP32_SCALES=", "LD_PRELOAD=mine.so",
                                      "A=b=c", NULL};
    static const char *const lines[] = {
        "NCCL_CUMEM_ENABLE=1",     "NVTE_FP8_BLOCK_SCALING_FP32_SCALES=",
        "RAY_USE_UVLOOP=0",        "LD_PRELOAD=mine.so",
        "TMS_INIT_ENABLE=1",       "TMS_INIT_ENABLE_CPU_BACKUP=1",
        "ENABLE_ROUTING_REPLAY=1", "A=b=c"};
    struct roost_trainer trainer = {
        .rank = -1, .env = env, .own = own, .preload = "/saver.so", .is_replaying = true};
    struct taken taken = {0};
    assert_int_equal(roost_trainer_variables(&trainer, take, &taken, NULL, NULL), ROOST_OK);
    for (size_t i = 0; i < ROWS(lines); i++)
        CHECK_FACT(lines[i], has(&taken, lines[i]));
    assert_null(strstr(taken.lines, "RANK="));
    assert_null(strstr(taken.lines, "MASTER_"));
}

TEST(variables_of_a_rank_and_roosts_own_cannot_be_set)
{
    static const struct {
        const char *entry, *message;
    } rows[] = {
        {"RANK=1", "train_env_vars: 'RANK' is set by roost for each trainer"},
        {"WORLD_SIZE=1", "train_env_vars: 'WORLD_SIZE' is set by roost for each trainer"},
        {"LOCAL_RANK=1", "train_env_vars: 'LOCAL_RANK' is set by roost for each trainer"},
        {"MASTER_ADDR=x", "train_env_vars: 'MASTER_ADDR' is set by roost for each trainer"},
        {"MASTER_PORT=1", "train_env_vars: 'MASTER_PORT' is set by roost for each trainer"},
        {"ROOST_RUN_ID=1", "train_env_vars: 'ROOST_RUN_ID' is set by roost for each trainer"},
        {"1A=1", "train_env_vars: '1A' cannot be the name of an environment variable"},
        {"=1", "train_env_vars: '' cannot be the name of an environment variable"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *const own[] = {"A=1", rows[i].entry, NULL};
        struct roost_trainer trainer = {.rank = -1, .own = own};
        struct taken taken = {0};
        struct roost_error err;
        CHECK_FACT(rows[i].entry,
                   roost_trainer_variables(&trainer, take, &taken, NULL, &err) == ROOST_ERR_NAME);
        CHECK_SAYS(rows[i].entry, err.message, rows[i].message);
        CHECK_FACT(rows[i].entry, taken.len == 0);
    }
}

TEST(a_users_switch_wins_with_a_warning)
{
    static const char *const own[] = {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES=0", NULL};
    struct roost_trainer trainer = {.rank = -1, .own = own};
    struct taken taken = {0};
    struct roost_report *report = roost_report_new();
    assert_int_equal(roost_trainer_variables(&trainer, take, &taken, report, NULL), ROOST_OK);
    assert_true(has(&taken, own[0]));
    const struct roost_diagnostic *found = roost_report_at(report, 0);
    assert_non_null(found);
    assert_int_equal(found->warning, ROOST_WARN_SWITCH);
    assert_non_null(strstr(found->message, "decides which devices Ray shows to a trainer"));
    roost_report_free(report);
}

static bool refuse(void *ctx, const char *name, const char *value)
{
    (void)ctx, (void)name, (void)value;
    return false;
}

TEST(a_variable_that_cannot_be_taken_is_a_lack_of_memory)
{
    assert_int_equal(roost_trainer_variables(&third, refuse, NULL, NULL, NULL), ROOST_ERR_MEMORY);
}

RUN_TESTS(cmocka_unit_test(a_trainer_has_its_ranks_the_defaults_and_the_switches),
          cmocka_unit_test(local_rank_is_the_place_among_the_visible_devices),
          cmocka_unit_test(a_gpu_that_is_not_visible_is_refused),
          cmocka_unit_test(the_drivers_value_stands_for_a_default_and_the_users_wins_over_both),
          cmocka_unit_test(variables_of_a_rank_and_roosts_own_cannot_be_set),
          cmocka_unit_test(a_users_switch_wins_with_a_warning),
          cmocka_unit_test(a_variable_that_cannot_be_taken_is_a_lack_of_memory), )
