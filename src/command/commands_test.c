/* commands_test.c - what is executed for a process: small configs in, argv and variables out. */
#include "command/commands.h"

#include <roost/engine/process.h>
#include <stdio.h>
#include <stdlib.h>

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
    struct run_values values = {"run-1", "roost", "127.0.0.1", ports, NULL};
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
    assert_true(process->own_count > 30);
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

#define GROUPS                                                                                     \
    "  node_groups:\n"                                                                             \
    "    - {label: g, node_ranks: 0-2, env_configs: [\n"                                           \
    "        {node_ranks: 0, env_vars: [{PATH: '/c:/a'}, {A: '1'}, {RANK: '5'}, {MUJOCO_GL: "      \
    "glx}],\n"                                                                                     \
    "         python_interpreter_path: /opt/python},\n"                                            \
    "        {node_ranks: 1, env_vars: [{A: '2'}, {B: '2'}, {EGL_DEVICE_ID: '9'}]}]}\n"

TEST(env_configs_reach_the_nodes_they_name_through_their_group)
{
    struct made it =
        make("2x1,1x1 AMD",
             "cluster:\n  num_nodes: 3\n  component_placement:\n"
             "    a: {node_group: g, placement: 0-2}\n    b: 0-2\n" GROUPS
             "roost: {launch: {a: {command: [python, -V], env: {B: '3', PATH: '/d-%{RANK}'}},\n"
             "                 b: {command: [python3, -V]}}}",
             (struct launch_options){0});
    fill(&it);
    static const struct {
        int component, rank;
        const char *name, *expected;
    } rows[] = {
        {0, 0, "A", "1"},
        {0, 1, "A", "2"},
        {0, 2, "A", "-"},
        {1, 0, "A", "-"},
        {0, 1, "B", "3"},
        {0, 0, "PATH", "/d-0:/c:/a:/b"},
        {0, 1, "PATH", "/d-1:/a:/b"},
        {1, 0, "PATH", "/a:/b"},
        {0, 0, "RANK", "0"},
        {0, 0, "EGL_DEVICE_ID", "-"},
        {0, 1, "EGL_DEVICE_ID", "9"},
        {0, 1, "MUJOCO_EGL_DEVICE_ID", "0"},
        {0, 1, "CUDA_VISIBLE_DEVICES", "0"},
        {0, 1, "HIP_VISIBLE_DEVICES", "6"}, /* inherited */
        {0, 2, "CUDA_VISIBLE_DEVICES", "5"},
        {0, 2, "HIP_VISIBLE_DEVICES", "0"},
        {0, 2, "NCCL_CUMEM_ENABLE", "-"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        CHECK_TEXT(rows[i].name, value(&it, rows[i].component, rows[i].rank, rows[i].name),
                   rows[i].expected);
    assert_string_equal(it.commands->components[0].processes[0].argv[0], "/opt/python");
    assert_string_equal(it.commands->components[0].processes[1].argv[0], "python");
    assert_string_equal(it.commands->components[1].processes[0].argv[0], "python3");
    release(&it);
}

TEST(what_the_caller_has_decides_what_it_should)
{
    static const char *const env[] = {"RLINF_PATH_ENV_MERGE_MODE=Override",
                                      "RLINF_CATCH_FAILURE=1",
                                      "NCCL_CUMEM_ENABLE=1",
                                      "MUJOCO_GL=osmesa",
                                      "EGL_DEVICE_ID=3",
                                      "PATH=/a",
                                      NULL};
    struct made it =
        make("1x2", HEAD "    a: 0-1\nroost: {launch: {a: {command: [x], env: {PATH: /n}}}}",
             (struct launch_options){.env = env});
    fill(&it);
    CHECK_TEXT("PATH", value(&it, 0, 1, "PATH"), "/n");
    CHECK_TEXT("catch", value(&it, 0, 1, "CATCH_SYSTEM_FAILURE"), "1");
    CHECK_TEXT("nccl", value(&it, 0, 1, "NCCL_CUMEM_ENABLE"), "1");
    CHECK_TEXT("egl", value(&it, 0, 1, "EGL_DEVICE_ID"), "3");
    CHECK_TEXT("mujoco", value(&it, 0, 1, "MUJOCO_EGL_DEVICE_ID"), "-");
    release(&it);
}

TEST(interfaces_of_collective_libraries_are_named_once)
{
    static const struct {
        const char *env[4], *vars, *launch, *type, *name, *expected;
    } rows[] = {
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", "", "GLOO_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", "", "NCCL_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " AMD", "NCCL_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " ASCEND", "HCCL_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " INTEL", "CCL_MNIC_NAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " MUSA", "MCCL_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " KUNLUN", "BKCL_SOCKET_IFNAME", "eth7"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " KUNLUN", "NCCL_SOCKET_IFNAME", "-"},
        {{"RLINF_COMM_NET_DEVICES=eth7"}, "", "", " KUNLUN", "RLINF_COMM_NET_DEVICES", "eth7"},
        {{"RLINF_COMM_NET_DEVICES="}, "", "", "", "GLOO_SOCKET_IFNAME", "-"},
        {{"A=1"}, "", "", "", "GLOO_SOCKET_IFNAME", "-"},
        {{"RLINF_COMM_NET_DEVICES=eth7", "GLOO_SOCKET_IFNAME=lo"},
         "",
         "",
         "",
         "GLOO_SOCKET_IFNAME",
         "lo"},
        {{"RLINF_COMM_NET_DEVICES=a"},
         "{RLINF_COMM_NET_DEVICES: b}",
         "",
         "",
         "NCCL_SOCKET_IFNAME",
         "b"},
        {{"RLINF_COMM_NET_DEVICES=a"},
         "{NCCL_SOCKET_IFNAME: b}",
         "",
         "",
         "NCCL_SOCKET_IFNAME",
         "b"},
        {{"A=1"}, "", "RLINF_COMM_NET_DEVICES: \"e%{RANK}\"", "", "GLOO_SOCKET_IFNAME", "e1"},
        {{"A=1"},
         "{RLINF_COMM_NET_DEVICES: b}",
         "RLINF_COMM_NET_DEVICES: c, NCCL_SOCKET_IFNAME: d",
         "",
         "GLOO_SOCKET_IFNAME",
         "c"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text spec = TEXT_INIT, yaml = TEXT_INIT;
        text_printf(&spec, "1x2%s", rows[i].type);
        text_printf(&yaml,
                    "cluster: {num_nodes: 1, node_groups: [{label: g, node_ranks: 0, env_configs: "
                    "[{node_ranks: 0, env_vars: [%s]}]}], component_placement: {a: {node_group: g, "
                    "placement: 0-1}}}\nroost: {launch: {a: {command: [x], env: {%s}}}}",
                    rows[i].vars, rows[i].launch);
        struct made it = make(text_string(&spec), text_string(&yaml),
                              (struct launch_options){.env = rows[i].env});
        fill(&it);
        CHECK_TEXT(rows[i].name, value(&it, 0, 1, rows[i].name), rows[i].expected);
        release(&it);
        text_release(&spec);
        text_release(&yaml);
    }
}

TEST(extra_variables_name_interfaces_too)
{
    static const char *const extra[] = {"RLINF_COMM_NET_DEVICES=eth7", "NCCL_SOCKET_IFNAME=lo",
                                        NULL};
    struct made it = make("1x1", HEAD "    a: 0\nroost: {launch: {a: {command: [x]}}}",
                          (struct launch_options){.extra_env = extra});
    fill(&it);
    CHECK_TEXT("gloo", value(&it, 0, 0, "GLOO_SOCKET_IFNAME"), "eth7");
    CHECK_TEXT("nccl", value(&it, 0, 0, "NCCL_SOCKET_IFNAME"), "lo");
    release(&it);
}

TEST(extra_variables_that_nobody_may_set_are_refused)
{
    static const struct {
        const char *name, *says, *hint;
    } rows[] = {
        {"", "'' cannot be the name of an environment variable", "letters, digits"},
        {"1A", "'1A' cannot be the name of an environment variable", "letters, digits"},
        {"A B", "'A B' cannot be the name of an environment variable", "letters, digits"},
        {"ROOST_RUN_ID", "'ROOST_RUN_ID' is roost's own and cannot be set by hand", "another name"},
        {"LISTEN_PID", "'LISTEN_PID' is roost's own and cannot be set by hand", "another name"},
    };
    struct roost_error err;
    assert_int_equal(roost_variable_check("RANK", &err), ROOST_OK);
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text entry = TEXT_INIT;
        text_printf(&entry, "%s=1", rows[i].name);
        const char *extra[] = {"RANK=1", text_string(&entry), NULL};
        struct made it = make("1x1", HEAD "    a: 0\nroost: {launch: {a: {command: [x]}}}",
                              (struct launch_options){.extra_env = extra});
        assert_null(it.commands);
        CHECK_FACT(rows[i].name, it.err.code == ROOST_ERR_NAME);
        CHECK_SAYS(rows[i].name, it.err.message, rows[i].says);
        CHECK_SAYS(rows[i].name, it.err.hint, rows[i].hint);
        assert_int_equal(roost_variable_check(rows[i].name, &err), ROOST_ERR_NAME);
        release(&it);
        text_release(&entry);
    }
}

TEST(local_rank_follows_its_rule)
{
    static const struct {
        const char *settings, *local_rank, *local_world_size;
    } rows[] = {
        {"{}", "0", "1"},
        {"{isolate: false}", "3", "2"},
        {"{local_rank: torchrun}", "1", "2"},
        {"{local_rank: torchrun, isolate: false}", "1", "2"},
        {"{local_rank: zero, isolate: false}", "0", "1"},
        {"{local_rank: device}", "3", "2"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text yaml = TEXT_INIT;
        text_printf(&yaml, HEAD "    a: 2-3\nroost: {launch: {a: %s}}", rows[i].settings);
        struct made it =
            make("1x4", text_string(&yaml), (struct launch_options){.is_command_optional = true});
        fill(&it);
        assert_null(it.commands->components[0].processes[1].argv);
        CHECK_TEXT(rows[i].settings, value(&it, 0, 1, "LOCAL_RANK"), rows[i].local_rank);
        CHECK_TEXT(rows[i].settings, value(&it, 0, 1, "LOCAL_WORLD_SIZE"),
                   rows[i].local_world_size);
        release(&it);
        text_release(&yaml);
    }
}

TEST(a_command_behind_two_dashes_serves_the_one_component_without)
{
    static const char *const command[] = {"./run", "%{RANK}"};
    const char *const only[] = {"b"};
    struct made it =
        make("1x2",
             HEAD "    a: 0-1\n    b: 0-1\n    c: 0\n"
                  "roost: {launch: {a: {command: [x]}}}",
             (struct launch_options){
                 .command = command, .command_count = 2, .components = only, .component_count = 1});
    fill(&it);
    assert_int_equal(it.commands->component_count, 1);
    assert_string_equal(it.commands->components[0].name, "b");
    assert_string_equal(it.commands->components[0].processes[1].argv[0], "./run");
    assert_string_equal(it.commands->components[0].processes[1].argv[1], "1");
    release(&it);
}

TEST(what_cannot_be_run_is_said_with_its_cure)
{
    static const char *const yaml = HEAD "    actor: 0-1\n    b: 0\n    c: 0\n"
                                         "roost: {launch: {actor: {command: [x]}}}";
    static const struct {
        const char *only, *command;
        enum roost_code code;
        int32_t line;
        const char *message, *hint;
    } rows[] = {
        {NULL, NULL, ROOST_ERR_SCHEMA, 5, "component 'b' has no command",
         "add roost.launch.b.command, or leave the component out"},
        {"actr", NULL, ROOST_ERR_USAGE, 0, "this config places no component 'actr'",
         "did you mean 'actor'?"},
        {"xyz", NULL, ROOST_ERR_USAGE, 0, "this config places no component 'xyz'",
         "'roost plan' lists the components of the config"},
        {NULL, "./t", ROOST_ERR_USAGE, 6,
         "the command behind '--' is for one component, but 'b' and 'c' have none",
         "run one of them alone, or give roost.launch.c a command"},
        {"actor", "./t", ROOST_ERR_USAGE, 0,
         "the command behind '--' is for a component without one, but each has its own",
         "leave it out, or override one: roost.launch.NAME.command='[./train]'"},
        {"b", "%{NOPE}", ROOST_ERR_REFERENCE, 0, "'%{NOPE}' is not a variable that roost sets",
         "RANK, WORLD_SIZE and LOCAL_RANK are some that are; a percent sign is %%"},
        {"b", "%{HIP_VISIBLE_DEVICES}", ROOST_ERR_HARDWARE, 0,
         "'%{HIP_VISIBLE_DEVICES}' has no value on nodes of type NV_GPU, where component 'b' has "
         "processes",
         "every process has %{VISIBLE_DEVICES} and %{LOCAL_ACCELERATOR_RANK}"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct made it = make("1x2", yaml,
                              (struct launch_options){.components = &rows[i].only,
                                                      .component_count = rows[i].only ? 1 : 0,
                                                      .command = &rows[i].command,
                                                      .command_count = rows[i].command ? 1 : 0});
        assert_null(it.commands);
        CHECK_TEXT(rows[i].message, it.err.message, rows[i].message);
        CHECK_TEXT(rows[i].message, it.err.hint, rows[i].hint);
        CHECK_FACT(rows[i].message, it.err.code == rows[i].code && it.err.line == rows[i].line);
        release(&it);
    }
}

TEST(more_ports_than_can_be_numbered_are_refused)
{
    enum {
        COMPONENTS = 16,
        NAMES = 256
    }; /* with half a million processes each, which they share */
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "ports: &ports {");
    for (int i = 0; i < NAMES; i++)
        text_printf(&yaml, "p%d: 1, ", i);
    text_puts(&yaml, "}\ncluster: {num_nodes: 1, component_placement: {\"");
    for (int i = 0; i < COMPONENTS; i++)
        text_printf(&yaml, i ? ",c%d" : "c%d", i);
    text_puts(&yaml, "\": {node_group: node, placement: '0:0-524287'}}}\nroost: {launch: {");
    for (int i = 0; i < COMPONENTS; i++)
        text_printf(&yaml, "c%d: {command: [x], ports: *ports}, ", i);
    text_puts(&yaml, "}}");
    struct made it = make("1x1", text_string(&yaml), (struct launch_options){0});
    assert_null(it.commands);
    assert_string_equal(it.err.message,
                        "component 'c15' asks for more ports than roost can number");
    assert_string_equal(it.err.hint, "one machine has fewer than 65536 ports: ask for fewer");
    release(&it);
    text_release(&yaml);
}

static const char peers[] = HEAD
    "    actor: 0\n    rollout: 1-2\n"
    "roost: {launch: {actor: {command: [./train, '%{rollout.1.host}', '%{rollout.0.port.http}',"
    " 'a%{rollout.addresses.dist}z'], env: {S: '%{rollout.addresses.http}'}},"
    " rollout: {command: [./serve], ports: {http: 1, dist: 2}}}}";

TEST(a_component_learns_the_addresses_of_another)
{
    struct made it = make("1x3", peers, (struct launch_options){0});
    fill(&it);
    const char *const *argv = it.commands->components[0].processes[0].argv;
    CHECK_TEXT("host", argv[1], "127.0.0.1");
    CHECK_TEXT("port", argv[2],
               "20005"); /* the requests: 2 master ports, then http and dist of each rank */
    CHECK_TEXT("addresses", argv[3], "a127.0.0.1:20006,127.0.0.1:20011z");
    CHECK_TEXT("in env", value(&it, 0, 0, "S"), "127.0.0.1:20005,127.0.0.1:20010");
    CHECK_TEXT("http", value(&it, 0, 0, "ROOST_ADDRESSES_ROLLOUT_HTTP"),
               "127.0.0.1:20005,127.0.0.1:20010");
    CHECK_TEXT("dist", value(&it, 0, 0, "ROOST_ADDRESSES_ROLLOUT_DIST"),
               "127.0.0.1:20006,127.0.0.1:20011");
    CHECK_TEXT("itself", value(&it, 1, 0, "ROOST_ADDRESSES_ROLLOUT_HTTP"), "-");
    release(&it);
}

TEST(addresses_of_nodes_with_colons_stand_in_brackets)
{
    struct made it = make("1x3", peers, (struct launch_options){0});
    static const int32_t ports[] = {1, 2, 3, 4, 5, 6};
    struct run_values values = {"run-1", "roost", "fd00::1", ports, NULL};
    struct diag diag = diag_start(NULL, &it.err);
    assert_true(commands_fill(it.commands, &values, &diag));
    CHECK_TEXT("host", it.commands->components[0].processes[0].argv[1], "fd00::1");
    CHECK_TEXT("list", value(&it, 0, 0, "ROOST_ADDRESSES_ROLLOUT_HTTP"), "[fd00::1]:3,[fd00::1]:5");
    release(&it);
}

/* The last entry of a list is the last rank's, so no rank is missing between. */
TEST(a_list_that_is_too_long_for_a_variable_goes_to_a_file)
{
    enum { RANKS = 20000 };
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             HEAD "    actor: 0\n    rollout: 0-7:0-%d\n"
                  "roost: {launch: {actor: {command: [./train], after: [rollout]},"
                  " rollout: {command: [./serve], ports: {http: 1}}}}",
             RANKS - 1);
    struct made it = make("1x8", yaml, (struct launch_options){0});
    assert_non_null(it.commands);
    int32_t *ports = calloc(it.commands->port_count, sizeof *ports);
    assert_non_null(ports);
    for (size_t i = 0; i < it.commands->port_count; i++)
        ports[i] = (int32_t)(20000 + i);
    struct run_values values = {"run-1", "roost", "127.0.0.1", ports, NULL};
    struct diag diag = diag_start(NULL, &it.err);
    assert_true(commands_fill(it.commands, &values, &diag));
    CHECK_TEXT("as a variable", value(&it, 0, 0, "ROOST_ADDRESSES_ROLLOUT_HTTP"), "-");
    const char *list = find(it.commands->components[0].long_env, "ROOST_ADDRESSES_ROLLOUT_HTTP");
    assert_non_null(list);
    int32_t commas = 0;
    for (const char *at = list; *at; at++)
        commas += *at == ',';
    assert_int_equal(commas, RANKS - 1);
    char last[32];
    snprintf(last, sizeof last, ",127.0.0.1:%d", 20000 + 2 + RANKS - 1);
    CHECK_TEXT("the last rank", list + strlen(list) - strlen(last), last);
    free(ports);
    release(&it);
}

TEST(a_list_that_is_too_long_for_a_word_is_refused_with_its_place)
{
    struct made it =
        make("1x8",
             HEAD "    actor: 0\n    rollout: 0-7:0-4999\n"
                  "roost: {launch: {actor: {command: [./train, '%{rollout.addresses.http}']},"
                  " rollout: {command: [./serve], ports: {http: 1}}}}",
             (struct launch_options){0});
    assert_non_null(it.commands);
    int32_t *ports = calloc(it.commands->port_count, sizeof *ports);
    assert_non_null(ports);
    struct run_values values = {"run-1", "roost", "127.0.0.1", ports, NULL};
    struct diag diag = diag_start(NULL, &it.err);
    for (size_t i = 0; i < it.commands->port_count; i++)
        ports[i] = 20000;
    assert_false(commands_fill(it.commands, &values, &diag));
    assert_int_equal(it.err.code, ROOST_ERR_LIMIT);
    assert_string_equal(it.err.message, "'%{rollout.addresses.http}' is a list of 5000 addresses: "
                                        "79999 bytes, more than a word may have (65536)");
    assert_string_equal(it.err.hint,
                        "let the process read the file that ROOST_ADDRESSES_..._FILE names");
    assert_int_equal(it.err.line, 6);
    free(ports);
    release(&it);
}

RUN_TESTS(cmocka_unit_test(a_component_learns_the_addresses_of_another),
          cmocka_unit_test(addresses_of_nodes_with_colons_stand_in_brackets),
          cmocka_unit_test(a_list_that_is_too_long_for_a_variable_goes_to_a_file),
          cmocka_unit_test(a_list_that_is_too_long_for_a_word_is_refused_with_its_place),
          cmocka_unit_test(a_process_has_the_variables_of_rlinf_torch_and_roost),
          cmocka_unit_test(words_have_the_values_of_their_process),
          cmocka_unit_test(env_configs_reach_the_nodes_they_name_through_their_group),
          cmocka_unit_test(what_the_caller_has_decides_what_it_should),
          cmocka_unit_test(interfaces_of_collective_libraries_are_named_once),
          cmocka_unit_test(extra_variables_name_interfaces_too),
          cmocka_unit_test(extra_variables_that_nobody_may_set_are_refused),
          cmocka_unit_test(local_rank_follows_its_rule),
          cmocka_unit_test(a_command_behind_two_dashes_serves_the_one_component_without),
          cmocka_unit_test(what_cannot_be_run_is_said_with_its_cure),
          cmocka_unit_test(more_ports_than_can_be_numbered_are_refused), )
