/* cmd_ps.c - roost ps: the runs of this user and how they are doing. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "run/runs.h"
#include "json/json_writer.h"

static void put_age(struct text *out, int64_t seconds)
{
    static const struct {
        int64_t size;
        const char *unit;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    seconds = seconds < 0 ? 0 : seconds;
    for (size_t i = 0; i < 4; i++)
        if (seconds >= 2 * units[i].size || i == 3) {
            text_printf(out, "%lld%s", (long long)(seconds / units[i].size), units[i].unit);
            return;
        }
}

static void put_row(struct text *out, const struct run_entry *entry, int64_t now)
{
    struct text age = TEXT_INIT;
    put_age(&age, now - entry->started);
    const char *text = text_string(&age);
    /* A run that a program has put together has no config; its groups tell it from others. */
    const char *what = entry->config[0] ? entry->config : entry->components;
    text_printf(out, "%-8s %-8s %5s %6lld  %s\n", entry->id, run_state_word(entry->state),
                text ? text : "", (long long)entry->world_size, quote(sv_from(what)).text);
    text_release(&age);
}

/* What a living run says of itself, or what its directory says. */
static void put_json(struct json_writer *json, struct run_list *list, const struct run_entry *entry)
{
    struct strview answer = {0};
    int fd = entry->state == RUN_ALIVE ? runs_connect(list, entry) : -1;
    json_open_object(json);
    json_put_string(json_key(json, "run"), entry->id);
    json_put_string(json_key(json, "state"), run_state_word(entry->state));
    json_put_int(json_key(json, "started"), entry->started);
    json_put_int(json_key(json, "world_size"), entry->world_size);
    json_put_string(json_key(json, "config"), entry->config);
    json_put_string(json_key(json, "dir"), entry->path);
    if (fd >= 0 && runs_ask(list, entry, fd, "status", &answer))
        json_put_raw(json_key(json, "status"), sv_sub(answer, 0, answer.len - 1));
    if (fd >= 0)
        close(fd);
    json_close(json);
}

static int show(const struct invocation *invocation, struct run_list *list)
{
    bool is_json = option_is_on(invocation, "json"), has_all = option_is_on(invocation, "all");
    struct text out = TEXT_INIT;
    int32_t shown = 0;
    int64_t now = (int64_t)time(NULL);
    struct json_writer json = json_writer_on(&out, JSON_COMPACT);
    if (is_json) {
        json_open_object(&json);
        json_put_int(json_key(&json, "roost"), 1);
        json_open_array(json_key(&json, "runs"));
    }
    for (int32_t i = 0; i < list->count; i++) {
        if (!has_all && list->entries[i].state > RUN_ALIVE)
            continue;
        if (is_json) {
            put_json(&json, list, &list->entries[i]);
        } else {
            if (shown == 0)
                text_puts(&out, "RUN      STATE      AGE  PROCS  CONFIG\n");
            put_row(&out, &list->entries[i], now);
        }
        shown++;
    }
    if (is_json) {
        json_close(&json);
        json_close(&json);
        text_char(&out, '\n');
    }
    const char *text = text_string(&out);
    bool is_written = text && output_write(&output_stdout, text, out.len);
    text_release(&out);
    if (shown == 0 && !is_json)
        output_say(has_all ? "no runs" : "nothing is running; --all shows runs that have ended");
    return output_status(is_written ? ROOST_OK : ROOST_ERR_IO, 0);
}

static int run(const struct invocation *invocation)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct run_list list;
    if (invocation->operand_count)
        return output_refuse(invocation, "'roost ps' takes no '%s'",
                             quote(sv_from(invocation->operands[0])).text);
    int status = EXIT_SYSTEM;
    if (runs_list(&list, (const char *const *)invocation->env, &diag))
        status = show(invocation, &list);
    else
        output_error(&err);
    runs_release(&list);
    return status;
}

static const struct cli_option options[] = {
    {"all", NULL, "also list runs that have ended"},
    {"json", NULL, "print JSON, with every process of living runs"},
    {0},
};

static const struct option_letter letters[] = {{'a', "all"}, {0}};

const struct command cmd_ps = {
    .name = "ps",
    .summary = "list your runs",
    .usage = "[options]",
    .details =
        "Lists the runs of this user that are alive on this machine, newest first. If a run\n"
        "crashed, roost ends what is left of it and lists it with --all.",
    .examples = "roost ps --all\n"
                "roost ps --json",
    .options = options,
    .run = run,
    .letters = letters,
};
