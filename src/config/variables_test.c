/* variables_test.c - whose the variables of a process are. */
#include "config/variables.h"

#include "tests/unit.h"

TEST(what_each_process_has_in_its_own_way_is_told_from_what_all_have)
{
    static const struct {
        const char *name;
        bool is_of_one;
    } rows[] = {
        {"RANK", true},
        {"LOCAL_WORLD_SIZE", true},
        {"VISIBLE_DEVICES", true},
        {"CUDA_VISIBLE_DEVICES", true},
        {"MUJOCO_EGL_DEVICE_ID", true},
        {"ACCELERATOR_TYPE", true},
        {"ROOST_PORT_HTTP", true},
        {"ROOST_PORT_HTTP_COUNT", true},
        {"ROOST_CALL_SOCKET", true},
        {"LISTEN_FDS", true},
        {"LISTEN_PID", true},
        {"WORLD_SIZE", false},
        {"MASTER_PORT", false},
        {"ROOST_RUN_ID", false},
        {"NCCL_CUMEM_ENABLE", false},
        {"MUJOCO_GL", false},
        {"OMP_NUM_THREADS", false},
        {"RANKS", false},
        {"ROOST_PYTHON", false},
        {"", false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        bool is_of_one = false;
        for (int v = 0; variable_of_one_process(v); v++)
            is_of_one |= sv_matches(sv_from(rows[i].name), variable_of_one_process(v));
        CHECK_FACT(rows[i].name, is_of_one == rows[i].is_of_one);
    }
}

TEST(a_name_is_secret_by_its_whole_words)
{
    static const struct {
        const char *name;
        bool is_secret;
    } rows[] = {
        {"AWS_SECRET_ACCESS_KEY", true},
        {"HF_TOKEN", true},
        {"API_KEY", true},
        {"DB_PASS", true},
        {"MY_PASSWORD", true},
        {"MYSQL_PASSWD", true},
        {"SSH_PASSPHRASE", true},
        {"GOOGLE_CREDENTIALS", true},
        {"CREDENTIAL_FILE", true},
        {"KEYS", true},
        {"tokens", true},
        {"My_Secrets_2", true},
        {"KEY", true},
        {"_KEY_", true},
        {"MONKEY", false},
        {"KEYBOARD", false},
        {"PASSENGER", false},
        {"PASSES", false},
        {"TOKENIZER_PATH", false},
        {"SECRETARY", false},
        {"BYPASS_CACHE", false},
        {"API-KEY", false},
        {"KEY2", false},
        {"__", false},
        {"", false},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_FACT(rows[i].name, is_secret_name(sv_from(rows[i].name)) == rows[i].is_secret);
}

RUN_TESTS(cmocka_unit_test(what_each_process_has_in_its_own_way_is_told_from_what_all_have),
          cmocka_unit_test(a_name_is_secret_by_its_whole_words))
