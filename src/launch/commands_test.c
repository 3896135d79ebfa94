/* commands_test.c - what is executed for a process: small configs in, argv and variables out. */
#include "launch/commands.h"

#include "base/text.h"
#include "tests/plan_unit.h"

struct made {
    struct roost_config *config;
    struct roost_cluster *cluster;
    struct roost_plan *plan;
    struct commands *commands; /* NULL = err says why not */
    struct roost_error err;
};

static const char *const caller[] = {"PATH=/a:/b",
                                     "HOME=/root",
                                     "RANK=77",
                                     "ROOST_PORT_OLD=1",
                                     "LISTEN_FDS=2",
                                     "CUDA_VISIBLE_DEVICES=5",
                                     "HIP_VISIBLE_DEVICES=6",
                                     "NOTHING",
                                     NULL};

/* The commands of a config; `options` is completed. */
static struct made make(const char *spec, const char *yaml, struct launch_options options)
{
    struct made it = {0};
    struct roost_config_options reading = {
        .path = "jobs/train.yaml", .text = yaml, .text_len = strlen(yaml)};
    it.config = roost_config_load(&reading, NULL, &it.err);
    if (!it.config)
        fail_msg("%s", it.err.message);
    struct roost_cluster_options wanted = {.text = spec, .config = it.config};
    it.cluster = roost_cluster_new(&wanted, NULL, &it.err);
    if (!it.cluster)
        fail_msg("%s", it.err.message);
    it.plan = roost_plan_new(it.config, it.cluster, NULL, NULL, &it.err);
    if (!it.plan)
        fail_msg("%s", it.err.message);
    options.config = it.config;
    options.cluster = it.cluster;
    options.plan = it.plan;
    if (!options.env)
        options.env = caller;
    struct diag diag = diag_start(NULL, &it.err);
    it.commands = commands_new(&options, &diag);
    return it;
}

static void release(struct made *it)
{
    commands_free(it->commands);
    roost_plan_free(it->plan);
    roost_cluster_free(it->cluster);
    roost_config_free(it->config);
}

static void fill(struct made *it)
{
    static const int32_t ports[] = {20000, 20001, 20005, 20006, 20010, 20011, 20012, 20013};
    struct run_values values = {"run-1", "roost", "127.0.0.1", ports};
    struct diag diag = diag_start(NULL, &it->err);
    if (!it->commands)
        fail_msg("%s", it->err.message);
    assert_true(it->commands->port_count <= ROWS(ports));
    assert_true(commands_fill(it->commands, &values, &diag));
}

static const char *find(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* The value of a variable as a process sees it, "-" when it is not set. */
static const char *value(const struct made *it, int component, int rank, const char *name)
{
    const struct component_commands *of = &it->commands->components[component];
    const char *own = find(of->processes[rank].env, name), *base = find(of->base_env, name);
    if (own && base)
        fail_msg("%s is set twice", name);
    return own ? own : base ? base : "-";
}

#define HEAD "cluster:\n  num_nodes: 1\n  component_placement:\n"

TEST(a_process_has_the_variables_of_rlinf_torch_and_roost)
{
    struct made it =
        make("1x4 A800", HEAD "    actor: 0-3:0-1\nroost: {launch: {actor: {command: [./train]}}}",
             (struct launch_options){0});
    fill(&it);
    static const char *const rows[][2] = {
        {"RANK", "1"},
        {"WORLD_SIZE", "2"},
        {"LOCAL_RANK", "0"},
        {"LOCAL_WORLD_SIZE", "1"},
        {"NODE_RANK", "0"},
        {"GROUP_RANK", "0"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", "20000"},
        {"GROUP_NAME", "actor"},
        {"WORKER_NAME", "actor:1"},
        {"CLUSTER_NODE_RANK", "0"},
        {"NODE_LOCAL_RANK", "1"},
        {"NODE_LOCAL_WORLD_SIZE", "2"},
        {"LOCAL_ACCELERATOR_RANK", "2"},
        {"VISIBLE_DEVICES", "2,3"},
        {"LOCAL_HARDWARE_RANKS", "2,3"},
        {"NODE_GROUP_LABEL", "cluster"},
        {"ACCELERATOR_TYPE", "NV_GPU"},
        {"ACCELERATOR_MODEL", "NV_GPU:A800"},
        {"ISOLATE_ACCELERATOR", "1"},
        {"CATCH_SYSTEM_FAILURE", "0"},
        {"RAY_ACTOR", "1"},
        {"CLUSTER_NAMESPACE", "roost"},
        {"ROOST_NAMESPACE", "roost"},
        {"ROOST_COMPONENT", "actor"},
        {"ROOST_RUN_ID", "run-1"},
        {"CUDA_VISIBLE_DEVICES", "2,3"},
        {"RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1"},
        {"MUJOCO_EGL_DEVICE_ID", "2"},
        {"EGL_DEVICE_ID", "2"},
        {"NCCL_CUMEM_ENABLE", "0"},
        {"PATH", "/a:/b"},
        {"HOME", "/root"},
        {"HIP_VISIBLE_DEVICES", "6"},
        {"ROOST_PORT_OLD", "-"},
        {"LISTEN_FDS", "-"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i][0], value(&it, 0, 1, rows[i][0]), rows[i][1]);
    const struct process_command *process = &it.commands->components[0].processes[1];
    for (int32_t i = 1; i < process->own_count; i++)
        assert_true(strcmp(process->env[i - 1], process->env[i]) < 0);
    assert_null(process->cwd);
    release(&it);
}

TEST(words_have_the_values_of_their_process)
{
    struct made it =
        make("1x2",
             HEAD "    actor: 0-1\n"
                  "roost: {launch: {actor: {command: [./serve, 'no', '%{RANK}/%{WORLD_SIZE}', "
                  "'100%', '%%{RANK}', '%{ROOST_PORT_HTTP}'], ports: {http: 1, dist: {count: 4, "
                  "hand_over: true}}, "
                  "env: {ALL: 'from %{ROOST_PORT_DIST}, %{ROOST_PORT_DIST_COUNT}'}, cwd: work, "
                  "ready: {file: 'up-%{RANK}'}}}}",
             (struct launch_options){0});
    fill(&it);
    const struct component_commands *of = &it.commands->components[0];
    const char *const expected[] = {"./serve", "no", "1/2", "100%", "%{RANK}", "20006"};
    for (size_t i = 0; i < ROWS(expected); i++)
        assert_string_equal(of->processes[1].argv[i], expected[i]);
    assert_null(of->processes[1].argv[ROWS(expected)]);
    assert_string_equal(value(&it, 0, 0, "ALL"), "from 20005, 4");
    assert_string_equal(value(&it, 0, 1, "ALL"), "from 20010, 4");
    assert_string_equal(value(&it, 0, 1, "ROOST_PORT_DIST"), "20010");
    assert_string_equal(value(&it, 0, 1, "ROOST_PORT_DIST_COUNT"), "4");
    assert_string_equal(of->processes[1].cwd, "jobs/work");
    assert_string_equal(of->processes[1].ready_what, "up-1");
    assert_ptr_equal(of->processes[0].argv[0], of->processes[1].argv[0]);
    assert_int_equal(it.commands->port_count, 5);
    assert_null(it.commands->ports[0].name);
    assert_true(it.commands->ports[2].is_handed && it.commands->ports[2].rank == 0);
    release(&it);
}

RUN_TESTS(cmocka_unit_test(a_process_has_the_variables_of_rlinf_torch_and_roost),
          cmocka_unit_test(words_have_the_values_of_their_process), )
