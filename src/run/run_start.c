/* run_start.c - from a plan to a run: a directory, a guardian, leased ports, commands, go.
 *
 * Whatever fails on the way undoes what was done: no process, no directory, no lease is left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <roost/port.h>
#include <roost/version.h>

#include "base/cure.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/private_dir.h"
#include "config/config.h"
#include "run/keeper_start.h"
#include "run/run_birth.h"
#include "run/spec_write.h"
#include "supervise/clock.h"
#include "supervise/guardian_say.h"
#include "supervise/spawn.h"

enum { GRACE_MS = 10000 };

/* --- guardian --- */

/* Makes orphans of the run children of this process, unless it has others that would be taken for them. */
static void become_subreaper(struct birth *birth)
{
    siginfo_t info = {0};
    bool has_children =
        waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
    birth->run->is_subreaper =
        birth->options->is_dedicated && !has_children && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

static bool start_guardian(struct birth *birth)
{
    struct roost_run *run = birth->run;
    const char *program = birth->options->program ? birth->options->program : ROOST_PROGRAM;
    char token[64];
    int ends[2], null = spawn_null(birth->diag);
    if (null < 0)
        return false;
    int driver = pidfd_open(getpid(), 0);
    if (driver < 0 || !channel_pair(ends)) {
        int error = errno;
        diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE,
                   "cannot make the channel to the supervisor: %s", strerror(error));
        diag_hint(birth->diag, "%s", cure_of_descriptor(error).text);
        if (driver >= 0)
            close(driver);
        close(null);
        return false;
    }
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", run->dir.id);
    char *argv[] = {"roost", "--guardian", run->dir.id,
                    birth->options->has_no_cgroup ? "plain" : "cgroup", NULL};
    int handed[GUARDIAN_FD_COUNT] = {ends[1], run->dir.fd, birth->runtime_dir, driver,
                                     birth->namespace_lock >= 0 ? birth->namespace_lock : null};
    struct spawn spawn = {.paths = (const char *const[]){program, NULL},
                          .argv = argv,
                          .env = (char *const[]){token, NULL},
                          .fd = {null, null, birth->is_on_ray ? 2 : null},
                          .handed = handed,
                          .handed_count = GUARDIAN_FD_COUNT,
                          .outlives_parent = true};
    struct spawned spawned = spawn_process(&spawn);
    close(ends[1]);
    close(driver);
    close(null);
    run->channel = ends[0];
    run->guardian = spawned.pidfd;
    run->guardian_pid = spawned.pid;
    if (spawned.failed == SPAWN_OK)
        return true;
    guardian_say(birth->diag, program, &spawned,
                 "install the roost program, or let `program` name it");
    return false;
}

/* --- the conversation --- */

static int watch_both(int channel, int supervisor)
{
    int both = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wanted = {.events = EPOLLIN};
    if (both >= 0 && (epoll_ctl(both, EPOLL_CTL_ADD, channel, &wanted) != 0 ||
                      epoll_ctl(both, EPOLL_CTL_ADD, supervisor, &wanted) != 0)) {
        close(both);
        return -1;
    }
    return both;
}

static bool meet_supervisor(struct birth *birth)
{
    struct roost_run *run = birth->run;
    struct hello hello;
    if (!birth_expect(birth, MSG_HELLO))
        return false;
    if (run->inbox.len != sizeof hello) {
        diag_error(birth->diag, ROOST_ERR_ENGINE, NOWHERE,
                   "the roost program is not of the same version as the library");
        diag_hint(birth->diag, "let `program` name the roost that came with this library");
        return false;
    }
    memcpy(&hello, run->inbox.body, sizeof hello);
    run->supervisor = run->inbox.fd;
    run->supervisor_pid = hello.pid;
    memcpy(run->cgroup, hello.cgroup, sizeof run->cgroup);
    run->cgroup[sizeof run->cgroup - 1] = '\0';
    run->events = watch_both(run->channel, run->supervisor);
    return true;
}

struct setup birth_setup(const struct birth *birth)
{
    struct setup setup = {.process_count = birth->run->process_count,
                          .port_base = birth->options->port_base,
                          .keeps_going = birth->options->keeps_going,
                          .has_channels = birth->options->has_channels,
                          .grace_ms =
                              birth->options->grace_ms ? birth->options->grace_ms : GRACE_MS};
    snprintf(setup.version, sizeof setup.version, "%s", ROOST_VERSION);
    memcpy(setup.run_id, birth->run->dir.id, sizeof birth->run->dir.id);
    memcpy(setup.runtime_dir, birth->runtime, sizeof setup.runtime_dir);
    return setup;
}

static bool send_setup(struct birth *birth)
{
    const struct commands *commands = birth->commands;
    struct setup setup = birth_setup(birth);
    setup.want_count = (int32_t)commands->port_count;
    int file = memfd_create("roost-wants", MFD_CLOEXEC);
    for (size_t i = 0; file >= 0 && i < commands->port_count; i++) {
        struct roost_port_want want = {.count = commands->ports[i].count,
                                       .is_handed = commands->ports[i].is_handed};
        if (!file_write(file, &want, sizeof want)) {
            close(file);
            file = -1;
        }
    }
    return birth_send_file(birth, MSG_SETUP, &setup, sizeof setup, file);
}

static bool take_ports(struct birth *birth)
{
    size_t got = 0, count = birth->commands->port_count;
    birth->ports = arena_array(&birth->run->arena, int32_t, count + 1);
    if (!birth->ports) {
        diag_nomem(birth->diag);
        return false;
    }
    while (got < count) {
        if (!birth_expect(birth, MSG_PORTS))
            return false;
        size_t more = birth->run->inbox.len / sizeof *birth->ports;
        if (more == 0 || more > count - got) {
            errno = EPROTO;
            return birth_say_channel(birth);
        }
        memcpy(birth->ports + got, birth->run->inbox.body, more * sizeof *birth->ports);
        got += more;
    }
    return true;
}

/* --- managers --- */

/* Starts the managers of a namespace that is the run's own; they begin while the rest is made ready. */
static bool start_managers(struct birth *birth)
{
    struct roost_run *run = birth->run;
    if (birth->namespace_lock < 0)
        return true; /* somebody else has them */
    struct roost_keeper_options options = {.program = birth->options->program,
                                           .view = birth->options->view,
                                           .view_len = birth->options->view_len,
                                           .leases_master_port = true,
                                           .port_base = birth->options->port_base};
    struct keeper_place place = {.runtime = birth->runtime,
                                 .runtime_dir = birth->runtime_dir,
                                 .lock = birth->namespace_lock,
                                 .name_space = birth->name_space,
                                 .run_id = run->dir.id};
    run->keeper = keeper_spawn(&options, &place, birth->diag);
    return run->keeper != NULL;
}

static bool meet_managers(struct birth *birth)
{
    return !birth->run->keeper || keeper_meet(birth->run->keeper, birth->diag);
}

/* --- the page --- */

bool birth_describe(struct birth *birth)
{
    const struct roost_run *run = birth->run;
    struct text page = TEXT_INIT;
    int64_t now = clock_read(CLOCK_REALTIME);
    char boot[RUN_BOOT_MAX];
    (void)run_boot_id(boot);
    struct json_writer json = json_writer_on(&page, JSON_COMPACT);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    json_put_string(json_key(&json, "run"), run->dir.id);
    json_put_string(json_key(&json, "engine"), birth->is_on_ray ? "ray" : "local");
    json_put_string(json_key(&json, "version"), ROOST_VERSION);
    json_put_string(json_key(&json, "namespace"), birth->name_space);
    json_put_string(json_key(&json, "config"), birth->options->config->source.name);
    json_put_seconds(json_key(&json, "started"), now);
    json_put_int(json_key(&json, "driver_pid"), getpid());
    json_put_int(json_key(&json, "guardian_pid"), run->guardian_pid);
    json_put_string(json_key(&json, "boot_id"), boot);
    json_put_int(json_key(&json, "supervisor_pid"), run->supervisor_pid);
    json_put_string(json_key(&json, "cgroup"), run->cgroup);
    if (run->keeper)
        json_put_int(json_key(&json, "keeper_pid"), roost_keeper_pid(run->keeper));
    json_open_array(json_key(&json, "components"));
    for (int32_t i = 0; i < run->component_count; i++) {
        json_open_object(&json);
        json_put_string(json_key(&json, "name"), run->components[i].name);
        json_put_int(json_key(&json, "world_size"), run->components[i].world_size);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
    text_char(&page, '\n');
    const char *bytes = text_string(&page);
    bool is_good = bytes && run_dir_describe(&birth->run->dir, bytes, page.len, birth->diag);
    if (!bytes)
        diag_nomem(birth->diag);
    text_release(&page);
    return is_good;
}

/* --- the steps --- */

static bool make_processes(struct birth *birth)
{
    struct roost_run *run = birth->run;
    struct run_values values = {.run_id = run->dir.id,
                                .name_space = birth->name_space,
                                .master_addr = "127.0.0.1",
                                .ports = birth->ports};
    return commands_fill(birth->commands, &values, birth->diag);
}

static bool list_components(struct birth *birth)
{
    struct roost_run *run = birth->run;
    const struct commands *commands = birth->commands;
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
    diag_nomem(birth->diag);
    return false;
}

static bool be_born(struct birth *birth)
{
    become_subreaper(birth);
    if (!list_components(birth) || !birth_find_places(birth) || !birth_sign_namespace(birth) ||
        !start_guardian(birth) || !meet_supervisor(birth))
        return false;
    if (birth->is_on_ray)
        return birth_on_ray(birth);
    /* The ports of processes come before that of the managers: it is the same one in every run. */
    if (!send_setup(birth) || !take_ports(birth) || !start_managers(birth) ||
        !make_processes(birth))
        return false;
    return birth_describe(birth) && meet_managers(birth) &&
           birth_send_file(birth, MSG_START, "", 0,
                           spec_write(birth->commands, birth->ports, NULL));
}

/* What the config asks for and is not done. */
static void say_unbound(const struct roost_config *config, struct diag *diag)
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
    if (options->placed)
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
    struct birth birth = {
        .options = &given, .diag = &diag, .runtime_dir = -1, .namespace_lock = -1};
    struct launch_options wanted = {.config = given.config,
                                    .cluster = given.cluster,
                                    .plan = given.plan,
                                    .env = given.env,
                                    .components = given.components,
                                    .component_count = given.component_count,
                                    .command = given.command,
                                    .command_count = given.command_count,
                                    .placed = given.placed,
                                    .name = given.name,
                                    .extra_env = given.extra_env,
                                    .forker = given.forker};
    if (!given.placed)
        say_unbound(given.config, &diag);
    birth.is_on_ray = wants_ray(&given);
    birth.commands = commands_new(&wanted, &diag);
    birth.run = birth.commands ? calloc(1, sizeof *birth.run) : NULL;
    if (!birth.run) {
        if (birth.commands)
            diag_nomem(&diag);
        commands_free(birth.commands);
        return NULL;
    }
    *birth.run = (struct roost_run){.arena = ARENA_INIT,
                                    .dir = {.fd = -1, .page = -1},
                                    .channel = -1,
                                    .inbox_fd = -1,
                                    .guardian = -1,
                                    .supervisor = -1,
                                    .events = -1};
    bool is_born = be_born(&birth);
    commands_free(birth.commands);
    if (birth.runtime_dir >= 0)
        close(birth.runtime_dir);
    if (birth.namespace_lock >= 0) /* guardian and supervisor hold it now */
        close(birth.namespace_lock);
    if (is_born)
        return birth.run;
    birth.run->is_finished = true; /* no events to wait for: closing the channel ends it all */
    if (birth.run->channel >= 0)
        close(birth.run->channel);
    birth.run->channel = -1;
    if (birth.run->guardian >= 0)
        (void)run_settle(birth.run);
    run_dir_remove(&birth.run->dir, given.env);
    roost_run_free(birth.run);
    return NULL;
}
