/* cmd_prune.c - roost prune: lists runs that have ended and can go, and removes them when told to. */
#include <roost/prune.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/number.h"
#include "cli/output.h"
#include "cli/run_words.h"
#include "json/json_writer.h"

struct pruning {
    bool is_json, is_real;
    int width; /* of the terminal, 0 = none */
    struct text out;
    struct json_writer json;
    int32_t count, kept_count;
    bool has_failed;
    int64_t size;
};

/* --- what is printed --- */

static void put_json(struct pruning *it, const struct roost_pruned *run)
{
    static const char *const words[] = {[ROOST_PRUNE_REMOVED] = NULL,
                                        [ROOST_PRUNE_USED] = "in use",
                                        [ROOST_PRUNE_FOREIGN] = "files of others",
                                        [ROOST_PRUNE_FAILED] = "failed"};
    struct json_writer *json = &it->json;
    json_line(json, 2);
    json_open_object(json);
    json_put_string(json_key(json, "run"), run->run);
    json_put_string(json_key(json, "state"), run->state);
    json_put_int(json_key(json, "started"), run->started);
    json_put_int(json_key(json, "ended"), run->ended);
    json_put_string(json_key(json, "config"), run->config);
    json_put_string(json_key(json, "dir"), run->dir);
    json_put_int(json_key(json, "size"), run->size);
    json_put_string(json_key(json, "kept"), words[run->verdict]);
    json_put_string(json_key(json, "what"), run->what[0] ? run->what : NULL);
    json_close(json);
}

static void put_row(struct pruning *it, const struct roost_pruned *run)
{
    size_t from = it->out.len;
    bool has_age = run->ended > 0;
    if (it->out.len == 0)
        text_puts(&it->out, "RUN      STATE    ENDED   SIZE  CONFIG\n");
    from = it->out.len;
    text_printf(&it->out, "%-8s %-8s %5s  %5s  ", run->run, run->state,
                has_age ? run_age((int64_t)time(NULL) - run->ended).text : "-",
                run_size(run->size).text);
    int left = it->width ? it->width - (int)(it->out.len - from) : 0;
    text_printf(&it->out, "%s\n", run_what(run->config, "", left).text);
}

/* Why a run stays, for after the table. */
static void put_kept(struct pruning *it, const struct roost_pruned *run)
{
    if (run->verdict == ROOST_PRUNE_USED)
        output_say("kept run %s: another process uses it", run->run);
    else if (run->verdict == ROOST_PRUNE_FOREIGN)
        output_say("kept run %s: roost did not make '%s' in %s", run->run,
                   quote(sv_from(run->what)).text, run->dir);
    else
        output_say("kept run %s: %s", run->run, run->what);
    it->kept_count++;
    it->has_failed = it->has_failed || run->verdict == ROOST_PRUNE_FAILED;
}

static void report(void *ctx, const struct roost_pruned *run)
{
    struct pruning *it = ctx;
    if (it->is_json)
        put_json(it, run);
    if (run->verdict != ROOST_PRUNE_REMOVED) {
        put_kept(it, run);
        return;
    }
    it->count++;
    it->size += run->size;
    if (!it->is_json)
        put_row(it, run);
}

static void say_sum(const struct pruning *it)
{
    const char *runs = it->count == 1 ? "run" : "runs";
    if (it->count == 0)
        output_say("nothing to remove");
    else if (it->is_real)
        output_say("removed %d %s, %s", it->count, runs, run_size(it->size).text);
    else
        output_say("%d %s, %s would be removed; --yes removes them", it->count, runs,
                   run_size(it->size).text);
}

/* --- options --- */

static int read_limits(const struct invocation *invocation, struct roost_prune_limits *out)
{
    const char *older = option_value(invocation, "older"), *keep = option_value(invocation, "keep");
    const char *size = option_value(invocation, "size");
    if (older && !duration_parse(sv_from(older), &out->age))
        return output_refuse(invocation, "--older is a whole number and s, m, h, d or w, not '%s'",
                             quote(sv_from(older)).text);
    if (keep && number_parse(sv_from(keep), INT32_MAX, &out->count) != NUMBER_OK)
        return output_refuse(invocation, "--keep is a number of runs, not '%s'",
                             quote(sv_from(keep)).text);
    if (size && !bytes_parse(sv_from(size), &out->size))
        return output_refuse(invocation, "--size is a whole number and K, M, G or T, not '%s'",
                             quote(sv_from(size)).text);
    out->has_age = older != NULL;
    out->has_count = keep != NULL;
    out->has_size = size != NULL;
    if (option_is_on(invocation, "yes") && !older && !keep && !size)
        return output_refuse(invocation, "--yes needs --older, --keep or --size; --keep 0 removes "
                                         "every run that has ended");
    return 0;
}

static int prune(const struct invocation *invocation, struct roost_prune_options *options)
{
    struct roost_error err;
    struct pruning it = {
        .is_json = option_is_on(invocation, "json"),
        .is_real = options->is_real,
        .width = isatty(output_stdout) ? output_style(invocation, output_stdout).width : 0,
        .out = TEXT_INIT};
    it.json = json_writer_on(&it.out, JSON_SPACED);
    options->report = report;
    options->ctx = &it;
    if (it.is_json) {
        json_open_object(&it.json);
        json_put_int(json_key(&it.json, "roost"), 1);
        json_put_bool(json_key(&it.json, "removed"), it.is_real);
        json_line(&it.json, 1);
        json_open_array(json_key(&it.json, "runs"));
    }
    enum roost_code code = roost_prune(options, &err);
    if (it.is_json) {
        json_close(&it.json);
        json_line(&it.json, 1);
        json_put_int(json_key(&it.json, "size"), it.size);
        json_close(&it.json);
        text_char(&it.out, '\n');
    }
    const char *text = text_string(&it.out);
    bool is_written = text && output_write(&output_stdout, text, it.out.len);
    text_release(&it.out);
    if (code != ROOST_OK) {
        output_error(&err);
        return roost_code_exit(code);
    }
    if (!it.is_json)
        say_sum(&it);
    return output_status(is_written ? ROOST_OK : ROOST_ERR_IO, it.has_failed ? EXIT_SYSTEM : 0);
}

static int run(const struct invocation *invocation)
{
    struct roost_prune_options options = {.env = (const char *const *)invocation->env,
                                          .is_real = option_is_on(invocation, "yes")};
    if (invocation->operand_count)
        return output_refuse(invocation, "'roost prune' takes no '%s'",
                             quote(sv_from(invocation->operands[0])).text);
    int status = read_limits(invocation, &options.limits);
    return status ? status : prune(invocation, &options);
}

static const struct cli_option options[] = {
    {"older", "AGE", "runs that ended longer ago than AGE: 12h, 30d, 8w"},
    {"keep", "N", "all but the N newest"},
    {"size", "SIZE", "the oldest, until the others take at most SIZE: 500M, 10G, 1T"},
    {"yes", NULL, "remove them"},
    {"json", NULL, "print JSON"},
    {0},
};

const struct command cmd_prune = {
    .name = "prune",
    .summary = "remove runs that have ended",
    .usage = "[options]",
    .details =
        "Lists the runs that have ended and how much room each takes, or with --yes removes\n"
        "them. With several limits, a run is removed if any of them says so. Runs that are\n"
        "alive, that start, or that may be alive on another machine are never touched. A run\n"
        "that `roost logs` reads, or whose folder has files that roost did not make, is kept,\n"
        "and roost says so. The exit status is 5 if something could not be removed.",
    .options = options,
    .run = run,
};
