/* cmd_stop.c - roost stop: ends a run as its own Ctrl-C would, and waits until it has ended. */
#include <errno.h>
#include <unistd.h>

#include "cli/output.h"
#include "run/runs.h"

static int stop(const struct invocation *invocation, struct run_list *list,
                const struct run_entry *entry)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct strview answer;
    if (!invocation->operand_count)
        output_say("stopping run %s (%s)", entry->id,
                   quote(sv_from(entry->config[0] ? entry->config : entry->components)).text);
    int fd = runs_connect(list, entry), error = fd < 0 ? errno : 0;
    const char *question = option_is_on(invocation, "now") ? "kill" : "stop";
    if (fd >= 0 && runs_ask(list, entry, fd, question, &answer)) {
        runs_await(list, entry, fd);
        output_say("run %s has ended", entry->id);
        return 0;
    }
    if (fd >= 0)
        close(fd);
    /* Not to be reached is not to have ended; but a supervisor may have died while it was asked. */
    if (runs_look_again(list, entry) == RUN_ALIVE) {
        runs_explain(list, entry, error, &diag);
        output_error(&err);
        return roost_code_exit(err.code);
    }
    output_say("run %s had ended already", entry->id);
    return 0;
}

static int run(const struct invocation *invocation)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct run_list list;
    if (invocation->operand_count > 1)
        return output_refuse(invocation, "'roost stop' takes one run, not '%s' too",
                             quote(sv_from(invocation->operands[1])).text);
    const struct run_entry *entry =
        runs_list(&list, (const char *const *)invocation->env, &diag)
            ? runs_find(&list, invocation->operand_count ? invocation->operands[0] : NULL, &diag)
            : NULL;
    if (entry && !invocation->operand_count && entry->state > RUN_ALIVE) {
        /* Without a name it was meant to end something, and there is nothing. */
        diag_error(&diag, ROOST_ERR_USAGE, NOWHERE, "nothing is running");
        diag_hint(&diag, "`roost ps -a` lists runs that have ended");
        entry = NULL;
    }
    int status = entry ? stop(invocation, &list, entry) : roost_code_exit(err.code);
    if (!entry)
        output_error(&err);
    runs_release(&list);
    return status;
}

static const struct cli_option options[] = {
    {"now", NULL, "kill at once, without a grace"},
    {0},
};

const struct command cmd_stop = {
    .name = "stop",
    .summary = "end a run",
    .usage = "[options] [RUN]",
    .details =
        "Asks every process of the run to end, kills the rest after the grace of the run, and\n"
        "waits until all have ended. RUN is an id or the beginning of one; the default is the\n"
        "newest run that is alive.",
    .examples = "roost stop\n"
                "roost stop 4by53t --now",
    .options = options,
    .run = run,
};
