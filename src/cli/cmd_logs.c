/* cmd_logs.c - roost logs: what the workers of a run have written, or write. */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "base/strview.h"
#include "cli/output.h"
#include "cli/screen/logs_view.h"
#include "cli/screen/moment.h"
#include "run/runs.h"

/* The run that is meant. */
struct meant_run {
    struct run_list list;
    const struct run_entry *entry;
    int dir; /* -1 = not open */
};

/* Which lines are asked for. */
struct choice {
    struct rankset ranks;
    const struct rankset *only_ranks; /* NULL = all */
    int64_t since, tail;
    bool has_tail, has_pattern;
    regex_t pattern;
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

static bool matches(void *ctx, const char *line)
{
    return regexec(ctx, line, 0, NULL, 0) == 0;
}

/* --- options --- */

static int read_since(const struct invocation *invocation, int64_t *out)
{
    const char *text = option_value(invocation, "since");
    struct timespec time;
    if (!text)
        return 0;
    (void)clock_gettime(CLOCK_REALTIME, &time);
    int64_t now = (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
    if (!moment_parse(sv_from(text), now, out))
        return output_refuse(invocation,
                             "--since '%s' is not a time: write how long ago (30s, 10m, 2h, 1d), a "
                             "time (14:30) or a date (2026-01-31, 2026-01-31T14:30)",
                             quote(sv_from(text)).text);
    if (*out > now)
        return output_refuse(invocation, "--since '%s' is in the future",
                             quote(sv_from(text)).text);
    return 0;
}

static int read_tail(const struct invocation *invocation, struct choice *out)
{
    const char *text = option_value(invocation, "tail");
    out->has_tail = text != NULL;
    if (text && number_parse(sv_from(text), INT32_MAX, &out->tail) != NUMBER_OK)
        return output_refuse(invocation, "--tail '%s' is not a number of lines, 0 to %d",
                             quote(sv_from(text)).text, INT32_MAX);
    return 0;
}

static int read_pattern(const struct invocation *invocation, struct choice *out)
{
    const char *text = option_value(invocation, "grep");
    char why[128];
    int code = text ? regcomp(&out->pattern, text, REG_EXTENDED | REG_NOSUB) : 0;
    out->has_pattern = text && code == 0;
    if (code == 0)
        return 0;
    (void)regerror(code, &out->pattern, why, sizeof why);
    return output_refuse(invocation,
                         "--grep '%s' is not a pattern: %s; put \\ before . * + ? ( [ { "
                         "to mean the character",
                         quote(sv_from(text)).text, why);
}

static int refuse_contradiction(const struct invocation *invocation)
{
    if (option_is_on(invocation, "stdout") && option_is_on(invocation, "stderr"))
        return output_usage(
            "--stdout and --stderr exclude each other; without them, both streams are "
            "shown");
    if (option_is_on(invocation, "timestamps") && option_is_on(invocation, "no-label"))
        return output_usage("--timestamps and --no-label exclude each other: without labels, lines "
                            "are the bytes of the logs");
    return 0;
}

static int read_choice(const struct invocation *invocation, struct arena *arena, struct choice *out)
{
    int status = refuse_contradiction(invocation);
    if (status == 0)
        status = option_ranks(invocation, arena, &out->ranks, &out->only_ranks);
    if (status == 0)
        status = read_since(invocation, &out->since);
    if (status == 0)
        status = read_tail(invocation, out);
    return status ? status : read_pattern(invocation, out);
}

static struct logs_options wanted(const struct invocation *invocation, struct choice *choice)
{
    struct roost_text_style out = output_style(invocation, output_stdout);
    struct roost_text_style err = output_style(invocation, output_stderr);
    bool follows = option_is_on(invocation, "follow");
    return (struct logs_options){
        .components = option_value(invocation, "component"),
        .ranks = choice->only_ranks,
        .follows = follows,
        .has_tail = choice->has_tail,
        .tail = choice->tail,
        .since = choice->since,
        .is_alive = is_alive,
        .screen = {.fds = {output_stdout, output_stderr},
                   .has_color = {out.has_color, err.has_color},
                   .has_no_label = option_is_on(invocation, "no-label"),
                   .has_times = option_is_on(invocation, "timestamps"),
                   .picks = choice->has_pattern ? matches : NULL,
                   .pick_ctx = &choice->pattern,
                   .hides = {option_is_on(invocation, "stderr"),
                             option_is_on(invocation, "stdout")},
                   .width = err.width,
                   .height = follows ? output_height(output_stderr) : 0},
    };
}

/* --- showing --- */

/* Shows the logs in the open run directory. */
static int show(const struct invocation *invocation, struct choice *choice, struct meant_run *run)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct logs_options options = wanted(invocation, choice);
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
    struct choice choice = {0};
    struct meant_run meant = {.list = {.runtime_dir = -1}, .dir = -1};
    int status = read_choice(invocation, &arena, &choice);
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
            status = show(invocation, &choice, &meant);
            close(meant.dir);
        }
        if (hold >= 0)
            close(hold);
    }
    if (choice.has_pattern)
        regfree(&choice.pattern);
    runs_release(&meant.list);
    arena_release(&arena);
    return status;
}

static const struct cli_option options[] = {
    {"follow", NULL, "print new lines until the run has ended"},
    {"tail", "N", "only the last N lines of what is there"},
    {"since", "TIME", "only lines since then: 10m, 14:30, 2026-01-31T14:30"},
    {"grep", "PATTERN", "only lines that match (an extended regular expression)"},
    {"timestamps", NULL, "show when each line was written"},
    {"component", "NAMES", "only these components (a,b)"},
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
        "Prints the lines that the workers of a run have written, in the order of time: standard\n"
        "output of workers to standard output, and standard error to standard error. RUN is the\n"
        "id of a run or the beginning of one; the default is the newest run.",
    .examples = "roost logs -f\n"
                "roost logs --since 10m --timestamps --grep error\n"
                "roost logs 4by53t --component actor --ranks 0-3",
    .options = options,
    .letters = letters,
    .run = run,
};
