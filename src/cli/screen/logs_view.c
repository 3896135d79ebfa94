/* logs_view.c - reads the logs of a run for a screen: what is there in order of time, then as they grow.
 *
 * Only reads. The ranks of a run have their directories before they start, but a component that starts
 * after another may come later: while following, directories that changed are read again. */
#include "cli/screen/logs_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/strview.h"
#include "cli/screen/logs_list.h"
#include "logs/log_history.h"

enum { ASK_MS = 500, COMPONENTS_MAX = 4096, FIRST_WINDOW = 64, WINDOW_GROWTH = 8 };

struct logs_view {
    int run_dir;
    const struct logs_options *options;
    struct logs_list list;
    char **names; /* by component_index, in the order they were met; ours, ends with NULL */
    int32_t name_count;
    struct screen *screen;
    struct log_tail *tail;
    struct log_history *history;
};

/* The next of the names "a,b"; false after the last. */
static bool next_name(const char **at, struct strview *out)
{
    if (!*at)
        return false;
    size_t len = strcspn(*at, ",");
    *out = (struct strview){*at, len};
    *at = (*at)[len] ? *at + len + 1 : NULL;
    return true;
}

static bool is_wanted(const struct logs_view *view, const char *component)
{
    const char *left = view->options->components;
    struct strview name;
    bool is_so = !left;
    while (!is_so && next_name(&left, &name))
        is_so = sv_is(name, component);
    return is_so;
}

static int64_t logs_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The index of a component for the screen, which stays when others come between; -1 without memory. */
static int32_t index_of(struct logs_view *view, const char *name)
{
    for (int32_t i = 0; i < view->name_count; i++)
        if (strcmp(view->names[i], name) == 0)
            return i;
    size_t size = strlen(name) + 1;
    char *copy = view->name_count < COMPONENTS_MAX ? malloc(size) : NULL;
    if (!copy)
        return -1;
    memcpy(copy, name, size);
    view->names[view->name_count] = copy;
    return view->name_count++;
}

/* --- what is there --- */

static bool has_reader(const struct logs_view *view)
{
    const bool *hides = view->options->screen.hides;
    return (!hides[0] && !screen_error(view->screen, 0)) ||
           (!hides[1] && !screen_error(view->screen, 1));
}

/* A word of roost itself. Without labels, there are only bytes of workers. */
static void say(struct logs_view *view, const char *format, ...)
{
    char line[OWN_LINE_MAX];
    va_list args;
    if (view->options->screen.has_no_label)
        return;
    va_start(args, format);
    own_line(line, format, args);
    va_end(args);
    screen_say(view->screen, line);
}

/* A log_sink: the screen's, which is told the time of each chunk. */
static bool put(void *ctx, const struct log_chunk *chunk, size_t *taken)
{
    struct logs_view *view = ctx;
    int64_t time = log_tail_time(view->tail);
    screen_set_time(view->screen, time ? time : logs_now());
    return screen_put(view->screen, chunk, taken);
}

/* From a mark to the end. */
static void walk(struct logs_view *view, int64_t mark)
{
    log_history_start(view->history, mark);
    while (!log_history_read(view->history, put, view) && has_reader(view))
        screen_drain(view->screen, -1, -1);
}

/* The last lines: counts the lines of the last marks, of ever more until they are enough, and leaves out what
 * is too much. So both walks see lines by the same rules, and no line is kept. */
static void walk_last(struct logs_view *view, int64_t lines)
{
    int64_t marks = log_history_marks(view->history), window = lines + FIRST_WINDOW, counted, start;
    do {
        start = lines == 0 || window >= marks ? 0 : marks - window;
        start = lines == 0 ? marks : start;
        screen_count(view->screen);
        walk(view, start);
        counted = screen_counted(view->screen);
        window *= WINDOW_GROWTH;
    } while (counted < lines && start > 0);
    screen_skip(view->screen, counted > lines ? counted - lines : 0);
    walk(view, start);
    screen_skip(view->screen, 0);
}

/* False after saying which option needs times that this run does not have. */
static bool can_do(const struct logs_view *view, struct diag *diag)
{
    const struct logs_options *options = view->options;
    const char *option = options->since                                             ? "--since"
                         : options->screen.has_times                                ? "--timestamps"
                         : options->has_tail && log_history_logs(view->history) > 1 ? "--tail"
                                                                                    : NULL;
    if (log_history_has_times(view->history) || !option)
        return true;
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE,
               "%s needs the times of lines, and this run has no record of them", option);
    if (options->has_tail && !options->since && !options->screen.has_times)
        diag_hint(diag, "select one log with --component, --ranks and --stdout or --stderr");
    else
        diag_hint(diag, "leave %s out", option);
    return false;
}

/* What the logs have now. False after saying why not. */
static bool show_history(struct logs_view *view, struct diag *diag)
{
    struct log_history_options options = {
        .run_dir = view->run_dir,
        .since = view->options->since,
        .leaves_out = {view->options->screen.hides[0], view->options->screen.hides[1]},
        .is_followed = view->options->follows && view->options->is_alive(view->options->ctx)};
    view->history = log_history_new(view->tail, &options);
    if (!view->history) {
        diag_nomem(diag);
        return false;
    }
    if (!can_do(view, diag))
        return false;
    if (!log_history_has_times(view->history) && log_history_logs(view->history) > 1)
        say(view, "this run has no times of its lines: its logs follow one after the other");
    if (view->options->has_tail)
        walk_last(view, view->options->tail);
    else
        walk(view, 0);
    int32_t damaged = log_history_damaged(view->history);
    if (damaged >= 0)
        say(view, "the times of component '%s' are damaged: some of its lines came last",
            view->names[damaged]);
    return true;
}

/* --- as they grow --- */

/* Follows the ranks of the list that `before` does not have. */
static bool follow_new(struct logs_view *view, const struct logs_list *before)
{
    for (int32_t c = 0; c < view->list.count; c++) {
        const struct logs_component *it = &view->list.components[c];
        const struct logs_component *old = NULL;
        int32_t index = index_of(view, it->name);
        if (index < 0)
            return false;
        for (int32_t i = 0; i < before->count; i++)
            if (strcmp(before->components[i].name, it->name) == 0)
                old = &before->components[i];
        for (int32_t r = 0, o = 0; r < it->rank_count && is_wanted(view, it->name); r++) {
            while (old && o < old->rank_count && old->ranks[o] < it->ranks[r])
                o++;
            bool is_old = old && o < old->rank_count && old->ranks[o] == it->ranks[r];
            if (!is_old && screen_shows(view->screen, it->ranks[r]) &&
                !log_tail_add(view->tail, it->name, index, it->ranks[r], true))
                return false;
        }
    }
    return true;
}

/* Reads the directory again and follows what is new. False without memory. */
static bool look_again(struct logs_view *view)
{
    struct logs_list before = view->list;
    view->list = (struct logs_list){0};
    bool is_good = logs_list_read(&view->list, view->run_dir) && follow_new(view, &before);
    logs_list_release(&before);
    return is_good;
}

static bool wait_for_news(struct logs_view *view)
{
    struct pollfd polled[SCREEN_FDS + 1];
    nfds_t count = screen_poll(view->screen, polled);
    int footer = screen_timeout(view->screen);
    int timeout = footer >= 0 && footer < ASK_MS ? footer : ASK_MS;
    if (!screen_is_full(view->screen)) {
        int tail = log_tail_timeout(view->tail);
        timeout = tail >= 0 && tail < timeout ? tail : timeout;
        polled[count++] = (struct pollfd){.fd = log_tail_fd(view->tail), .events = POLLIN};
    }
    return poll(polled, count, timeout) >= 0 || errno == EINTR;
}

/* What the run has left when it has ended. */
static void follow_to_end(struct logs_view *view)
{
    for (bool is_done = false; !is_done && has_reader(view);) {
        is_done = log_tail_finish(view->tail, put, view);
        screen_drain(view->screen, -1, -1);
    }
}

/* False without memory. */
static bool follow(struct logs_view *view)
{
    bool is_alive = true, is_good = true;
    while (is_good && is_alive && has_reader(view)) {
        if (!wait_for_news(view))
            break;
        /* Asked before looking and reading: what the run wrote before it ended is then seen, too. */
        is_alive = view->options->is_alive(view->options->ctx);
        if (!is_alive || logs_list_is_stale(&view->list, view->run_dir))
            is_good = look_again(view);
        if (!screen_is_full(view->screen))
            log_tail_read(view->tail, put, view);
        screen_flush(view->screen);
    }
    if (is_good)
        follow_to_end(view);
    return is_good;
}

/* --- both --- */

static bool refuse_component(struct logs_view *view, struct strview name, struct diag *diag)
{
    for (int32_t i = 0; i < view->list.count; i++)
        if (index_of(view, view->list.components[i].name) < 0)
            break;
    const char *near = nearest_word(name, (const char *const *)view->names);
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "this run has no logs of a component '%s'",
               quote(name).text);
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "leave --component out to see all");
    return false;
}

/* Says when a component that is asked for is not there. A run that goes on may bring it yet. */
static bool has_components(struct logs_view *view, struct diag *diag)
{
    const char *left = view->options->follows ? NULL : view->options->components;
    for (struct strview name; next_name(&left, &name);) {
        bool is_there = false;
        for (int32_t i = 0; i < view->list.count && !is_there; i++)
            is_there = sv_is(name, view->list.components[i].name);
        if (!is_there)
            return refuse_component(view, name, diag);
    }
    return true;
}

static bool view_init(struct logs_view *view, struct diag *diag)
{
    struct screen_options screen = view->options->screen;
    view->names = calloc(COMPONENTS_MAX + 1, sizeof *view->names);
    screen.components = (const char *const *)view->names;
    screen.component_count = COMPONENTS_MAX;
    screen.ranks = view->options->ranks;
    view->screen = screen_new(&screen);
    view->tail = view->options->follows ? log_tail_new(view->run_dir, NULL)
                                        : log_tail_new_still(view->run_dir, NULL);
    struct logs_list nothing = {0};
    bool is_good =
        logs_list_read(&view->list, view->run_dir) && view->names && view->screen && view->tail;
    if (is_good && !has_components(view, diag))
        return false;
    if (is_good && follow_new(view, &nothing))
        return true;
    diag_nomem(diag);
    return false;
}

static void view_release(struct logs_view *view)
{
    log_history_free(view->history);
    log_tail_free(view->tail);
    screen_free(view->screen);
    for (int32_t i = 0; i < view->name_count; i++)
        free(view->names[i]);
    free(view->names);
    logs_list_release(&view->list);
}

bool logs_show(int run_dir, const struct logs_options *options, int *out_error, struct diag *diag)
{
    struct logs_view view = {.run_dir = run_dir, .options = options};
    bool is_good = view_init(&view, diag) && show_history(&view, diag);
    if (is_good && options->follows && !follow(&view)) {
        diag_nomem(diag);
        is_good = false;
    }
    if (is_good) {
        screen_end_footer(view.screen);
        screen_drain(view.screen, -1, -1);
    }
    *out_error = 0;
    for (int i = 0; is_good && i < SCREEN_FDS && !*out_error; i++)
        *out_error = screen_error(view.screen, i);
    view_release(&view);
    return is_good;
}
