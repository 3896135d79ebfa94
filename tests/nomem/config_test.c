/* config_test.c - a config is read and planned, and its commands are made, without memory. */
#include "config/config.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "render/commands_view.h"
#include "run/spec_write.h"
#include "supervise/spec.h"
#include "tests/nomem/nomem.h"

static void hash_word(uint64_t *hash, struct strview word)
{
    hash_bytes(hash, word.at, word.len);
    hash_bytes(hash, ",", 1);
}

/* What a plan does not show of a config. */
static void hash_config(uint64_t *hash, const struct roost_config *config)
{
    for (int32_t i = 0; i < config->launch_count; i++) {
        const struct launch_config *launch = &config->launches[i];
        hash_word(hash, sv_from(launch->component));
        for (int32_t k = 0; k < launch->command_count; k++)
            hash_word(hash, launch->command[k].text);
        for (int32_t k = 0; k < launch->env_count; k++)
            hash_word(hash, launch->env[k].value.text);
        for (int32_t k = 0; k < launch->port_count; k++)
            hash_word(hash, sv_from(launch->ports[k].name));
        for (int32_t k = 0; k < launch->after_count; k++)
            hash_word(hash, launch->after[k].text);
        hash_word(hash, launch->ready_what.text);
    }
    for (int32_t g = 0; g < config->node_group_count; g++) {
        const struct node_group_config *group = &config->node_groups[g];
        for (int32_t e = 0; e < group->env_config_count; e++)
            for (int32_t v = 0; v < group->env_configs[e].var_count; v++)
                hash_word(hash, group->env_configs[e].vars[v].value.text);
        for (int32_t e = 0; e < group->env_config_count; e++)
            hash_bytes(hash, group->env_configs[e].node_ranks.is_all ? "a" : "r", 1);
    }
    for (size_t i = 0; i < roost_config_label_count(config); i++)
        hash_word(hash, sv_from(roost_config_label(config, i)));
    for (size_t i = 0; i < roost_config_env_count(config); i++)
        hash_word(hash, sv_from(roost_config_env(config, i)));
}

/* What is to be run, as the driver hands it to the supervisor and as that reads it. */
static enum roost_code hand_over(const struct commands *commands, uint64_t *hash)
{
    int32_t *ports = calloc(commands->port_count + 1, sizeof *ports);
    int fd = ports ? spec_write(commands, ports, NULL) : -1;
    free(ports);
    if (fd < 0)
        return ROOST_ERR_MEMORY;
    off_t size = lseek(fd, 0, SEEK_END);
    hash_bytes(hash, (const char *)&size, sizeof size);
    struct spec spec;
    if (spec_open(&spec, fd)) /* not where a component has no command */
        spec_release(&spec);
    return ROOST_OK;
}

/* What would be executed: built as for a run, and shown as a plan's commands are. */
static enum roost_code make_commands(const struct roost_config *config,
                                     const struct roost_cluster *cluster,
                                     const struct roost_plan *plan, uint64_t *hash)
{
    static const char *const env[] = {"PATH=/bin", "RANK=1", "HOME=/root", NULL};
    struct launch_options options = {.config = config,
                                     .cluster = cluster,
                                     .plan = plan,
                                     .env = env,
                                     .is_command_optional = true};
    struct run_values values = {"run", "roost", "127.0.0.1", NULL, NULL};
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct commands *commands = commands_new(&options, &diag);
    if (!commands)
        return err.code;
    enum roost_code code = commands_fill(commands, &values, &diag) ? ROOST_OK : err.code;
    struct text out = TEXT_INIT;
    commands_put_text(&out, commands, &values, 80, false);
    struct json_writer json = json_writer_on(&out, JSON_SPACED);
    json_open_object(&json);
    for (int32_t c = 0; code == ROOST_OK && c < commands->component_count; c++)
        for (int32_t p = 0; p < commands->components[c].process_count; p++)
            command_put_json(&json, &commands->components[c].processes[p]);
    hash_bytes(hash, out.bytes, out.len);
    code = first_of(code, out.has_failed ? ROOST_ERR_MEMORY : ROOST_OK);
    text_release(&out);
    if (code == ROOST_OK)
        code = hand_over(commands, hash);
    commands_free(commands);
    return code;
}

/* config -> cluster -> plan -> advice -> renderings, as the program does it. */
static struct result run_scenario(const struct scenario *it)
{
    static const char *const env[] = {"HOME=/root", "A_TOKEN=hunter2\033token", NULL};
    static const char *const keys[] = {"cluster", "cluster.node_groups"};
    struct result result = {0};
    struct roost_report *report = roost_report_new();
    if (!report)
        return (struct result){.code = ROOST_ERR_MEMORY};
    struct roost_config_options reading = {
        .path = it->yaml ? "nomem.yaml" : path_in_folder(0, it->file),
        .text = it->yaml,
        .text_len = it->yaml ? strlen(it->yaml) : 0,
        .overrides = it->overrides,
        .env = env,
        .follow_defaults = it->follows_defaults,
        .line_keys = keys,
        .line_key_count = it->is_of_program ? sizeof keys / sizeof *keys : 0,
        .reads_model = it->mode == ROOST_MODE_MODEL_PARALLEL,
    };
    while (it->overrides[reading.override_count])
        reading.override_count++;
    struct roost_error err;
    struct roost_config *config = it->is_lenient ? roost_config_load_lenient(&reading, report, &err)
                                                 : roost_config_load(&reading, report, &err);
    result.code = err.code;
    struct roost_cluster *cluster = NULL;
    struct roost_plan *plan = NULL;
    if (config) {
        bool is_file = it->cluster && strchr(it->cluster, '.');
        struct roost_cluster_options wanted = {
            .text = is_file ? path_in_folder(1, it->cluster) : it->cluster, .config = config};
        cluster = roost_cluster_new(&wanted, report, &err);
        result.code = first_of(result.code, err.code);
    }
    if (cluster) {
        struct roost_plan_options placing = {.mode = it->mode};
        plan = roost_plan_new(config, cluster, &placing, report, &err);
        result.code = first_of(result.code, err.code);
    } else if (config) {
        result.code = first_of(result.code, roost_plan_check_texts(config, report, &err));
    }
    if (plan && result.code == ROOST_OK) {
        roost_plan_advise(plan, config, cluster, report);
        hash_config(&result.plan, config);
        result.code = render_plan(plan, cluster, &result.plan);
        result.code = first_of(result.code, make_commands(config, cluster, plan, &result.plan));
    }
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    result.code = first_of(result.code, finish_report(report, &result));
    return result;
}

#define MODEL                                                                                      \
    "actor: {model: {tensor_model_parallel_size: 2}}\n"                                            \
    "rollout: {tensor_parallel_size: 1}\nalgorithm: {recompute_logprobs: true}\n"

static const struct scenario scenarios[] = {
    {.name = "everything a config can hold",
     .yaml =
         "cluster:\n"
         "  num_nodes: 2\n"
         "  node_groups:\n"
         "    - &gpu\n"
         "      label: gpu\n"
         "      node_ranks: 0\n"
         "      env_configs:\n"
         "        - {node_ranks: all, env_vars: [{A: yes}, {B: \"${oc.env:HOME}/x\"}, {RANK: 0},\n"
         "           {C: \"Bearer ${oc.env:A_TOKEN}\"}],\n"
         "           python_interpreter_path: /bin/python}\n"
         "    - {label: arms, node_ranks: [0, 1], hardware: {type: Franka, configs: [\n"
         "        {node_rank: 0, robot_ip: 10.0.0.1, camera_serials: [a, b]}, {node_rank: 1}]}}\n"
         "    - {<<: *gpu, label: more, node_ranks: 0-1}\n"
         "    - {label: cpu, node_ranks: all, ignore_hardware: true}\n"
         "  component_placement:\n"
         "    actor,critic: {node_group: gpu, placement: \"${ranks.actor}\"}\n"
         "    rollout: &rollout {node_group: \"gpu, more\", placement: \"4-7:0-1\"}\n"
         "    copy: *rollout\n"
         "    env: {node_group: arms, placement: all}\n"
         "    agent: {node_group: cpu, placement: \"0-1:0-4\"}\n"
         "    idle: 010\n"
         "ranks: {n: 3, actor: \"0-${.n}\"}\n"
         "roost:\n"
         "  engine: local\n"
         "  launch:\n"
         "    actor: {command: [./train, \"%{RANK}\", \"${oc.env:HOME,x}\", "
         "\"${oc.env:A_TOKEN}\"], restart: never,\n"
         "            env: {LOG: debug, PATH: \"/x/%{RANK}\"}, ports: {http: {hand_over: yes}}, "
         "ready: {port: http}, after: [env]}\n"
         "    critic: {isolate: false, local_rank: zero, cwd: /tmp, bind: {cpu: all},\n"
         "             command: [./judge, \"%{actor.0.port.http}\", \"%{actor.addresses.http}\", "
         "$RANK]}\n",
     .cluster = "1x8 A800,2x8 AMD",
     .overrides = {"+cluster.component_placement.idle=6-7", "roost.launch.actor.command.0=./run",
                   "+new.key={a: [1, 2]}"}},
    {.name = "defaults composed from files",
     .file = "main.yaml",
     .cluster = "1x4",
     .follows_defaults = true},
    {.name = "files that overrides choose",
     .file = "main.yaml",
     .cluster = "1x4",
     .overrides = {"group=other", "+group@extra=part"},
     .follows_defaults = true},
    {.name = "a snapshot", .file = "snapshot.yaml", .cluster = "snapshot.json"},
    {.name = "a snapshot with facts", .file = "snapshot.yaml", .cluster = "facts.json"},
    {.name = "a text that a program wrote",
     .yaml = "cluster: {num_nodes: 1, component_placement: {a: 0}, node_groups: [{label: g,\n"
             "  node_ranks: 0, env_configs: [{node_ranks: 0, env_vars: [{A: \"x "
             "hunter2\\etoken\"}]}]}]}\n",
     .cluster = "1x2",
     .is_of_program = true},
    {.name = "the cluster of the config",
     .yaml =
         "cluster: {num_nodes: 1, component_placement: {a: all}}\nroost: {cluster: \"1x2,1x0\"}\n"},
    {.name = "this machine",
     .yaml =
         "cluster: {num_nodes: 1, component_placement: {a: {node_group: node, placement: 0}}}\n",
     .cluster = "local"},
    {.name = "collocated",
     .yaml = "cluster: {num_nodes: 1, component_placement: {\"actor,rollout,reward\": 0-3, env: "
             "0}}\n" MODEL,
     .cluster = "1x4",
     .mode = ROOST_MODE_MODEL_PARALLEL},
    {.name = "disaggregated",
     .yaml = "cluster: {num_nodes: 2, component_placement: {actor: 0-1, rollout: \"2-3:0-1\", "
             "inference: 4-5, critic: 6, critic_inference: 7, reward: 0-1}}\n" MODEL,
     .cluster = "2x4",
     .mode = ROOST_MODE_MODEL_PARALLEL},
    {.name = "auto",
     .yaml = "cluster: {num_nodes: 1, auto_scheduler: true, use_pre_process_policy: true, "
             "component_placement: {actor: 0-3, rollout: 4-7, reward: 0}}\n" MODEL,
     .cluster = "1x8",
     .mode = ROOST_MODE_MODEL_PARALLEL},
    {.name = "neither mode",
     .yaml =
         "cluster: {num_nodes: 1, component_placement: {actor: 0-3, rollout: 2-5, reward: 0}}\n",
     .cluster = "1x8",
     .mode = ROOST_MODE_MODEL_PARALLEL},
    {.name = "many errors",
     .yaml =
         "cluster:\n"
         "  num_nodes: ${oc.env:A_TOKEN}\n"
         "  nodegroup: 1\n"
         "  node_groups:\n"
         "    - {label: node, node_ranks: 9}\n"
         "    - {label: a b, node_ranks: 3-1, hardware: {type: Robot, configs: 1}}\n"
         "    - {node_ranks: [0, [1]], env_configs: {a: b}, ignore_hardware: maybe, wrong: 1}\n"
         "    - {label: r, node_ranks: 0, hardware: {type: Franka, configs: [{node_rank: 0},\n"
         "       {node_rank: 0}, {robot_ip: x}, {node_rank: 7, camera: 1}]}}\n"
         "    - {label: e, node_ranks: 0-1, env_configs: [{node_ranks: 0, env_vars: [{A: 1}, {A: "
         "2}, 3, {B: 1, C: 2}]}, {node_ranks: 0-3}]}\n"
         "    - 5\n"
         "  component_placement:\n"
         "    actor,: 0-8\n"
         "    actor: [0]\n"
         "    rollout: {placement: \"0:0:0,x,1-0\", node_group: zzz, extra: 1}\n"
         "    c: \"???\"\n"
         "    d: ${nowhere}\n"
         "    e: ${oc.env:UNSET}\n"
         "    f: {node_group: [e, e], placement: 1}\n"
         "    f: 1\n"
         "roost: {launch: {nobody: 1, actor: {command: x, env: {RANK: 1, P: "
         "\"%{a.0.host}%{actor.0.port.http}%{.}\"}, after: [f, g], ready: "
         "{}}}, engine: slurm, logs: 1}\n",
     .cluster = "2x4",
     .overrides = {"wrong", "num_nodes=1", "cluster.node_groups.9=1"},
     .is_lenient = true},
    {.name = "many errors and no cluster",
     .yaml = "cluster: {num_nodes: 1, component_placement: {a: x, b: \"1,0\", c: {node_group: q, "
             "placement: 0}, d: 0-3}}\n",
     .cluster = "missing.json",
     .is_lenient = true},
    {.name = "not yaml", .yaml = "cluster: {num_nodes: [1\n"},
    {.name = "no file", .file = "missing.yaml"},
    {.name = "a wrong snapshot", .file = "snapshot.yaml", .cluster = "wrong.json"},
    {.name = "a snapshot with wrong facts", .file = "snapshot.yaml", .cluster = "wrong_facts.json"},
    {.name = "a spec that is none",
     .yaml = "cluster: {num_nodes: 1, component_placement: {a: 0}}\nroost: {cluster: 1x4 a b}\n"},
};

static const char *const files[][2] = {
    {"main.yaml", "defaults:\n  - base\n  - group: part\n  - optional none\n  - missing\n"
                  "  - override x: y\n  - _self_\n"
                  "cluster: {component_placement: {actor: \"${part.ranks}\"}}\n"},
    {"base.yaml",
     "defaults: [more@extra]\ncluster: {num_nodes: 1, component_placement: {env: 0}}\n"},
    {"more.yaml", "a: {b: c}\n"},
    {"group/other.yaml", "# @package part\nranks: 0-1\n"},
    {"group/part.yaml", "# @package part\nranks: 1-2\n"},
    {"snapshot.yaml", "cluster: {num_nodes: 1, component_placement: {actor: all}}\n"},
    {"snapshot.json",
     "{\"roost\": 1, \"cluster\": {\"nodes\": [{\"id\": \"b\", \"address\": \"node10\", "
     "\"accelerators\": [{\"id\": \"0\", \"uuid\": \"u\"}, {\"numa\": 1}], \"hardware\": "
     "[{\"type\": "
     "\"Franka\", \"config\": {\"a\": [1, {\"b\": null}]}}]}, {\"address\": \"node9\", \"id\": "
     "\"a\", "
     "\"num_accelerators\": 3, \"accelerator_model\": \"X\", \"extra\": [1, 2]}]}}\n"},
    {"facts.json",
     "{\"cluster\": {\"nodes\": [{\"num_accelerators\": 2, \"address\": \"b\", \"ray\": "
     "{\"resources\": {\"GPU\": 4.0}}, \"env\": {\"ROOST_NODE_RANK\": \"1\"}}, {\"ray\": "
     "{\"resources\": {\"GPU\": 4.0}, \"accelerator_type\": \"AMD\"}, \"env\": "
     "{\"RLINF_NODE_RANK\": \"0\"}}]}}\n"},
    {"wrong_facts.json",
     "{\"cluster\": {\"nodes\": [{\"ray\": {\"resources\": {\"GPU\": -1}}, \"env\": "
     "{\"ROOST_NODE_RANK\": \"x\"}}, {\"ray\": {\"resources\": {\"GPU\": 2000}}}]}}\n"},
    {"wrong.json",
     "{\"cluster\": {\"nodes\": [{\"num_accelerators\": 1, \"accelerators\": []}]}}\n"},
};

TEST(any_allocation_may_fail_while_a_config_is_planned)
{
    assert_int_equal(mkdir(path_in_folder(0, "group"), 0700), 0);
    for (size_t i = 0; i < ROWS(files); i++)
        put_file(files[i][0], files[i][1]);
    for (size_t i = 0; i < ROWS(scenarios); i++)
        check_scenario(scenarios[i].name, run_scenario, &scenarios[i]);
}

RUN_IN_FOLDER(cmocka_unit_test(any_allocation_may_fail_while_a_config_is_planned))
