/* logs_view.c - reads the logs of a run for a screen, in order or as they grow.
 *
 * Only reads. The ranks of a run have their directories before they start, but a component that starts
 * after another may come later: while following, directories that changed are read again. */
#include "cli/screen/logs_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strview.h"
#include "cli/screen/logs_list.h"

enum { ASK_MS = 500, COMPONENTS_MAX = 4096 };

struct logs_view {
    int run_dir;
    const struct logs_options *options;
    struct logs_list list;
    char **names; /* by component_index, in the order they were met; ours, ends with NULL */
    int32_t name_count;
    struct screen *screen;
    struct log_tail *tail;
    char *buffer;
};

static bool is_wanted(const struct logs_view *view, const char *component)
{
    const char *only = view->options->component;
    return !only || strcmp(only, component) == 0;
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

/* --- in order --- */

/* One log from its start to its end. False when the screen's reader has gone. */
static bool show_log(struct logs_view *view, int32_t index, int32_t rank, enum log_stream stream)
{
    struct stat info;
    int error = 0;
    int fd = log_file_open(view->run_dir, view->names[index], rank, stream, &info, &error);
    if (fd < 0)
        return true;
    uint32_t memo = 0;
    int64_t offset = 0;
    for (bool is_last = false; !is_last && !screen_error(view->screen, (int)stream);) {
        ssize_t got = file_read_at(fd, view->buffer, LOG_CHUNK_MAX, offset);
        if (got <= 0)
            break;
        struct log_chunk chunk = {.component_index = index,
                                  .rank = rank,
                                  .stream = stream,
                                  .bytes = view->buffer,
                                  .len = (size_t)got,
                                  .is_end = offset + got >= info.st_size,
                                  .memo = &memo};
        size_t taken = chunk.len;
        bool goes_on = screen_put(view->screen, &chunk, &taken);
        offset += (int64_t)taken;
        is_last = goes_on && chunk.is_end;
        if (!goes_on)
            screen_drain(view->screen, -1, -1);
    }
    close(fd);
    return !screen_error(view->screen, (int)stream);
}

/* False without memory. */
static bool show_in_order(struct logs_view *view)
{
    for (int32_t c = 0; c < view->list.count; c++) {
        const struct logs_component *it = &view->list.components[c];
        int32_t index = index_of(view, it->name);
        if (index < 0)
            return false;
        for (int32_t r = 0; r < it->rank_count && is_wanted(view, it->name); r++)
            for (int stream = 0; stream < LOG_STREAMS; stream++)
                if (screen_shows(view->screen, it->ranks[r]) &&
                    !view->options->screen.hides[stream] &&
                    !show_log(view, index, it->ranks[r], (enum log_stream)stream))
                    return true;
    }
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

static bool has_reader(const struct logs_view *view)
{
    const bool *hides = view->options->screen.hides;
    return (!hides[0] && !screen_error(view->screen, 0)) ||
           (!hides[1] && !screen_error(view->screen, 1));
}

/* What the run has left when it has ended. */
static void follow_to_end(struct logs_view *view)
{
    for (bool is_done = false; !is_done && has_reader(view);) {
        is_done = log_tail_finish(view->tail, screen_put, view->screen);
        screen_drain(view->screen, -1, -1);
    }
}

static bool follow(struct logs_view *view)
{
    struct logs_list nothing = {0};
    bool is_alive = true, is_good = follow_new(view, &nothing);
    while (is_good && is_alive && has_reader(view)) {
        if (!wait_for_news(view))
            break;
        /* Asked before looking and reading: what the run wrote before it ended is then seen, too. */
        is_alive = view->options->is_alive(view->options->ctx);
        if (!is_alive || logs_list_is_stale(&view->list, view->run_dir))
            is_good = look_again(view);
        if (!screen_is_full(view->screen))
            log_tail_read(view->tail, screen_put, view->screen);
        screen_flush(view->screen);
    }
    if (is_good)
        follow_to_end(view);
    return is_good;
}

/* --- both --- */

/* Says when the component that is asked for is not there. A run that goes on may bring it yet. */
static bool has_component(struct logs_view *view, struct diag *diag)
{
    const char *only = view->options->component;
    bool is_there = !only || view->options->follows;
    for (int32_t i = 0; i < view->list.count && !is_there; i++)
        is_there = strcmp(view->list.components[i].name, only) == 0;
    if (is_there)
        return true;
    for (int32_t i = 0; i < view->list.count; i++)
        if (index_of(view, view->list.components[i].name) < 0)
            break;
    const char *near = nearest_word(sv_from(only), (const char *const *)view->names);
    diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "this run has no logs of a component '%s'",
               quote(sv_from(only)).text);
    if (near)
        diag_hint(diag, "did you mean '%s'?", near);
    else
        diag_hint(diag, "leave --component out to see all");
    return false;
}

static bool view_init(struct logs_view *view, struct diag *diag)
{
    struct screen_options screen = view->options->screen;
    view->names = calloc(COMPONENTS_MAX + 1, sizeof *view->names);
    screen.components = (const char *const *)view->names;
    screen.component_count = COMPONENTS_MAX;
    screen.ranks = view->options->ranks;
    view->buffer = malloc(LOG_CHUNK_MAX);
    view->screen = screen_new(&screen);
    view->tail = log_tail_new(view->run_dir, NULL);
    if (logs_list_read(&view->list, view->run_dir) && view->names && view->buffer && view->screen &&
        view->tail)
        return has_component(view, diag);
    diag_nomem(diag);
    return false;
}

static void view_release(struct logs_view *view)
{
    log_tail_free(view->tail);
    screen_free(view->screen);
    for (int32_t i = 0; i < view->name_count; i++)
        free(view->names[i]);
    free(view->names);
    free(view->buffer);
    logs_list_release(&view->list);
}

bool logs_show(int run_dir, const struct logs_options *options, int *out_error, struct diag *diag)
{
    struct logs_view view = {.run_dir = run_dir, .options = options};
    bool is_good = view_init(&view, diag);
    if (is_good) {
        is_good = options->follows ? follow(&view) : show_in_order(&view);
        if (!is_good)
            diag_nomem(diag);
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
