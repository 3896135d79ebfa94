/* run_summary.c - how a run ended: one line per component, and the first failure with its last words. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/screen/run_view.h"
#include "logs/last_lines.h"
#include "run/driver_signals.h"

static void put_count(struct text *line, const char *word, int32_t count)
{
    if (count > 0)
        text_printf(line, "%s%d %s", line->len ? ", " : "", count, word);
}

static void say_component(struct run_view *view, int32_t component, int width)
{
    const struct run_count *count = &view->counts[component];
    struct text line = TEXT_INIT;
    int32_t world_size = roost_run_world_size(view->run, component);
    put_count(&line, "done", count->done);
    put_count(&line, "failed", count->failed);
    put_count(&line, "stopped", count->killed);
    put_count(&line, "lost", count->lost);
    put_count(&line, "never started", world_size - count->up);
    put_count(&line, "not started again",
              count->up - count->done - count->failed - count->killed - count->lost);
    put_count(&line, count->restarts == 1 ? "restart" : "restarts", count->restarts);
    const char *text = text_string(&line);
    run_view_say(view, "  %-*s  %s", width, view->names[component], text ? text : "");
    text_release(&line);
}

static void say_failure(struct run_view *view, const struct roost_event *first)
{
    const char *name = view->names[first->component];
    const char *node = roost_run_node(view->run, first->component, first->rank);
    bool is_named = !node || strstr(first->message, node);
    const char *on = is_named ? "" : " on ", *where = is_named ? "" : node;
    if (first->code != ROOST_OK)
        run_view_say(view, "first failure: %s/%d%s%s: %s", name, first->rank, on, where,
                     first->message);
    else if (first->signal)
        run_view_say(view, "first failure: %s/%d%s%s was ended by %s%s", name, first->rank, on,
                     where, signal_word(first->signal).text,
                     first->has_core               ? " (core dumped)"
                     : first->end == ROOST_END_OOM ? ", by the kernel: out of memory?"
                                                   : "");
    else
        run_view_say(view, "first failure: %s/%d%s%s exited with %d", name, first->rank, on, where,
                     first->exit_code);
}

/* What the process wrote last, where it most likely tells why. */
static void say_last_words(struct run_view *view, const struct roost_event *first)
{
    enum { LINES = 10 };
    struct text lines = TEXT_INIT;
    const char *name = view->names[first->component];
    /* Shown on standard error, whichever stream they come from. */
    struct last_lines_style style = {.prefix = "  | ", .has_color = view->has_color};
    int count = last_lines(view->run_dir, name, first->rank, LOG_STDERR, LINES, &style, &lines);
    const char *stream = "stderr";
    if (count == 0) {
        count = last_lines(view->run_dir, name, first->rank, LOG_STDOUT, LINES, &style, &lines);
        stream = "stdout";
    }
    char *text = count > 0 && text_string(&lines) ? lines.bytes : NULL;
    if (text)
        run_view_say(view, "its last lines on %s:", stream);
    for (char *line = text, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        screen_say(view->screen, line);
    }
    text_release(&lines);
}

/* What the first failure says comes with it. */
static void say_cuts(struct run_view *view, const struct roost_event *first)
{
    int32_t named = view->cut_count < RUN_VIEW_CUTS ? view->cut_count : RUN_VIEW_CUTS;
    for (int32_t i = 0; i < named; i++) {
        const struct roost_event *cut = &view->cuts[i];
        if (strcmp(cut->message, first->message) != 0)
            run_view_say(view, "some logs are incomplete: %s/%d: %s", view->names[cut->component],
                         cut->rank, cut->message);
    }
    int32_t more = view->cut_count - named;
    if (more > 0)
        run_view_say(view, "some logs are incomplete: those of %d more process%s may be cut too",
                     more, more == 1 ? "" : "es");
}

void run_view_summary(struct run_view *view, int status)
{
    struct roost_event first;
    int width = 0;
    (void)roost_run_status(view->run, &first);
    screen_end_footer(view->screen);
    if (status == 0 && view->is_quiet)
        return;
    for (int32_t i = 0; i < roost_run_component_count(view->run); i++) {
        int len = (int)strlen(view->names[i]);
        width = len > width ? len : width;
    }
    if (first.component < 0 && first.signal)
        run_view_say(view, "run %s was ended by %s", roost_run_id(view->run),
                     signal_word(first.signal).text);
    else
        run_view_say(view, "run %s %s", roost_run_id(view->run),
                     status == 0 ? "is done" : "has failed");
    for (int32_t i = 0; i < roost_run_component_count(view->run); i++)
        say_component(view, i, width);
    say_cuts(view, &first);
    if (first.component >= 0 && first.rank >= 0) {
        say_failure(view, &first);
        say_last_words(view, &first);
    } else if (first.code != ROOST_OK)
        run_view_say(view, "%s", first.message);
    run_view_say(view, "logs: %s", roost_run_dir(view->run));
}
