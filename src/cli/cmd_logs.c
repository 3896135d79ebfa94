/* cmd_logs.c - roost logs: what the workers of a run have written, or write. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/strview.h"
#include "cli/output.h"
#include "cli/screen/logs_view.h"
#include "run/runs.h"

/* The run that is meant. */
struct meant_run {
    struct run_list list;
    const struct run_entry *entry;
    int dir; /* -1 = not open */
};

/* The run itself is not asked: readers, however many, cost it nothing. */
static bool is_alive(void *ctx)
{
    const struct meant_run *run = ctx;
    return runs_goes_on(run->dir);
}

/* 0, or an exit status after it reported why there is no such run. */
static int find_run(const struct invocation *invocation, struct meant_run *out)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    if (invocation->operand_count > 1)
        return output_refuse(invocation, "'roost logs' takes one run, not '%s' too",
                             quote(sv_from(invocation->operands[1])).text);
    if (runs_list(&out->list, (const char *const *)invocation->env, &diag))
        out->entry = runs_find(&out->list,
                               invocation->operand_count ? invocation->operands[0] : NULL, &diag);
    if (out->entry)
        return 0;
    output_error(&err);
    return roost_code_exit(err.code);
}

static struct logs_options wanted(const struct invocation *invocation, const struct rankset *ranks)
{
    struct roost_text_style out = output_style(invocation, output_stdout);
    struct roost_text_style err = output_style(invocation, output_stderr);
    bool follows = option_is_on(invocation, "follow");
    return (struct logs_options){
        .component = option_value(invocation, "component"),
        .ranks = ranks,
        .follows = follows,
        .is_alive = is_alive,
        .screen = {.fds = {output_stdout, output_stderr},
                   .has_color = {out.has_color, err.has_color},
                   .has_no_label = option_is_on(invocation, "no-label"),
                   .hides = {option_is_on(invocation, "stderr"),
                             option_is_on(invocation, "stdout")},
                   .width = err.width,
                   .height = follows ? output_height(output_stderr) : 0},
    };
}

/* Shows the logs in the open run directory. */
static int show(const struct invocation *invocation, const struct rankset *ranks,
                struct meant_run *run)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct logs_options options = wanted(invocation, ranks);
    int failed = 0;
    options.ctx = run;
    if (!logs_show(run->dir, &options, &failed, &diag)) {
        output_error(&err);
        return roost_code_exit(err.code);
    }
    if (failed && failed != EPIPE)
        output_say("cannot write the logs: %s", strerrordesc_np(failed));
    return failed ? EXIT_SYSTEM : 0;
}

static int run(const struct invocation *invocation)
{
    struct arena arena = ARENA_INIT;
    struct rankset set = {0};
    const struct rankset *ranks = NULL;
    struct meant_run meant = {.list = {.runtime_dir = -1}, .dir = -1};
    if (option_is_on(invocation, "stdout") && option_is_on(invocation, "stderr"))
        return output_usage(
            "--stdout and --stderr exclude each other; without them, both streams are "
            "shown");
    int status = option_ranks(invocation, &arena, &set, &ranks);
    if (status == 0)
        status = find_run(invocation, &meant);
    if (meant.entry) {
        int hold = runs_hold(meant.entry);
        meant.dir = open(meant.entry->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (meant.dir < 0) {
            output_say("cannot open the run '%s': %s", quote(sv_from(meant.entry->path)).text,
                       strerrordesc_np(errno));
            status = EXIT_SYSTEM;
        } else {
            status = show(invocation, ranks, &meant);
            close(meant.dir);
        }
        if (hold >= 0)
            close(hold);
    }
    runs_release(&meant.list);
    arena_release(&arena);
    return status;
}

static const struct cli_option options[] = {
    {"follow", NULL, "print new lines until the run has ended"},
    {"component", "NAME", "only this component"},
    {"ranks", "RANKS", "only these ranks: 0-3,7"},
    {"stdout", NULL, "only standard output"},
    {"stderr", NULL, "only standard error"},
    {"no-label", NULL, "no [component/rank]; raw bytes, except on a terminal"},
    {"color", "WHEN", "auto (default), always or never"},
    {0},
};

static const struct option_letter letters[] = {{'f', "follow"}, {0}};

const struct command cmd_logs = {
    .name = "logs",
    .summary = "show what workers have written",
    .usage = "[options] [RUN]",
    .takes_ended_runs = true,
    .details =
        "Prints the logs of a run, component by component and rank by rank: standard output of\n"
        "workers to standard output, and standard error to standard error. RUN is the id of a run\n"
        "or the beginning of one; the default is the newest run.",
    .options = options,
    .letters = letters,
    .run = run,
};
