/* cmd_run.c - roost run: place, launch, watch, collect. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <roost/engine/cluster.h>
#include <roost/engine/driver.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/screen/run_view.h"
#include "command/commands.h"
#include "run/driver_signals.h"

/* --- options --- */

static int read_options(const struct invocation *invocation, struct roost_run_options *options,
                        char ***out_names)
{
    int32_t grace, wait;
    int status = option_seconds(invocation, "grace", &grace);
    if (status == 0)
        status = option_seconds(invocation, "wait", &wait);
    if (status)
        return status;
    const char *component = option_value(invocation, "component");
    options->keeps_going = option_is_on(invocation, "keep-going");
    struct roost_settings settings;
    struct roost_error err;
    if (roost_settings_read((const char *const *)invocation->env, &settings, &err) != ROOST_OK)
        return output_refuse(invocation, "%s", err.message);
    options->port_base = settings.port_base;
    options->has_no_cgroup = settings.has_no_cgroup;
    options->grace_ms = grace > 0 ? grace : grace == 0 ? -1 : 0;
    options->agents.wait_ms = wait > 0    ? wait
                              : wait == 0 ? 1
                                          : 0; /* 0 would be the usual ten minutes */
    if (invocation->has_trailing && invocation->trailing_count == 0)
        return output_refuse(invocation, "there is no command after '--'");
    options->command = invocation->trailing;
    options->command_count = invocation->trailing_count;
    if (component) {
        *out_names = split_names(component, &options->component_count);
        if (!*out_names)
            return output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
        options->components = (const char *const *)*out_names;
    }
    return 0;
}

/* --- before the run --- */

/* What would be reported when the nodes are there. */
static void check_commands(const struct planning *planning, const struct invocation *invocation)
{
    struct launch_options options = {.config = planning->config,
                                     .command = invocation->trailing,
                                     .command_count = invocation->trailing_count};
    struct diag diag = config_diag(planning->config, planning->report, NULL);
    const char *component = option_value(invocation, "component");
    char **names = component ? split_names(component, &options.component_count) : NULL;
    options.components = (const char *const *)names;
    if (component && !names)
        diag_nomem(&diag);
    else
        (void)commands_check(&options, &diag);
    free(names);
}

static bool keep(void *ctx, const char *bytes, size_t len)
{
    struct text *text = ctx;
    text_append(text, bytes, len);
    return !text->has_failed;
}

/* What the managers of the run tell of its cluster. */
static int make_view(const struct planning *planning, struct text *view)
{
    enum roost_code code =
        roost_render_cluster_view(planning->cluster, planning->config, keep, view);
    return code == ROOST_OK ? 0 : output_status(ROOST_ERR_MEMORY, EXIT_SYSTEM);
}

/* One line when the plan asks for more than this machine has. */
static void say_simulated(const struct planning *planning)
{
    char text[ROOST_SIMULATED_MAX];
    if (roost_simulated_text(planning->cluster, text))
        output_say("%s", text);
}

/* --- the run --- */

/* A signal that came before the run has begun, or after it has ended. */
struct heard {
    int32_t number; /* 0 = none that asks to end */
};

static bool is_stopped(void *ctx)
{
    struct heard *heard = ctx;
    int32_t number = 0;
    for (;;) {
        switch (driver_signals_next(&number)) {
        case DRIVER_NONE: return heard->number != 0;
        case DRIVER_END: heard->number = heard->number ? heard->number : number; break;
        case DRIVER_SUSPEND: driver_suspend(); break;
        case DRIVER_FORWARD: /* nobody is there */
        case DRIVER_RESUME:
        case DRIVER_RESIZE: break;
        }
    }
}

struct watching {
    struct roost_run *run;
    struct run_view view;
    int signals;
    int32_t asked; /* how often it was asked to end */
    bool is_finished;
};

/* A run that a request cannot reach is ending already: its events say how. */
static void pass_on(enum roost_code code)
{
    (void)code;
}

static void hear_signals(struct watching *watching)
{
    int32_t number = 0;
    for (;;) {
        switch (driver_signals_next(&number)) {
        case DRIVER_NONE: return;
        case DRIVER_END:
            if (watching->asked++ == 0) {
                run_view_say(&watching->view, "%s: stopping; once more to kill",
                             signal_word(number).text);
                pass_on(roost_run_stop(watching->run, number, NULL));
            } else {
                pass_on(roost_run_kill(watching->run, NULL));
            }
            break;
        case DRIVER_FORWARD: pass_on(roost_run_signal(watching->run, number, NULL)); break;
        case DRIVER_SUSPEND:
            pass_on(roost_run_signal(watching->run, driver_stop_signal(), NULL));
            driver_suspend();
            pass_on(roost_run_signal(watching->run, driver_continue_signal(), NULL));
            break;
        case DRIVER_RESUME:
        case DRIVER_RESIZE: break;
        }
    }
}

static void hear_run(struct watching *watching)
{
    struct roost_event event;
    while (roost_run_next(watching->run, 0, &event)) {
        run_view_event(&watching->view, &event);
        if (event.kind == ROOST_EVENT_FINISHED)
            watching->is_finished = true;
    }
}

static void watch(struct watching *watching)
{
    while (!watching->is_finished) {
        int timeout;
        struct pollfd fds[5] = {{roost_run_fd(watching->run), POLLIN, 0},
                                {watching->signals, POLLIN, 0}};
        nfds_t count = 2 + run_view_poll(&watching->view, fds + 2, &timeout);
        int32_t sooner = roost_run_timeout(watching->run);
        poll(fds, count, sooner >= 0 && (timeout < 0 || sooner < timeout) ? sooner : timeout);
        hear_signals(watching);
        hear_run(watching);
        run_view_show(&watching->view);
    }
}

static int finish(struct watching *watching)
{
    int status = roost_run_status(watching->run, NULL);
    struct heard heard = {0};
    bool is_whole = run_view_finish(&watching->view, watching->signals, is_stopped, &heard);
    if (!is_whole)
        run_view_rest(&watching->view, heard.number);
    int error = screen_error(watching->view.screen, 0);
    if (error &&
        error != EPIPE) { /* a reader that has gone had enough; a full disk lost something */
        run_view_say(&watching->view, "cannot write to standard output: %s", strerror(error));
        status = status ? status : EXIT_SYSTEM;
    }
    run_view_summary(&watching->view, status);
    if (is_whole)
        (void)run_view_finish(&watching->view, watching->signals, is_stopped, &heard);
    else
        (void)run_view_drain(&watching->view);
    return status;
}

/* How many components of the run are services. */
static int32_t count_services(const struct planning *planning, const struct roost_run *run)
{
    int32_t count = 0;
    for (int32_t i = 0; i < roost_run_component_count(run); i++) {
        const struct launch_config *launch =
            config_find_launch(planning->config, roost_run_component(run, i));
        count += launch && launch->is_service;
    }
    return count;
}

static int show(struct watching *watching, const struct planning *planning,
                const struct invocation *invocation, const struct rankset *ranks)
{
    int32_t services = count_services(planning, watching->run);
    struct roost_text_style out = output_style(invocation, output_stdout);
    struct roost_text_style err = output_style(invocation, output_stderr);
    struct run_view_options options = {
        .screen = {.fds = {output_stdout, output_stderr},
                   .has_color = {out.has_color, err.has_color},
                   .is_quiet = option_is_on(invocation, "quiet"),
                   .has_no_label = option_is_on(invocation, "no-label"),
                   .ranks = ranks,
                   .width = err.width,
                   .height = output_height(output_stderr)},
        .is_verbose = option_is_on(invocation, "verbose"),
        .has_services = services > 0,
    };
    struct roost_error error;
    int status = EXIT_SYSTEM;
    if (run_view_init(&watching->view, watching->run, &options, &error)) {
        if (options.is_verbose)
            run_view_say(&watching->view, "run %s: logs in %s", roost_run_id(watching->run),
                         roost_run_dir(watching->run));
        if (services > 0 && services == roost_run_component_count(watching->run))
            run_view_say(&watching->view,
                         "all components are services: the run goes on until it is stopped");
        watch(watching);
        status = finish(watching);
    } else {
        output_say("cannot show the logs of the run: %s", error.message);
    }
    run_view_release(&watching->view);
    return status;
}

/* Starts the run, shows it and awaits its end. */
static int run_plan(const struct planning *planning, const struct invocation *invocation,
                    struct roost_run_options *options, const struct rankset *ranks)
{
    int status;
    struct roost_error err = {0};
    struct heard early = {0};
    int signals = driver_signals_open();
    options->stop_fd = signals;
    options->is_stopped = is_stopped;
    options->stop_ctx = &early;
    /* It takes seconds, and a person at a terminal wants to know what is going on. */
    if (strcmp(options->engine, "ray") == 0 && isatty(STDERR_FILENO))
        output_say("joining the Ray cluster");
    struct roost_report *report = roost_report_new();
    struct roost_run *run = report ? roost_run_start(options, report, &err) : NULL;
    options->stop_ctx = NULL; /* only a start asks */
    if (run) {
        if (roost_report_count(report))
            output_report(invocation, report);
        if (strcmp(options->engine, "local") == 0)
            say_simulated(planning);
        struct watching watching = {.run = run, .signals = signals};
        status = show(&watching, planning, invocation, ranks);
    } else if (early.number) {
        output_say("%s: stopped before it began", signal_word(early.number).text);
        status = 128 + early.number;
    } else if (report && roost_report_count(report)) {
        output_report(invocation, report);
        status = roost_report_exit(report);
    } else {
        status = roost_code_exit(err.code);
        output_error(&err);
    }
    roost_run_free(run);
    roost_report_free(report);
    if (signals >= 0)
        close(signals);
    return status;
}

static int start(const struct planning *planning, const struct invocation *invocation)
{
    char **names = NULL;
    struct roost_run_options options = {
        .config = planning->config,
        .cluster = planning->cluster,
        .plan = planning->plan,
        .env = (const char *const *)invocation->env,
        .program = "/proc/self/exe",
        .is_dedicated = true,
        .engine = planning_engine(invocation, planning->config),
        .agents = {.python = invocation_env(invocation, "ROOST_PYTHON")}};
    struct arena arena = ARENA_INIT;
    struct rankset rank_set;
    const struct rankset *ranks;
    struct text view = TEXT_INIT;
    int status = option_ranks(invocation, &arena, &rank_set, &ranks);
    if (status == 0)
        status = read_options(invocation, &options, &names);
    if (status == 0)
        status = make_view(planning, &view);
    if (status == 0) {
        options.view = view.bytes;
        options.view_len = view.len;
        status = run_plan(planning, invocation, &options, ranks);
    }
    arena_release(&arena);
    text_release(&view);
    free(names);
    return status;
}

static int run(const struct invocation *invocation)
{
    struct planning planning;
    struct planning_options planning_options = {
        .default_cluster = "local", .is_for_run = true, .check = check_commands};
    int status = planning_start(&planning, invocation, &planning_options);
    if (status == 0) {
        status = roost_report_exit(planning.report);
        if (roost_report_count(planning.report))
            output_report(invocation, planning.report);
        if (status == 0)
            status = start(&planning, invocation);
    }
    planning_end(&planning);
    return status;
}

static const struct cli_option options[] = {
    {"cluster", "X", "run the plan for X: a spec (2x8), a snapshot file, or local"},
    {"mode", "MODE", "hybrid (default) or model-parallel"},
    {"no-isolate", NULL, "let every process see all accelerators of its node"},
    {"hydra", NULL, "follow the config's defaults list, from files beside it"},
    {"color", "WHEN", "auto (default), always or never"},
    {"engine", "ENGINE", "local (default), or ray: on the nodes of a Ray cluster"},
    {"component", "NAMES", "run only these components (a,b)"},
    {"keep-going", NULL, "let the others continue when a process fails"},
    {"grace", "SECONDS", "time that processes have to end before they are killed (10)"},
    {"wait", "SECONDS", "on Ray: how long to wait for nodes (600)"},
    {"quiet", NULL, "do not show the output of the processes"},
    {"ranks", "RANKS", "show the output of these ranks only (0-3,7)"},
    {"no-label", NULL, "show lines without [component/rank]"},
    {"verbose", NULL, "show more of what roost does"},
    {0},
};

static const struct option_letter letters[] = {{'q', "quiet"}, {'v', "verbose"}, {0}};

const struct command cmd_run = {
    .name = "run",
    .summary = "run a plan on this machine, or on a Ray cluster",
    .usage = "[options] CONFIG [key=value ...] [-- COMMAND ...]",
    .details =
        "Starts every process of the plan with its environment, devices, ports and logs, shows\n"
        "their output as [component/rank] lines, and ends when all processes have ended. When one\n"
        "fails, roost stops the others. COMMAND is for the one component whose launch settings\n"
        "have no command. Nothing of a run survives it, however it ends. The exit status is that\n"
        "of the process that failed first.",
    .exits = "that of the process that failed first, 128 and its number for a signal; "
             "otherwise\n" PLANNING_EXITS,
    .examples = "roost run train.yaml\n"
                "roost run train.yaml --cluster 1x4 --component actor -- ./train.sh\n"
                "roost run train.yaml --engine ray",
    .options = options,
    .run = run,
    .letters = letters,
    .takes_trailing = true,
};
