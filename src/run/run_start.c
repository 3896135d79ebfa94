/* run_start.c - from a plan to a run, in its driver: a directory, a guardian, leased ports, commands,
 * start.
 *
 * Whatever fails on the way undoes what was done: no process, no directory, no lease is left. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <roost/version.h>

#include "base/cure.h"
#include "config/config.h"
#include "run/run_start.h"
#include "supervise/clock.h"
#include "supervise/guardian.h"
#include "supervise/spawn.h"
#include "json/json_writer.h"

enum { GRACE_MS = 10000 };

/* --- guardian --- */

/* Makes orphans of the run children of this process, unless it has others that would be taken for them. */
static void become_subreaper(struct run_start *start)
{
    siginfo_t info = {0};
    bool has_children =
        waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
    start->run->is_subreaper =
        start->options->is_dedicated && !has_children && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

static bool start_guardian(struct run_start *start)
{
    struct roost_run *run = start->run;
    const char *program = start->options->program ? start->options->program : ROOST_PROGRAM;
    char token[64];
    int ends[2], null = spawn_null(start->diag);
    if (null < 0)
        return false;
    int driver = pidfd_open(getpid(), 0);
    if (driver < 0 || !socket_pair_open(ends)) {
        int error = errno;
        diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE,
                   "cannot make the socket to the supervisor: %s", strerror(error));
        diag_hint(start->diag, "%s", cure_of_descriptor(error).text);
        if (driver >= 0)
            close(driver);
        close(null);
        return false;
    }
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", run->dir.id);
    char *argv[] = {"roost", "--guardian", run->dir.id,
                    start->options->has_no_cgroup ? "plain" : "cgroup", NULL};
    int handed[GUARDIAN_FD_COUNT] = {ends[1], run->dir.fd, start->runtime_dir, driver,
                                     start->namespace_lock >= 0 ? start->namespace_lock : null};
    struct spawn spawn = {.paths = (const char *const[]){program, NULL},
                          .argv = argv,
                          .env = (char *const[]){token, NULL},
                          .fd = {null, null, start->host->shows_errors ? 2 : null},
                          .handed = handed,
                          .handed_count = GUARDIAN_FD_COUNT,
                          .outlives_parent = true};
    struct spawned spawned = spawn_process(&spawn);
    close(ends[1]);
    close(driver);
    close(null);
    run->socket = ends[0];
    run->guardian = spawned.pidfd;
    run->guardian_pid = spawned.pid;
    if (spawned.failed == SPAWN_OK)
        return true;
    guardian_report_start(start->diag, program, &spawned,
                          "install the roost program, or let `program` name it");
    return false;
}

/* --- the conversation --- */

static int watch_both(int socket, int supervisor)
{
    int both = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN};
    if (both >= 0 && (epoll_ctl(both, EPOLL_CTL_ADD, socket, &wanted) != 0 ||
                      epoll_ctl(both, EPOLL_CTL_ADD, supervisor, &wanted) != 0)) {
        close(both);
        return -1;
    }
    return both;
}

static bool meet_supervisor(struct run_start *start)
{
    struct roost_run *run = start->run;
    struct hello hello;
    if (!run_start_expect(start, MSG_HELLO))
        return false;
    if (run->inbox.len != sizeof hello) {
        diag_error(start->diag, ROOST_ERR_ENGINE, NOWHERE,
                   "the roost program is not of the same version as the library");
        diag_hint(start->diag, "let `program` name the roost that came with this library");
        return false;
    }
    memcpy(&hello, run->inbox.body, sizeof hello);
    run->supervisor = run->inbox.fd;
    run->supervisor_pid = hello.pid;
    memcpy(run->cgroup, hello.cgroup, sizeof run->cgroup);
    run->cgroup[sizeof run->cgroup - 1] = '\0';
    run->events = watch_both(run->socket, run->supervisor);
    return true;
}

struct setup run_start_setup(const struct run_start *start)
{
    struct setup setup = {.process_count = start->run->process_count,
                          .port_base = start->options->port_base,
                          .keeps_going = start->options->keeps_going,
                          .has_sockets = start->options->has_sockets,
                          .grace_ms =
                              start->options->grace_ms ? start->options->grace_ms : GRACE_MS};
    snprintf(setup.version, sizeof setup.version, "%s", ROOST_VERSION);
    memcpy(setup.run_id, start->run->dir.id, sizeof start->run->dir.id);
    memcpy(setup.runtime_dir, start->runtime, sizeof setup.runtime_dir);
    return setup;
}

/* --- the page --- */

/* How many nodes the processes of one component are on. The others of `is_used` stay as they are, so that a
 * shared table counts the nodes of several. */
static int32_t count_nodes(const struct component_commands *component, bool *is_used)
{
    int32_t count = 0;
    for (int32_t p = 0; p < component->process_count; p++) {
        bool *used = &is_used[component->placed->cluster_node_rank[p]];
        count += !*used;
        *used = true;
    }
    return count;
}

/* The components, and on how many nodes each and all of them are. */
static bool put_components(struct run_start *start, struct json_writer *json)
{
    const struct commands *commands = start->commands;
    int32_t last = 0, nodes = 0;
    for (int32_t i = 0; i < commands->component_count; i++)
        for (int32_t p = 0; p < commands->components[i].process_count; p++)
            if (commands->components[i].placed->cluster_node_rank[p] > last)
                last = commands->components[i].placed->cluster_node_rank[p];
    bool *is_used = calloc((size_t)last + 1, sizeof *is_used);
    if (!is_used)
        return false;
    for (int32_t i = 0; i < commands->component_count; i++)
        nodes += count_nodes(&commands->components[i], is_used);
    json_put_int(json_key(json, "nodes"), nodes);
    json_open_array(json_key(json, "components"));
    for (int32_t i = 0; i < commands->component_count; i++) {
        memset(is_used, 0, ((size_t)last + 1) * sizeof *is_used);
        json_open_object(json);
        json_put_string(json_key(json, "name"), commands->components[i].name);
        json_put_int(json_key(json, "world_size"), commands->components[i].process_count);
        json_put_int(json_key(json, "nodes"), count_nodes(&commands->components[i], is_used));
        json_close(json);
    }
    json_close(json);
    free(is_used);
    return true;
}

bool run_start_describe(struct run_start *start)
{
    const struct roost_run *run = start->run;
    struct text page = TEXT_INIT;
    int64_t now = clock_read(CLOCK_REALTIME);
    char boot[RUN_BOOT_MAX];
    (void)run_boot_id(boot);
    struct json_writer json = json_writer_on(&page, JSON_COMPACT);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    json_put_string(json_key(&json, "run"), run->dir.id);
    json_put_string(json_key(&json, "engine"), start->host->engine);
    json_put_string(json_key(&json, "version"), ROOST_VERSION);
    json_put_string(json_key(&json, "namespace"), start->name_space);
    json_put_string(json_key(&json, "config"), start->options->title
                                                   ? start->options->title
                                                   : start->options->config->source.name);
    json_put_seconds(json_key(&json, "started"), now);
    json_put_int(json_key(&json, "driver_pid"), getpid());
    json_put_int(json_key(&json, "guardian_pid"), run->guardian_pid);
    json_put_string(json_key(&json, "boot_id"), boot);
    json_put_int(json_key(&json, "supervisor_pid"), run->supervisor_pid);
    json_put_string(json_key(&json, "cgroup"), run->cgroup);
    if (run->server)
        json_put_int(json_key(&json, "registry_pid"), roost_registry_server_pid(run->server));
    bool has_components = put_components(start, &json);
    json_close(&json);
    text_char(&page, '\n');
    const char *bytes = has_components ? text_string(&page) : NULL;
    bool is_good = bytes && run_dir_describe(&start->run->dir, bytes, page.len, start->diag);
    if (!bytes)
        diag_nomem(start->diag);
    text_release(&page);
    return is_good;
}

/* --- the steps --- */

static bool list_components(struct run_start *start)
{
    struct roost_run *run = start->run;
    const struct commands *commands = start->commands;
    run->components = arena_array(&run->arena, struct run_component, commands->component_count + 1);
    for (int32_t i = 0; run->components && i < commands->component_count; i++) {
        const struct component_commands *component = &commands->components[i];
        run->components[i] =
            (struct run_component){arena_copy(&run->arena, sv_from(component->name)),
                                   component->process_count, run->process_count};
        run->process_count += component->process_count;
        if (!run->components[i].name)
            run->components = NULL;
    }
    run->component_count = commands->component_count;
    run->lives = arena_zeroed(&run->arena, struct run_life, run->process_count + 1);
    if (run->components && run->lives)
        return true;
    diag_nomem(start->diag);
    return false;
}

static bool start_processes(struct run_start *start)
{
    become_subreaper(start);
    return list_components(start) && run_start_find_places(start) &&
           run_start_sign_namespace(start) && start_guardian(start) && meet_supervisor(start) &&
           start->host->start(start);
}

/* What the config asks for and is not done. */
static void warn_unbound(const struct roost_config *config, struct diag *diag)
{
    for (int32_t i = 0; i < config->launch_count; i++) {
        const struct launch_config *launch = &config->launches[i];
        const struct word *bind =
            launch->bind_cpu.text.len ? &launch->bind_cpu : &launch->bind_memory;
        if (bind->text.len) {
            diag_warn(diag, ROOST_WARN_NOT_BOUND, bind->at,
                      "'bind' of component '%s' is not applied: its processes may use every CPU",
                      launch->component);
            diag_hint(diag, "leave it out, or bind in the command: [taskset, -c, 0-7, ./train]");
        }
    }
}

static bool wants_ray(const struct roost_run_options *options)
{
    if (options->single.placed)
        return false;
    return options->engine ? strcmp(options->engine, "ray") == 0
                           : options->config->engine == ENGINE_RAY;
}

struct roost_run *roost_run_start(const struct roost_run_options *options,
                                  struct roost_report *report, struct roost_error *err)
{
    static const char *const no_env[] = {NULL};
    static const struct roost_config no_config = {.source = {.name = ""}};
    struct roost_run_options given = *options;
    struct diag diag = config_diag(options->config, report, err);
    given.env = given.env ? given.env : no_env;
    given.config = given.config ? given.config : &no_config;
    struct run_start start = {
        .options = &given, .diag = &diag, .runtime_dir = -1, .namespace_lock = -1};
    struct launch_options wanted = {.config = given.config,
                                    .cluster = given.cluster,
                                    .plan = given.plan,
                                    .env = given.env,
                                    .components = given.components,
                                    .component_count = given.component_count,
                                    .command = given.command,
                                    .command_count = given.command_count,
                                    .placed = given.single.placed,
                                    .name = given.single.name,
                                    .extra_env = given.single.extra_env,
                                    .forker = given.single.forker};
    if (!given.single.placed)
        warn_unbound(given.config, &diag);
    start.host = wants_ray(&given) ? &run_on_agents : &run_here;
    start.commands = commands_new(&wanted, &diag);
    start.run = start.commands ? calloc(1, sizeof *start.run) : NULL;
    if (!start.run) {
        if (start.commands)
            diag_nomem(&diag);
        commands_free(start.commands);
        return NULL;
    }
    *start.run = (struct roost_run){.arena = ARENA_INIT,
                                    .dir = {.fd = -1, .page = -1},
                                    .socket = -1,
                                    .inbox_fd = -1,
                                    .guardian = -1,
                                    .supervisor = -1,
                                    .events = -1};
    bool is_born = start_processes(&start);
    commands_free(start.commands);
    if (start.runtime_dir >= 0)
        close(start.runtime_dir);
    if (start.namespace_lock >= 0) /* guardian and supervisor hold it now */
        close(start.namespace_lock);
    if (is_born)
        return start.run;
    start.run->is_finished = true; /* no events to wait for: closing the socket ends it all */
    if (start.run->socket >= 0)
        close(start.run->socket);
    start.run->socket = -1;
    if (start.run->guardian >= 0)
        (void)run_settle(start.run);
    run_dir_remove(&start.run->dir, given.env);
    roost_run_free(start.run);
    return NULL;
}
