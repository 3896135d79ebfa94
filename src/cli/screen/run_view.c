/* run_view.c - lines of workers as they come, the count of those that are up, and roost's own words. */
#include "cli/screen/run_view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/driver_signals.h"

void run_view_say(struct run_view *view, const char *format, ...)
{
    char line[OWN_LINE_MAX];
    va_list list;
    va_start(list, format);
    own_line(line, format, list);
    va_end(list);
    screen_say(view->screen, line);
}

bool run_view_init(struct run_view *view, struct roost_run *run,
                   const struct run_view_options *options, struct roost_error *err)
{
    int32_t count = roost_run_component_count(run);
    *view = (struct run_view){.run = run,
                              .arena = ARENA_INIT,
                              .is_verbose = options->is_verbose,
                              .has_services = options->has_services,
                              .is_quiet = options->screen.is_quiet,
                              .has_color = options->screen.has_color[1]};
    view->counts = arena_zeroed(&view->arena, struct run_count, count + 1);
    view->names = arena_zeroed(&view->arena, const char *, count + 1);
    for (int32_t i = 0; view->names && i < count; i++) {
        view->names[i] = roost_run_component(run, i);
        view->world_size += roost_run_world_size(run, i);
    }
    struct screen_options screen = options->screen;
    screen.components = view->names;
    screen.component_count = count;
    view->run_dir = open(roost_run_dir(run), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(err->message, sizeof err->message, "%s",
             view->run_dir < 0 ? strerror(errno) : "out of memory");
    view->screen = view->names && view->counts ? screen_new(&screen) : NULL;
    view->tail = view->screen && view->run_dir >= 0 ? log_tail_new(view->run_dir, err) : NULL;
    return view->tail != NULL;
}

void run_view_release(struct run_view *view)
{
    log_tail_free(view->tail);
    screen_free(view->screen);
    if (view->run_dir >= 0)
        close(view->run_dir);
    arena_release(&view->arena);
}

/* --- events --- */

static void show_progress(struct run_view *view)
{
    char text[64];
    if (view->is_started || view->is_quiet)
        return;
    view->is_started = view->up == view->world_size;
    snprintf(text, sizeof text, "%d of %d up", view->up, view->world_size);
    screen_status(view->screen, view->is_started ? NULL : text);
}

static void has_started(struct run_view *view, const struct roost_event *event)
{
    struct run_count *count = &view->counts[event->component];
    if (event->life > 1) {
        count->restarts++;
        return;
    }
    count->up++;
    view->up++;
    if (screen_shows(view->screen, event->rank) && !view->is_quiet)
        (void)log_tail_add(view->tail, view->names[event->component], event->component, event->rank,
                           true);
    show_progress(view);
}

static void has_ended(struct run_view *view, const struct roost_event *event)
{
    struct run_count *count = &view->counts[event->component];
    view->last_end = event->end == ROOST_END_LOST     ? &count->lost
                     : view->is_closing               ? &count->done
                     : event->end == ROOST_END_KILLED ? &count->killed
                     : event->exit_code == 0          ? &count->done
                                                      : &count->failed;
    ++*view->last_end;
    view->ended = *event;
    log_tail_end(view->tail, event->component, event->rank);
    run_waiting_look(view);
}

static void say_restart(struct run_view *view, const struct roost_event *event)
{
    /* The life whose end was told just before is not the last: the summary counts how processes
     * ended. */
    if (view->last_end)
        --*view->last_end;
    view->last_end = NULL;
    run_waiting_look(view);
    char how[64];
    if (view->ended.signal)
        snprintf(how, sizeof how, "was ended by %s", signal_word(view->ended.signal).text);
    else
        snprintf(how, sizeof how, "exited with %d", view->ended.exit_code);
    run_view_say(view, "%s/%d %s and starts again in %.1f s (life %d)",
                 view->names[event->component], event->rank, how, (double)event->delay_ms / 1000,
                 event->life + 1);
}

static void say_problem(struct run_view *view, const struct roost_event *event)
{
    if (event->rank < 0) {
        run_view_say(view, "%s", event->message);
        return;
    }
    /* Its logs: that it ended well does not make them whole. */
    struct run_count *count = &view->counts[event->component];
    if (event->code == ROOST_ERR_WORKER && view->last_end == &count->done &&
        view->ended.component == event->component && view->ended.rank == event->rank) {
        count->done--; /* it ended well, but too early */
        view->last_end = &count->failed;
        count->failed++;
    }
    bool is_cut = event->code == ROOST_ERR_IO;
    if (is_cut && view->cut_count < RUN_VIEW_CUTS)
        view->cuts[view->cut_count] = *event;
    view->cut_count += is_cut;
    if (!is_cut || view->cut_count <= RUN_VIEW_CUTS)
        run_view_say(view, "%s/%d: %s", view->names[event->component], event->rank, event->message);
}

void run_view_event(struct run_view *view, const struct roost_event *event)
{
    const char *name = event->component >= 0 ? view->names[event->component] : "";
    switch (event->kind) {
    case ROOST_EVENT_STARTED: has_started(view, event); break;
    case ROOST_EVENT_ENDED: has_ended(view, event); break;
    case ROOST_EVENT_RESTARTING: say_restart(view, event); break;
    case ROOST_EVENT_READY:
        if (view->is_verbose)
            run_view_say(view, "%s is ready", name);
        break;
    case ROOST_EVENT_STOPPING:
        screen_status(view->screen, NULL);
        view->is_started = view->is_stopping = true;
        run_waiting_look(view);
        if (event->message[0]) /* otherwise the problem itself was told */
            run_view_say(view, "stopping: %s", event->message);
        break;
    case ROOST_EVENT_PROBLEM: say_problem(view, event); break;
    case ROOST_EVENT_NOTE:
        if (view->is_verbose)
            run_view_say(view, "%s", event->message);
        break;
    case ROOST_EVENT_CLOSING:
        view->is_closing = true;
        if (view->is_verbose)
            run_view_say(view, "the job is done: stopping its services");
        break;
    case ROOST_EVENT_FINISHED: screen_status(view->screen, NULL); break;
    }
}

/* --- lines --- */

nfds_t run_view_poll(struct run_view *view, struct pollfd *out, int *out_timeout)
{
    nfds_t count = screen_poll(view->screen, out);
    int later = screen_timeout(view->screen);
    if (!screen_is_full(view->screen)) {
        int tail = log_tail_timeout(view->tail);
        out[count++] = (struct pollfd){log_tail_fd(view->tail), POLLIN, 0};
        if (tail >= 0 && (later < 0 || tail < later))
            later = tail;
    }
    int line = run_waiting_tick(view);
    *out_timeout = line >= 0 && (later < 0 || line < later) ? line : later;
    return count;
}

void run_view_show(struct run_view *view)
{
    if (!screen_is_full(view->screen))
        (void)log_tail_read(view->tail, screen_put, view->screen);
    (void)screen_flush(view->screen);
}

bool run_view_finish(struct run_view *view, int stop_fd, bool (*is_stopped)(void *ctx), void *ctx)
{
    for (bool is_done = false, is_out = false; !is_done || !is_out;) {
        is_done = log_tail_finish(view->tail, screen_put, view->screen);
        /* A reader that never lags does not make us wait: there the signals are looked at, too. */
        is_out = screen_drain(view->screen, stop_fd, -1);
        if (is_stopped(ctx))
            return is_done && is_out;
    }
    return true;
}

bool run_view_drain(struct run_view *view)
{
    enum { PATIENCE_MS = 500 };
    return screen_drain(view->screen, -1, PATIENCE_MS);
}

void run_view_rest(struct run_view *view, int32_t number)
{
    struct log_rest rest = {0};
    screen_end_footer(view->screen);
    bool is_out = run_view_drain(view);
    int32_t count = log_tail_rest(view->tail, &rest);
    if (count > 0)
        run_view_say(view, "%s: %lld bytes of %s/%d/%s%s were not shown", signal_word(number).text,
                     (long long)rest.bytes, view->names[rest.component_index], rest.rank,
                     log_file_name(rest.stream), count > 1 ? ", and of other logs," : "");
    else if (!is_out)
        run_view_say(view, "%s: the end of the output was not shown", signal_word(number).text);
}
