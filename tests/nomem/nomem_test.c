/* nomem_test.c - what happens when there is no memory.
 *
 * Every scenario runs once to count its allocations and to learn its result. Then it runs again for
 * each of them: once with only that one failing, once with all from there on. It must end with
 * ROOST_ERR_MEMORY, or with the result it had: never with another one, never with a crash, and (under
 * ASan) never with a leak. The linker sends malloc, calloc, realloc and free of roost and of libyaml
 * here (-Wl,--wrap). */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <roost/roost.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/logs_view.h"
#include "config/config.h"
#include "launch/commands_view.h"
#include "launch/last_lines.h"
#include "launch/local/spec.h"
#include "launch/local/spec_write.h"
#include "tests/unit.h"

/* --- the allocator --- */

static struct {
    bool is_on;
    size_t calls;
    size_t fails_at; /* number of the call, from 1; 0 = none */
    bool fails_on;   /* and all behind it */
    size_t live, peak, limit;
} heap;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *old);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

static bool must_fail(size_t size)
{
    if (!heap.is_on)
        return false;
    heap.calls++;
    bool is_full = heap.limit && (size > heap.limit || heap.live > heap.limit - size);
    bool is_chosen = heap.fails_at &&
                     (heap.fails_on ? heap.calls >= heap.fails_at : heap.calls == heap.fails_at);
    if (is_full || is_chosen)
        errno = ENOMEM;
    return is_full || is_chosen;
}

static void *count_in(void *got)
{
    if (got && heap.is_on) {
        heap.live += malloc_usable_size(got);
        heap.peak = heap.live > heap.peak ? heap.live : heap.peak;
    }
    return got;
}

static void count_out(void *old)
{
    size_t size = old && heap.is_on ? malloc_usable_size(old) : 0;
    heap.live -= size < heap.live ? size : heap.live;
}

void *__wrap_malloc(size_t size)
{
    return must_fail(size) ? NULL : count_in(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail(count * size) ? NULL : count_in(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
    if (must_fail(size))
        return NULL;
    count_out(old);
    return count_in(__real_realloc(old, size));
}

void __wrap_free(void *old)
{
    count_out(old);
    __real_free(old);
}

/* --- results --- */

struct result {
    enum roost_code code; /* of the first call that failed */
    size_t errors;        /* in the report */
    int status;           /* of the report */
    uint64_t plan;        /* a hash of all that was planned, and of the config behind it */
    uint64_t report;      /* a hash of the report as it was rendered */
};

static bool hash_bytes(void *ctx, const char *bytes, size_t len)
{
    uint64_t *hash = ctx;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return true;
}

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
    for (int32_t g = 0; g < config->group_count; g++) {
        const struct group_config *group = &config->groups[g];
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

static enum roost_code first_of(enum roost_code a, enum roost_code b)
{
    return a != ROOST_OK ? a : b;
}

static enum roost_code render_plan(const struct roost_plan *plan,
                                   const struct roost_cluster *cluster, uint64_t *hash)
{
    struct roost_text_style style = {.width = 60, .has_color = true};
    enum roost_code json = roost_render_plan_json(plan, cluster, NULL, hash_bytes, hash);
    enum roost_code text = roost_render_plan_text(plan, cluster, NULL, &style, hash_bytes, hash);
    return first_of(json, text);
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
    for (int32_t c = 0; code == ROOST_OK && c < commands->component_count; c++)
        for (int32_t p = 0; p < commands->components[c].process_count; p++)
            command_put_json(&out, &commands->components[c].processes[p]);
    hash_bytes(hash, out.bytes, out.len);
    code = first_of(code, out.has_failed ? ROOST_ERR_MEMORY : ROOST_OK);
    text_release(&out);
    if (code == ROOST_OK)
        code = hand_over(commands, hash);
    commands_free(commands);
    return code;
}

static enum roost_code finish_report(struct roost_report *report, struct result *result)
{
    result->errors = roost_report_errors(report);
    result->status = roost_report_exit(report);
    enum roost_code json = roost_render_report_json(report, hash_bytes, &result->report);
    enum roost_code text = roost_render_report_text(report, NULL, hash_bytes, &result->report);
    roost_report_free(report);
    return first_of(json, text);
}

/* --- scenarios --- */

struct scenario {
    const char *name;
    const char *yaml; /* NULL = a file in the test's folder */
    const char *file;
    const char *cluster; /* a spec, or the name of a file in the folder */
    const char *overrides[4];
    enum roost_mode mode;
    bool is_lenient, follows_defaults;
};

static char folder[] = "/tmp/roost-nomem-XXXXXX";
static char paths[2][128];

static const char *path_in_folder(int which, const char *name)
{
    snprintf(paths[which], sizeof paths[which], "%s/%s", folder, name);
    return paths[which];
}

/* config -> cluster -> plan -> advice -> renderings, as the program does it. */
static struct result run_scenario(const struct scenario *it)
{
    static const char *const env[] = {"HOME=/root", NULL};
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
         "        - {node_ranks: all, env_vars: [{A: yes}, {B: \"${oc.env:HOME}/x\"}, {RANK: 0}],\n"
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
         "    actor: {command: [./train, \"%{RANK}\", \"${oc.env:HOME,x}\"], restart: never,\n"
         "            env: {LOG: debug, PATH: \"/x/%{RANK}\"}, ports: {http: {hand_over: yes}}, "
         "ready: {port: http}, after: [env]}\n"
         "    critic: {isolate: false, local_rank: zero, cwd: /tmp, bind: {cpu: all}}\n",
     .cluster = "1x8 A800,2x8 AMD",
     .overrides = {"cluster.component_placement.idle=6-7", "roost.launch.actor.command.0=./run",
                   "new.key={a: [1, 2]}"}},
    {.name = "defaults composed from files",
     .file = "main.yaml",
     .cluster = "1x4",
     .follows_defaults = true},
    {.name = "a snapshot", .file = "snapshot.yaml", .cluster = "snapshot.json"},
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
         "  num_nodes: x\n"
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
         "roost: {launch: {nobody: 1, actor: {command: x, env: {RANK: 1}, after: [f, g], ready: "
         "{}}}, engine: slurm, logs: 1}\n",
     .cluster = "2x4",
     .overrides = {"wrong", "cluster.node_groups.9=1"},
     .is_lenient = true},
    {.name = "many errors and no cluster",
     .yaml = "cluster: {num_nodes: 1, component_placement: {a: x, b: \"1,0\", c: {node_group: q, "
             "placement: 0}, d: 0-3}}\n",
     .cluster = "missing.json",
     .is_lenient = true},
    {.name = "not yaml", .yaml = "cluster: {num_nodes: [1\n"},
    {.name = "no file", .file = "missing.yaml"},
    {.name = "a wrong snapshot", .file = "snapshot.yaml", .cluster = "wrong.json"},
    {.name = "a spec that is none",
     .yaml = "cluster: {num_nodes: 1, component_placement: {a: 0}}\nroost: {cluster: 1x4 a b}\n"},
};

/* The three strategies on one cluster, without a config. */
static struct result run_strategies(const struct scenario *unused)
{
    static const int32_t first[] = {0, 2, 3}, ranks[] = {5, 4, 0}, nodes[] = {1, 0, 1};
    static const char *const labels[] = {"cluster"};
    const struct roost_scope scope = {.labels = labels, .label_count = 1};
    const struct roost_packed packed = {0, 7, 2, 2};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_cluster_options wanted = {.text = "2x4"};
    struct roost_cluster *cluster = roost_cluster_new(&wanted, NULL, &err);
    if (!cluster)
        return (struct result){.code = err.code};
    for (int i = 0; i < 4; i++) {
        struct roost_plan *plan =
            i == 0   ? roost_plan_new_packed(cluster, &scope, &packed, &err)
            : i == 1 ? roost_plan_new_flexible(cluster, NULL, first, ranks, 2, &err)
            : i == 2 ? roost_plan_new_node(cluster, &scope, nodes, 3, &err)
                     : roost_plan_new_node(cluster, NULL, nodes, 0, &err);
        if (i < 3)
            result.code = first_of(result.code, err.code);
        if (plan)
            result.code = first_of(result.code, render_plan(plan, cluster, &result.plan));
        roost_plan_free(plan);
    }
    roost_cluster_free(cluster);
    return result;
}

/* Placement groups from a config alone, on a cluster, with models from a file. */
static struct result run_groups(const struct scenario *it)
{
    struct result result = {0};
    struct roost_error err;
    struct roost_report *report = roost_report_new();
    if (!report)
        return (struct result){.code = ROOST_ERR_MEMORY};
    struct roost_config_options reading = {
        .path = path_in_folder(0, it->file ? it->file : "groups.yaml"),
        .text = it->yaml,
        .text_len = it->yaml ? strlen(it->yaml) : 0,
        .takes_groups_alone = true,
    };
    struct roost_config *config = roost_config_load(&reading, report, &err);
    result.code = err.code;
    struct roost_cluster_options wanted = {.text = it->cluster, .config = config};
    struct roost_cluster *cluster =
        config && it->cluster ? roost_cluster_new(&wanted, report, &err) : NULL;
    result.code = first_of(result.code, err.code);
    struct roost_bundles *bundles = config && (cluster || !it->cluster)
                                        ? roost_bundles_new(config, cluster, NULL, report, &err)
                                        : NULL;
    result.code = first_of(result.code, err.code);
    if (bundles) {
        enum roost_code json = roost_render_groups_json(bundles, hash_bytes, &result.plan);
        enum roost_code text = roost_render_groups_text(bundles, NULL, hash_bytes, &result.plan);
        result.code = first_of(result.code, first_of(json, text));
    }
    roost_bundles_free(bundles);
    roost_cluster_free(cluster);
    roost_config_free(config);
    result.code = first_of(result.code, finish_report(report, &result));
    return result;
}

static const struct scenario groups[] = {
    {.name = "groups with models in a file", .file = "groups.yaml", .cluster = "6x8"},
    {.name = "external engines",
     .yaml = "roost: {groups: {rollout_external_engine_addrs: [\"a:1\", {address: \"b:2\", "
             "num_gpus: 4}], num_http_posters: 3}}\n"},
    {.name = "groups that straddle",
     .yaml = "roost: {groups: {actor_num_gpus_per_node: 4, rollout_num_gpus: 16, "
             "rollout_num_gpus_per_engine: 8}}\n",
     .cluster = "4x8"},
    {.name = "groups that are wrong",
     .yaml = "roost: {groups: {rolout: 1, rollout_num_gpus: -1, sglang: [{name: a}]}}\n"},
};

static bool answer_name(void *ctx, const char *name, char *out, size_t size)
{
    (void)ctx;
    snprintf(out, size, "10.0.0.%zu", strlen(name));
    return true;
}

/* Bundles on more nodes than a table starts with. */
static struct result run_order(const struct scenario *unused)
{
    enum { BUNDLES = 90 };
    static char ids[BUNDLES][8];
    struct roost_bundle bundles[BUNDLES];
    struct roost_order_options options = {.resolve = answer_name};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    for (int i = 0; i < BUNDLES; i++) {
        snprintf(ids[i], sizeof ids[i], "n%d", i / 2);
        bundles[i] =
            (struct roost_bundle){BUNDLES - i, i % 3 ? ids[i] : NULL, ids[i], ids[i], NULL};
    }
    struct roost_order *order = roost_order_new(bundles, BUNDLES, &options, &err);
    result.code = err.code;
    if (order)
        hash_bytes(&result.plan, (const char *)roost_order_indices(order),
                   BUNDLES * sizeof(int32_t));
    roost_order_free(order);
    return result;
}

/* A cluster from parts, strategies placed again from a plan's numbers, and the checks. */
static struct result run_parts(const struct scenario *unused)
{
    static const char *const arms[] = {"Franka", "Franka"};
    static const struct roost_node_part nodes[] = {{ROOST_ACCELERATOR_NVIDIA, 4, NULL, 0, 0},
                                                   {ROOST_ACCELERATOR_AMD, 2, arms, 2, 0}};
    static const int32_t both[] = {0, 1};
    static const struct roost_group_part parts[] = {{"both", NULL, both, 2, true},
                                                    {"arms", "Franka", both + 1, 1, false},
                                                    {"node", NULL, both, 2, false}};
    static const char *const labels[] = {"both"};
    const struct roost_scope scope = {.labels = labels, .label_count = 1};
    const struct roost_packed packed = {0, 3, 2, 1};
    int32_t first[] = {0, 2, 4}, ranks[4], node_rank, local_rank;
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_cluster *cluster =
        roost_cluster_new_parts(&(struct roost_cluster_parts){nodes, 2, parts, ROWS(parts)}, &err);
    if (!cluster)
        return (struct result){.code = err.code};
    result.code = first_of(roost_packed_check(&packed, &err), roost_node_check(both, 2, &err));
    struct roost_plan *plan = roost_plan_new_packed(cluster, &scope, &packed, &err);
    result.code = first_of(result.code, err.code);
    if (plan && roost_component_ranks(roost_plan_component(plan, 0), cluster, ranks) &&
        roost_cluster_locate(cluster, 0, ranks[3], &node_rank, &local_rank)) {
        result.code = first_of(result.code, roost_flexible_check(first, ranks, 2, &err));
        struct roost_plan *again = roost_plan_new_flexible(cluster, &scope, first, ranks, 2, &err);
        result.code = first_of(result.code, err.code);
        if (again)
            result.code = first_of(result.code, render_plan(again, cluster, &result.plan));
        roost_plan_free(again);
    }
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    return result;
}

/* A program's text with keys for its lines; a name twice makes an error that says one. */
static struct result run_keyed(const struct scenario *unused)
{
    static const char text[] =
        "{cluster: {num_nodes: 1,\ncomponent_placement: {a: 0,\n\"b,a\": 1}}}";
    static const char *const keys[] = {"cluster", "cluster.a", "cluster.b"};
    struct roost_config_options reading = {.path = "config",
                                           .text = text,
                                           .text_len = sizeof text - 1,
                                           .line_keys = keys,
                                           .line_key_count = ROWS(keys)};
    struct roost_error err;
    struct result result = {0};
    (void)unused;
    struct roost_report *report = roost_report_new();
    if (!report)
        return (struct result){.code = ROOST_ERR_MEMORY};
    struct roost_config *config = roost_config_load(&reading, report, &err);
    roost_config_free(config);
    result.code = err.code;
    result.code = first_of(result.code, finish_report(report, &result));
    return result;
}

/* Leases beside a living holder: taken, let go, held again, given back; then more than there are. */
static struct result run_leases(const struct scenario *unused)
{
    static const struct roost_port_want wants[] = {{1, false}, {3, false}, {1, true}};
    static const struct roost_port_want too_many[] = {{300, false}};
    struct roost_port_options options = {
        .dir = path_in_folder(0, "leases"), .owner = "nomem", .proc = folder};
    struct result result = {0};
    struct roost_error err;
    (void)unused;
    struct roost_leases *holder = roost_leases_new(&options, wants, 1, &err);
    struct roost_leases *leases = holder ? roost_leases_new(&options, wants, 3, &err) : NULL;
    result.code = err.code;
    if (leases) {
        roost_leases_release(leases, 1);
        result.code = roost_leases_hold(leases, 1, &err);
        struct roost_leases *none = roost_leases_new(&options, too_many, 1, &err);
        /* It is said which: too many, or no memory to find out. */
        result.code = first_of(result.code, none                           ? ROOST_ERR_BUG
                                            : err.code == ROOST_ERR_MEMORY ? err.code
                                                                           : ROOST_OK);
        result.plan = 1;
        roost_leases_free(none);
    }
    roost_leases_free(leases);
    roost_leases_free(holder);
    return result;
}

/* The logs of a run of two components, in order and followed, and their last lines. */
static bool has_ended(void *ctx)
{
    (void)ctx;
    return false;
}

static enum roost_code show_logs(int run_dir, int out, bool follows)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct logs_options options = {
        .screen.fds = {out, out}, .follows = follows, .is_alive = has_ended};
    int failed = 0;
    return logs_show(run_dir, &options, &failed, &diag) ? ROOST_OK : err.code;
}

static struct result run_logs(const struct scenario *unused)
{
    struct result result = {0};
    struct text text = TEXT_INIT;
    (void)unused;
    int run_dir = open(path_in_folder(0, "run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int out = memfd_create("logs", MFD_CLOEXEC);
    result.code = show_logs(run_dir, out, false);
    if (result.code == ROOST_OK)
        result.code = show_logs(run_dir, out, true);
    last_lines(run_dir, "actor", 0, LOG_STDOUT, 3, "> ", &text);
    if (text.has_failed)
        result.code = first_of(result.code, ROOST_ERR_MEMORY);
    char bytes[4096];
    ssize_t got = pread(out, bytes, sizeof bytes, 0);
    if (result.code == ROOST_OK) {
        hash_bytes(&result.plan, bytes, got > 0 ? (size_t)got : 0);
        hash_bytes(&result.plan, text.bytes, text.len);
    }
    text_release(&text);
    close(out);
    close(run_dir);
    return result;
}

/* Managers asked for everything they do: the answers, and those that come later. */
static void hash_later(void *context, uint64_t owner, const char *answer, size_t len)
{
    uint64_t *hash = context;
    *hash = (*hash ^ owner) * UINT64_C(1099511628211);
    hash_bytes(hash, answer, len);
}

static struct result run_managers(const struct scenario *unused)
{
    static const char view[] = "{\"nodes\": [{\"num_accelerators\": 4, \"id\": \"a\"}], "
                               "\"node_groups\": [], \"config\": \"x\", \"master_ip\": null}";
    static const struct {
        uint64_t owner;
        const char *request;
    } requests[] = {
        {1, "{\"id\":1,\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:0\",{\"b\":[1]}]}"},
        {2, "{\"call\":\"WorkerManager.register_worker\",\"args\":[\"a:0\",{\"b\":[2]}]}"},
        {2, "{\"call\":\"WorkerManager.get_worker_info\",\"args\":[\"a:0\"]}"},
        {1, "{\"call\":\"CollectiveManager.register_collective_group\",\"args\":"
            "[{\"group_name\":\"g\",\"workers\":[\"a:0\",{\"address\":\"a:1\"}]}]}"},
        {2, "{\"call\":\"CollectiveManager.register_collective_group\",\"args\":"
            "[{\"group_name\":\"g\",\"workers\":[\"a:0\",\"a:1\"]}]}"},
        {2, "{\"call\":\"CollectiveManager.get_collective_group\",\"args\":[\"g\"]}"},
        {2, "{\"call\":\"CollectiveManager.set_master_port_info\",\"args\":[\"g\",1]}"},
        {1, "{\"call\":\"PortLockManager.acquire\",\"args\":[0,\"a:0\",5000]}"},
        {1, "{\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"a:0\",[0,[0,1]]]}"},
        {2, "{\"id\":9,\"call\":\"DeviceLockManager.acquire_devices\",\"args\":[\"a:1\",[1]]}"},
        {1, "{\"call\":\"DeviceLockManager.release_devices\",\"args\":[\"a:0\",[0,1]]}"},
        {3, "{\"call\":\"NodeManager.get_view\",\"args\":[]}"},
        {3, "{\"call\":\"Nobody.knows\",\"args\":[]}"},
    };
    struct roost_error err;
    struct result result = {0};
    (void)unused;
    struct roost_managers *managers =
        roost_managers_new(view, sizeof view - 1, hash_later, &result.plan, &err);
    result.code = managers ? ROOST_OK : err.code;
    for (size_t i = 0; i < ROWS(requests) && result.code == ROOST_OK; i++) {
        char *answer = NULL;
        result.code = roost_managers_answer(managers, requests[i].owner, requests[i].request,
                                            strlen(requests[i].request), &answer, &err);
        if (answer && strstr(answer, "\"code\":\"memory\""))
            result.code = ROOST_ERR_MEMORY; /* nothing has changed, as the sanitizers can tell */
        if (answer)
            hash_bytes(&result.plan, answer, strlen(answer));
        roost_answer_free(answer);
    }
    if (managers)
        roost_managers_owner_gone(managers, 1);
    roost_managers_free(managers);
    return result;
}

/* --- running them --- */

typedef struct result (*run_fn)(const struct scenario *);

static struct result run_with(run_fn run, const struct scenario *it, size_t fails_at, bool fails_on)
{
    memset(&heap, 0, sizeof heap);
    heap.fails_at = fails_at;
    heap.fails_on = fails_on;
    heap.is_on = true;
    struct result result = run(it);
    heap.is_on = false;
    return result;
}

static void check_result(const char *name, size_t n, const struct result *usual,
                         const struct result *got)
{
    if (got->code != usual->code && got->code != ROOST_ERR_MEMORY)
        fail_msg("%s, allocation %zu: '%s' instead of '%s'", name, n, roost_code_word(got->code),
                 roost_code_word(usual->code));
    if (got->code == ROOST_OK && got->plan != usual->plan)
        fail_msg("%s, allocation %zu: another plan", name, n);
    /* A report may keep less, but it counts right, or it tells of the memory. */
    if (got->code != ROOST_ERR_MEMORY && got->errors != usual->errors && got->status != 5)
        fail_msg("%s, allocation %zu: %zu errors instead of %zu", name, n, got->errors,
                 usual->errors);
}

static bool is_same(const struct result *a, const struct result *b)
{
    return a->code == b->code && a->errors == b->errors && a->status == b->status &&
           a->plan == b->plan && a->report == b->report;
}

static void check_scenario(const char *name, run_fn run, const struct scenario *it)
{
    struct result usual = run_with(run, it, 0, false);
    size_t count = heap.calls, failed = 0;
    struct result again = run_with(run, it, 0, false);
    assert_true(is_same(&usual, &again)); /* same input, same result */
    assert_int_equal(heap.calls, count);
    assert_true(count > 3);
    for (size_t n = 1; n <= count; n++) {
        for (int fails_on = 0; fails_on < 2; fails_on++) {
            struct result got = run_with(run, it, n, fails_on);
            check_result(name, n, &usual, &got);
            failed += got.code == ROOST_ERR_MEMORY;
        }
    }
    assert_true(failed > 0); /* memory did matter */
}

TEST(any_allocation_may_fail_while_a_config_is_planned)
{
    for (size_t i = 0; i < ROWS(scenarios); i++)
        check_scenario(scenarios[i].name, run_scenario, &scenarios[i]);
}

TEST(any_allocation_may_fail_while_a_strategy_is_placed)
{
    check_scenario("strategies", run_strategies, NULL);
}

TEST(any_allocation_may_fail_while_groups_are_laid_out_and_sorted)
{
    for (size_t i = 0; i < ROWS(groups); i++)
        check_scenario(groups[i].name, run_groups, &groups[i]);
    check_scenario("order", run_order, NULL);
}

TEST(any_allocation_may_fail_while_a_program_describes)
{
    check_scenario("parts", run_parts, NULL);
    check_scenario("keys of lines", run_keyed, NULL);
}

TEST(any_allocation_may_fail_while_managers_answer)
{
    check_scenario("managers", run_managers, NULL);
}

TEST(any_allocation_may_fail_while_ports_are_leased)
{
    /* A kernel that leaves two hundred ports, so that looking at all of them is quick. */
    static const char *const parts[] = {"sys", "sys/net", "sys/net/ipv4"};
    for (size_t i = 0; i < ROWS(parts); i++)
        assert_int_equal(mkdir(path_in_folder(0, parts[i]), 0700), 0);
    FILE *range = fopen(path_in_folder(0, "sys/net/ipv4/ip_local_port_range"), "w");
    assert_non_null(range);
    fputs("1024 65335\n", range);
    fclose(range);
    int before = dup(0);
    close(before);
    check_scenario("leases", run_leases, NULL);
    int after = dup(0);
    close(after);
    unlink(path_in_folder(0, "sys/net/ipv4/ip_local_port_range"));
    for (size_t i = ROWS(parts); i-- > 0;)
        assert_int_equal(rmdir(path_in_folder(0, parts[i])), 0);
    assert_int_equal(before, after); /* nothing was left open */
    assert_int_equal(unlink(path_in_folder(0, "leases/ports.lock")), 0);
    assert_int_equal(rmdir(path_in_folder(0, "leases")), 0); /* and no lease file */
}

TEST(any_allocation_may_fail_while_logs_are_shown)
{
    mkdir(path_in_folder(0, "run"), 0700);
    for (int rank = 0; rank < 40; rank++) {
        char path[128];
        const char *component = rank < 20 ? "actor" : "env";
        snprintf(path, sizeof path, "%s/run/%s", folder, component);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/run/%s/%d", folder, component, rank % 20);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/run/%s/%d/stdout.log", folder, component, rank % 20);
        FILE *file = fopen(path, "w");
        fputs("one\ntwo\x1b[31m\n", file);
        fclose(file);
    }
    check_scenario("logs", run_logs, NULL);
}

/* --- what a hostile file may cost --- */

enum { MEBIBYTE = 1 << 20, COST_MAX = 64 * MEBIBYTE };

static size_t cost_of(const struct text *yaml, const char *const *env)
{
    struct roost_config_options reading = {
        .path = "hostile.yaml", .text = yaml->bytes, .text_len = yaml->len, .env = env};
    assert_true(yaml->len <= MEBIBYTE);
    memset(&heap, 0, sizeof heap);
    heap.limit = (size_t)2 * COST_MAX;
    heap.is_on = true;
    struct roost_report *report = roost_report_new();
    struct roost_config *config = roost_config_load_lenient(&reading, report, NULL);
    if (config) {
        struct roost_cluster_options wanted = {.text = "2x4", .config = config};
        struct roost_cluster *cluster = roost_cluster_new(&wanted, report, NULL);
        struct roost_plan *plan =
            cluster ? roost_plan_new(config, cluster, NULL, report, NULL) : NULL;
        roost_plan_free(plan);
        roost_cluster_free(cluster);
        enum roost_code code = roost_plan_check_texts(config, report, NULL);
        (void)code;
    }
    roost_config_free(config);
    roost_report_free(report);
    heap.is_on = false;
    return heap.peak;
}

/* Fills up to a mebibyte with `piece`, then ends with `tail`. %d in it counts. */
static void fill(struct text *yaml, const char *piece, int most, const char *tail)
{
    for (int i = 0; i < most && yaml->len + 64 < MEBIBYTE; i++) {
        const char *mark = strchr(piece, '%');
        text_append(yaml, piece, mark ? (size_t)(mark - piece) : strlen(piece));
        if (mark) {
            text_int(yaml, i);
            text_puts(yaml, mark + 1);
        }
    }
    text_puts(yaml, tail);
}

static void check_cost(const char *name, struct text *yaml, const char *const *env)
{
    size_t cost = cost_of(yaml, env);
    if (cost > COST_MAX)
        fail_msg("%s: a file of %zu bytes costs %zu MiB", name, yaml->len, cost / MEBIBYTE);
    text_release(yaml);
}

#define HEAD "cluster: {num_nodes: 2, component_placement: {actor: 0}}\n"

TEST(interpolations_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, HEAD "x: ");
    text_repeat(&yaml, 'x', 65000);
    text_puts(&yaml, "\nroost: {launch: {actor: {command: [");
    fill(&yaml, "'${x}y',", 90000, "]}}}\n");
    check_cost("joined texts", &yaml, NULL);

    char variable[65000 + 8];
    const char *const env[] = {variable, NULL};
    memset(variable, 'x', sizeof variable);
    memcpy(variable, "V=", 2);
    variable[sizeof variable - 1] = '\0';
    text_puts(&yaml, HEAD "roost: {launch: {actor: {command: [");
    fill(&yaml, "'${oc.env:V}',", 90000, "]}}}\n");
    check_cost("one large variable", &yaml, env);
}

TEST(names_that_are_not_there_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "cluster: {num_nodes: 2, component_placement: {");
    fill(&yaml, "c%: 0,", 4096, "}}\nroost: {launch: {");
    fill(&yaml, "n%: 1,", 40000, "}}\n");
    check_cost("launch of components that are not placed", &yaml, NULL);

    text_puts(&yaml, "cluster: {num_nodes: 2, node_groups: [");
    fill(&yaml, "{label: g%, node_ranks: 0},", 4096, "], component_placement: {");
    fill(&yaml, "c%: {node_group: [z,y,x,w,v,u,t,s,r,q,p], placement: 0},", 4000, "}}\n");
    check_cost("labels of groups that are not there", &yaml, NULL);
}

TEST(groups_cannot_be_made_to_cost_memory)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "cluster: {num_nodes: 2000000, component_placement: {actor: 0}, node_groups: "
                     "[{label: g, node_ranks: \"");
    for (int i = 0; i < 10000; i++)
        text_printf(&yaml, "%d,", 2 * i);
    text_puts(&yaml, "\", env_configs: [");
    fill(&yaml, "{node_ranks: 0},", 30000, "]}]}\n");
    check_cost("env_configs of a scattered group", &yaml, NULL);

    text_puts(&yaml, "cluster: {num_nodes: 2, component_placement: {actor: 0}, node_groups: [");
    fill(&yaml, "{label: g%, node_ranks: all},", 4096, "]}\n");
    check_cost("many groups", &yaml, NULL);
}

TEST(shapes_of_yaml_cannot_be_made_to_cost_memory)
{
    static const struct {
        const char *head, *piece, *tail;
    } rows[] = {
        {"[", "a,", "]"},
        {"", "[", ""},
        {"{", "k%: 1,", "}"},
        {"{", "? a%,", "}"},
        {"a: &a {b: 1, c: 2, d: 3}\n", "k%: {<<: *a}\n", ""},
        {"cluster: {num_nodes: 1, component_placement: {a: \"", "0,", "\"}}"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0-3}, node_groups: [",
         "{label: x, node_ranks: 0-1},", "]}"},
        {"cluster: {num_nodes: 1, component_placement: {a: 0-3}}\nroost: {launch: {a: {env: {",
         "V%: 1,", "}}}}"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text yaml = TEXT_INIT;
        text_puts(&yaml, rows[i].head);
        fill(&yaml, rows[i].piece, 1000000, rows[i].tail);
        check_cost(rows[i].piece, &yaml, NULL);
    }
}

/* --- files --- */

static void put_file(const char *name, const char *content)
{
    FILE *file = fopen(path_in_folder(0, name), "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char *const files[][2] = {
    {"main.yaml", "defaults:\n  - base\n  - group: part\n  - optional none\n  - missing\n"
                  "  - override x: y\n  - _self_\n"
                  "cluster: {component_placement: {actor: \"${part.ranks}\"}}\n"},
    {"base.yaml",
     "defaults: [more@extra]\ncluster: {num_nodes: 1, component_placement: {env: 0}}\n"},
    {"more.yaml", "a: {b: c}\n"},
    {"group/part.yaml", "# @package part\nranks: 1-2\n"},
    {"snapshot.yaml", "cluster: {num_nodes: 1, component_placement: {actor: all}}\n"},
    {"snapshot.json",
     "{\"roost\": 1, \"cluster\": {\"nodes\": [{\"id\": \"b\", \"address\": \"node10\", "
     "\"accelerators\": [{\"id\": \"0\", \"uuid\": \"u\"}, {\"numa\": 1}], \"hardware\": "
     "[{\"type\": "
     "\"Franka\", \"config\": {\"a\": [1, {\"b\": null}]}}]}, {\"address\": \"node9\", \"id\": "
     "\"a\", "
     "\"num_accelerators\": 3, \"accelerator_model\": \"X\", \"extra\": [1, 2]}]}}\n"},
    {"wrong.json",
     "{\"cluster\": {\"nodes\": [{\"num_accelerators\": 1, \"accelerators\": []}]}}\n"},
    {"groups.yaml", "roost: {groups: {rollout_num_gpus: 40, use_critic: true, profile: seed, "
                    "num_gpus_per_actor: 0.4, sglang_config: models.yaml}}\n"},
    {"models.yaml", "sglang:\n  - name: a\n    num_gpus_per_engine: 4\n    server_groups:\n"
                    "      - {worker_type: prefill, num_gpus: 8}\n"
                    "      - {worker_type: decode, num_gpus: 16, num_gpus_per_engine: 16}\n"
                    "  - name: b\n    model_path: /m\n    engine_groups:\n"
                    "      - {worker_type: regular, num_gpus: 8, overrides: {model_path: /m}}\n"
                    "      - {worker_type: placeholder, num_gpus: 8}\n"},
};

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || mkdirat(AT_FDCWD, path_in_folder(0, "group"), 0700) != 0)
        return -1;
    for (size_t i = 0; i < ROWS(files); i++)
        put_file(files[i][0], files[i][1]);
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_allocation_may_fail_while_a_config_is_planned),
        cmocka_unit_test(any_allocation_may_fail_while_a_strategy_is_placed),
        cmocka_unit_test(any_allocation_may_fail_while_groups_are_laid_out_and_sorted),
        cmocka_unit_test(any_allocation_may_fail_while_a_program_describes),
        cmocka_unit_test(any_allocation_may_fail_while_managers_answer),
        cmocka_unit_test(any_allocation_may_fail_while_ports_are_leased),
        cmocka_unit_test(any_allocation_may_fail_while_logs_are_shown),
        cmocka_unit_test(interpolations_cannot_be_made_to_cost_memory),
        cmocka_unit_test(names_that_are_not_there_cannot_be_made_to_cost_memory),
        cmocka_unit_test(groups_cannot_be_made_to_cost_memory),
        cmocka_unit_test(shapes_of_yaml_cannot_be_made_to_cost_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
