/* cmd_logs.c - roost logs: what the workers of a run have written, or write. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/strview.h"
#include "cli/logs_view.h"
#include "cli/output.h"

/* The run that is meant. */
struct meant_run {
    const char *path;
};

/* Finds the run by its id, by a beginning of it, or (without a word) the newest. Until runs can be found
 * by id, RUN is the path of a run directory. 0, or an exit status after saying why not. */
static int find_run(const struct invocation *invocation, struct meant_run *out)
{
    if (invocation->operand_count != 1)
        return output_usage("'roost logs' needs the directory of a run");
    out->path = invocation->operands[0];
    return 0;
}

static bool is_alive(void *ctx)
{
    (void)ctx;
    return false;
}

static int read_ranks(const struct invocation *invocation, struct arena *arena, struct rankset *out)
{
    const char *text = option_value(invocation, "ranks");
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    if (!text || rankset_read(out, arena, sv_from(text), NOWHERE, &diag) == ROOST_OK)
        return 0;
    return output_usage("--ranks: %s", err.message);
}

static struct logs_options wanted(const struct invocation *invocation, const struct rankset *ranks)
{
    struct roost_text_style out = output_style(invocation, output_stdout);
    struct roost_text_style err = output_style(invocation, output_stderr);
    return (struct logs_options){
        .component = option_value(invocation, "component"),
        .ranks = option_value(invocation, "ranks") ? ranks : NULL,
        .follows = option_is_on(invocation, "follow"),
        .is_alive = is_alive,
        .screen = {.fds = {output_stdout, output_stderr},
                   .has_color = {out.has_color, err.has_color},
                   .has_no_label = option_is_on(invocation, "no-label"),
                   .hides = {option_is_on(invocation, "stderr"),
                             option_is_on(invocation, "stdout")}},
    };
}

/* Shows the logs in an open run directory. */
static int show(const struct invocation *invocation, int run_dir, const struct rankset *ranks,
                struct meant_run *run)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct logs_options options = wanted(invocation, ranks);
    int failed = 0;
    options.ctx = run;
    if (!logs_show(run_dir, &options, &failed, &diag)) {
        output_say("%s%s%s", err.message, err.hint[0] ? "; " : "", err.hint);
        return roost_code_exit(err.code);
    }
    if (failed && failed != EPIPE)
        output_say("cannot write the logs: %s", strerrordesc_np(failed));
    return failed ? EXIT_SYSTEM : 0;
}

static int run(const struct invocation *invocation)
{
    struct arena arena = ARENA_INIT;
    struct rankset ranks = {0};
    struct meant_run meant = {0};
    if (option_is_on(invocation, "stdout") && option_is_on(invocation, "stderr"))
        return output_usage(
            "--stdout and --stderr each leave the other out; without both, both are "
            "shown");
    int status = read_ranks(invocation, &arena, &ranks);
    if (status == 0)
        status = find_run(invocation, &meant);
    if (status == 0) {
        int run_dir = open(meant.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (run_dir < 0) {
            output_say("cannot open the run '%s': %s", quote(sv_from(meant.path)).text,
                       strerrordesc_np(errno));
            status = EXIT_SYSTEM;
        } else {
            status = show(invocation, run_dir, &ranks, &meant);
            close(run_dir);
        }
    }
    arena_release(&arena);
    return status;
}

static const struct option_spec options[] = {
    {"follow", NULL, "go on as they grow, until the run has ended"},
    {"component", "NAME", "only this component"},
    {"ranks", "RANKS", "only these ranks: 0-3,7"},
    {"stdout", NULL, "only standard output"},
    {"stderr", NULL, "only standard error"},
    {"no-label", NULL, "without [component/rank]; not on a terminal, the bytes as they are"},
    {"color", "WHEN", "auto (default), always or never"},
    {0},
};

static const struct option_letter letters[] = {{'f', "follow"}, {0}};

const struct command cmd_logs = {
    .name = "logs",
    .summary = "show what workers have written",
    .usage = "[options] [RUN]",
    .details =
        "Prints the logs of a run: component by component, rank by rank, standard output of\n"
        "workers to standard output and standard error to standard error. RUN is the id of a\n"
        "run or the beginning of one; the newest when it is left out.",
    .options = options,
    .letters = letters,
    .run = run,
};
