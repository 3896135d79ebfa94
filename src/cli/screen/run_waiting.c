/* run_waiting.c - the line that names the components a run still waits for, when others have long ended. A
 * server that was not marked as a service would otherwise keep a finished job alive without a word. */
#include <stdio.h>

#include "base/text.h"
#include "cli/screen/run_view.h"
#include "supervise/clock.h"

enum { WAITING_MS = 10000 };

static bool has_finished(const struct run_view *view, int32_t component)
{
    const struct run_count *count = &view->counts[component];
    return count->done + count->failed + count->killed + count->lost ==
           roost_run_world_size(view->run, component);
}

void run_waiting_look(struct run_view *view)
{
    int32_t finished = 0, count = roost_run_component_count(view->run);
    for (int32_t i = 0; i < count; i++)
        finished += has_finished(view, i);
    bool is_waiting = finished > 0 && finished < count && !view->has_services && !view->is_stopping;
    if (!is_waiting)
        view->waiting_until = 0;
    else if (finished != view->finished)
        view->waiting_until = clock_ms() + WAITING_MS;
    view->finished = finished;
}

/* "rollout (2 processes), env (1 process)"; returns how many. */
static int32_t put_components(const struct run_view *view, struct text *out, bool is_finished)
{
    int32_t named = 0, count = roost_run_component_count(view->run);
    for (int32_t i = 0; i < count; i++) {
        if (has_finished(view, i) != is_finished)
            continue;
        int32_t size = roost_run_world_size(view->run, i);
        text_printf(out, "%s%s", named++ ? ", " : "", view->names[i]);
        if (!is_finished)
            text_printf(out, " (%d process%s)", (int)size, size == 1 ? "" : "es");
    }
    return named;
}

int run_waiting_tick(struct run_view *view)
{
    int64_t left = view->waiting_until ? view->waiting_until - clock_ms() : 0;
    if (left > 0)
        return (int)left;
    if (!view->waiting_until)
        return -1;
    view->waiting_until = 0;
    struct text waiting = TEXT_INIT, finished = TEXT_INIT;
    int32_t many = put_components(view, &waiting, false);
    int32_t others = put_components(view, &finished, true);
    const char *names = text_string(&waiting), *ended = text_string(&finished);
    if (names && ended)
        run_view_say(view, "waiting for %s: %s %s ended; mark %s if %s should end with the others",
                     names, ended, others == 1 ? "has" : "have",
                     many == 1 ? "it as a service" : "them as services", many == 1 ? "it" : "they");
    text_release(&waiting);
    text_release(&finished);
    return -1;
}
