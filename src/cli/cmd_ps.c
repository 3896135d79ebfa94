/* cmd_ps.c - roost ps: the runs of this user and how they are doing. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/run_words.h"
#include "run/runs.h"
#include "json/json_writer.h"

/* What is printed. */
struct listing {
    struct run_list *list;
    const struct run_entry *only; /* NULL = all, or all that live */
    bool has_ended, is_json, is_quiet;
    int width; /* of the terminal, 0 = none */
    struct text out;
};

/* What a living run answers; empty when it has ended, or does not. */
static struct strview ask(struct run_list *list, const struct run_entry *entry)
{
    struct strview answer = {0};
    int fd = entry->state == RUN_ALIVE ? runs_connect(list, entry) : -1;
    if (fd < 0)
        return answer;
    if (!runs_ask(list, entry, fd, "status", &answer))
        answer.len = 0;
    close(fd);
    return answer;
}

/* --- the table --- */

static const char *count_text(int32_t count, char out[16])
{
    snprintf(out, 16, count < 0 ? "-" : "%d", count);
    return out;
}

static void put_row(struct listing *listing, const struct run_entry *entry)
{
    char status[16], nodes[16];
    size_t from = listing->out.len;
    text_printf(&listing->out, "%-8s %-8s %5s  %4s  %5s  %5lld  ", entry->id,
                run_state_word(entry->state), run_age((int64_t)time(NULL) - entry->started).text,
                count_text(entry->exit_status, status), count_text(entry->nodes, nodes),
                (long long)entry->world_size);
    int left = listing->width ? listing->width - (int)(listing->out.len - from) : 0;
    text_printf(&listing->out, "%s\n", run_what(entry->config, entry->components, left).text);
}

static void put_counts(struct text *out, const struct run_counts *counts, int name_width,
                       bool has_ended)
{
    bool has_any = false;
    text_printf(out, "  %-*s  ", name_width, counts->name);
    if (!counts->is_known)
        text_printf(out, "%d process%s", counts->world_size, counts->world_size == 1 ? "" : "es");
    for (int kind = 0; counts->is_known && kind < RUN_COUNT_KINDS; kind++) {
        const char *word = kind == RUN_COUNT_KILLED                 ? "stopped"
                           : kind == RUN_COUNT_WAITING && has_ended ? "never started"
                                                                    : run_count_words[kind];
        if (counts->count[kind] == 0)
            continue;
        text_printf(out, "%s%d %s", has_any ? ", " : "", counts->count[kind], word);
        has_any = true;
    }
    /* Whether it waits for others, or others for it; the counts say the rest. */
    const char *news = strcmp(counts->state, "blocked") == 0    ? "blocked"
                       : strcmp(counts->state, "starting") == 0 ? "starting"
                       : counts->count[RUN_COUNT_RUNNING] == 0  ? NULL
                       : strcmp(counts->state, "up") == 0       ? "not ready yet"
                       : strcmp(counts->state, "ready") == 0    ? "ready"
                                                                : NULL;
    if (news && !has_ended)
        text_printf(out, " (%s)", news);
    text_char(out, '\n');
}

static void put_text(struct listing *listing, const struct run_entry *entry)
{
    put_row(listing, entry);
    if (entry->state > RUN_ALIVE && !listing->only)
        return; /* of many runs that have ended, a row each is enough */
    struct run_counts *counts = runs_count(listing->list, entry, ask(listing->list, entry));
    int width = 0;
    for (int32_t i = 0; counts && i < entry->member_count; i++)
        width = (int)strlen(counts[i].name) > width ? (int)strlen(counts[i].name) : width;
    for (int32_t i = 0; counts && i < entry->member_count; i++)
        put_counts(&listing->out, &counts[i], width, entry->state > RUN_ALIVE);
}

/* --- JSON --- */

static void put_components(struct json_writer *json, const struct run_counts *counts, int32_t count,
                           bool has_ended)
{
    json_line(json, 3);
    json_open_array(json_key(json, "components"));
    for (int32_t i = 0; counts && i < count; i++) {
        json_line(json, 4);
        json_open_object(json);
        json_put_string(json_key(json, "name"), counts[i].name);
        json_put_int(json_key(json, "world_size"), counts[i].world_size);
        json_put_count(json_key(json, "nodes"), counts[i].nodes);
        json_put_string(json_key(json, "state"), counts[i].is_known ? counts[i].state : NULL);
        for (int kind = 0; counts[i].is_known && kind < RUN_COUNT_KINDS; kind++)
            if (kind == RUN_COUNT_WAITING || (kind >= RUN_COUNT_DONE) == has_ended)
                json_put_int(json_key(json, run_count_words[kind]), counts[i].count[kind]);
        json_close(json);
    }
    json_close(json);
}

/* A living run's own answer, a process a line. */
static void put_answer(struct json_writer *json, struct strview answer)
{
    struct diag diag = {0};
    struct json_limits limits = {.max_bytes = SIZE_MAX};
    struct json_reader *reader = json_reader_from_text("status", answer, &limits);
    struct json_event event;
    json_line(json, 3);
    json_open_object(json_key(json, "status"));
    if (reader && json_next(reader, &diag).kind == JSON_OBJECT)
        while ((event = json_next(reader, &diag)).kind == JSON_KEY) {
            json_key_view(json, event.text);
            event = json_next(reader, &diag);
            bool is_good = event.kind != JSON_FAILED;
            if (event.kind != JSON_ARRAY) {
                is_good = is_good && json_put_value(json, reader, event, &diag);
            } else {
                json_open_array(json);
                while (is_good && (event = json_next(reader, &diag)).kind != JSON_ARRAY_END) {
                    json_line(json, 4);
                    is_good =
                        event.kind != JSON_FAILED && json_put_value(json, reader, event, &diag);
                }
                json_close(json);
            }
            if (!is_good) {
                json->out->has_failed = true; /* without memory: the answer was whole */
                break;
            }
        }
    json_close(json);
    json_reader_free(reader);
}

static void put_json(struct listing *listing, struct json_writer *json,
                     const struct run_entry *entry)
{
    struct strview answer = ask(listing->list, entry);
    bool has_ended = entry->state > RUN_ALIVE;
    json_line(json, 2);
    json_open_object(json);
    json_put_string(json_key(json, "run"), entry->id);
    json_put_string(json_key(json, "state"), run_state_word(entry->state));
    json_put_int(json_key(json, "started"), entry->started);
    if (has_ended && entry->ended > 0)
        json_put_int(json_key(json, "ended"), entry->ended);
    else
        json_put_null(json_key(json, "ended"));
    json_put_count(json_key(json, "exit_status"), has_ended ? entry->exit_status : -1);
    json_put_count(json_key(json, "nodes"), entry->nodes);
    json_put_int(json_key(json, "world_size"), entry->world_size);
    json_put_string(json_key(json, "config"), entry->config);
    json_put_string(json_key(json, "dir"), entry->path);
    put_components(json, runs_count(listing->list, entry, answer), entry->member_count, has_ended);
    if (answer.len)
        put_answer(json, sv_sub(answer, 0, answer.len - 1));
    json_close(json);
}

/* --- all of them --- */

static bool is_listed(const struct listing *listing, const struct run_entry *entry)
{
    return listing->only ? entry == listing->only : listing->has_ended || entry->state <= RUN_ALIVE;
}

static int show(struct listing *listing)
{
    struct run_list *list = listing->list;
    int32_t shown = 0;
    struct json_writer json = json_writer_on(&listing->out, JSON_SPACED);
    if (listing->is_json) {
        json_open_object(&json);
        json_put_int(json_key(&json, "roost"), 1);
        json_line(&json, 1);
        json_open_array(json_key(&json, "runs"));
    }
    for (int32_t i = 0; i < list->count; i++) {
        if (!is_listed(listing, &list->entries[i]))
            continue;
        if (listing->is_json) {
            put_json(listing, &json, &list->entries[i]);
        } else if (listing->is_quiet) {
            text_printf(&listing->out, "%s\n", list->entries[i].id);
        } else {
            if (shown == 0)
                text_puts(&listing->out, "RUN      STATE      AGE  EXIT  NODES  PROCS  CONFIG\n");
            put_text(listing, &list->entries[i]);
        }
        shown++;
    }
    if (listing->is_json) {
        json_close(&json);
        json_close(&json);
        text_char(&listing->out, '\n');
    }
    const char *text = text_string(&listing->out);
    bool is_written = text && output_write(&output_stdout, text, listing->out.len);
    if (shown == 0 && !listing->is_json && !listing->is_quiet)
        output_say(listing->has_ended ? "no runs"
                                      : "nothing is running; --all shows runs that have ended");
    return output_status(is_written ? ROOST_OK : ROOST_ERR_IO, 0);
}

static int run(const struct invocation *invocation)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct run_list list;
    const char *name = invocation->operand_count ? invocation->operands[0] : NULL;
    if (invocation->operand_count > 1)
        return output_refuse(invocation, "'roost ps' takes one run, not '%s' too",
                             quote(sv_from(invocation->operands[1])).text);
    struct listing listing = {
        .list = &list,
        .has_ended = option_is_on(invocation, "all"),
        .is_json = option_is_on(invocation, "json"),
        .is_quiet = option_is_on(invocation, "quiet"),
        .width = isatty(output_stdout) ? output_style(invocation, output_stdout).width : 0,
        .out = TEXT_INIT};
    bool is_found = runs_list(&list, (const char *const *)invocation->env, &diag);
    if (is_found && name) {
        listing.only = runs_named(&list, name, &diag);
        is_found = listing.only != NULL;
    }
    int status = is_found ? show(&listing) : roost_code_exit(err.code);
    if (!is_found)
        output_error(&err);
    text_release(&listing.out);
    runs_release(&list);
    return status;
}

static const struct cli_option options[] = {
    {"all", NULL, "also list runs that have ended"},
    {"quiet", NULL, "print only the ids"},
    {"json", NULL, "print JSON, with every process of living runs"},
    {0},
};

static const struct option_letter letters[] = {{'a', "all"}, {'q', "quiet"}, {0}};

const struct command cmd_ps = {
    .name = "ps",
    .summary = "list your runs",
    .usage = "[options] [RUN]",
    .takes_ended_runs = true,
    .details =
        "Lists the runs of this user that are alive on this machine, newest first, and how many\n"
        "processes of each of their components are in which state. With RUN, the id of a run or\n"
        "the beginning of one, it shows that run alone, also one that has ended. If a run\n"
        "crashed, roost ends what is left of it and lists it with --all.",
    .examples = "roost ps --all\n"
                "roost ps --json",
    .options = options,
    .run = run,
    .letters = letters,
};
