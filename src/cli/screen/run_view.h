/* run_view.h - shows a run: the lines of its workers, its progress and its summary. */
#ifndef CLI_SCREEN_RUN_VIEW_H
#define CLI_SCREEN_RUN_VIEW_H

#include <poll.h>
#include <roost/launch.h>

#include "base/arena.h"
#include "cli/screen/screen.h"

/* What became of a component's processes. */
struct run_count {
    int32_t up, done, failed, killed, lost, restarts;
};

/* The summary names that many processes with incomplete logs and counts the others. */
enum { RUN_VIEW_CUTS = 8 };

struct run_view {
    struct roost_run *run;
    struct screen *screen;
    struct log_tail *tail;
    struct run_count *counts; /* by component */
    const char **names;
    struct arena arena;
    int run_dir;
    int32_t world_size;
    int32_t *last_end;                      /* the count that the last end went to */
    struct roost_event ended;               /* that end */
    int32_t up;                             /* processes that have begun their first life */
    int32_t cut_count;                      /* processes whose logs are incomplete */
    struct roost_event cuts[RUN_VIEW_CUTS]; /* what was reported of the first of them */
    bool is_verbose;
    bool is_quiet;
    bool has_color;  /* on standard error */
    bool is_started; /* all are up: no more progress */
    bool is_stopping;
    bool has_services;
    int32_t finished;      /* components whose processes have all ended */
    int64_t waiting_until; /* ms: then the components that are left are named; 0 = not */
    bool is_closing;       /* only services were left, and they are being stopped */
};

/* How to show a run. */
struct run_view_options {
    struct screen_options screen; /* without the names, which the run has */
    bool is_verbose;
    bool has_services; /* some component of the run ends with the others */
};

/* Begins to show `run`, which must outlive the view. False with err->message when that failed;
 * release the view then, too. */
bool run_view_init(struct run_view *view, struct roost_run *run,
                   const struct run_view_options *options, struct roost_error *err);
void run_view_release(struct run_view *view);

/* Shows what an event means. */
void run_view_event(struct run_view *view, const struct roost_event *event);

/* --- run_waiting.c --- */

/* A process has ended, or starts again: begins or ends the wait for a line about what is left. */
void run_waiting_look(struct run_view *view);

/* Says the line when it is due; returns in how many ms to call again, -1 = not by the clock. */
int run_waiting_tick(struct run_view *view);

/* --- run_view.c --- */

/* Fills the descriptors to wait for (at most 3) and the longest wait. */
nfds_t run_view_poll(struct run_view *view, struct pollfd *out, int *out_timeout);

/* Shows the lines that have come. */
void run_view_show(struct run_view *view);

/* Shows everything to the end. Calls `is_stopped` after every piece and when `stop_fd` is readable; once that
 * returns true, it shows nothing more and returns false, unless all was shown. */
bool run_view_finish(struct run_view *view, int stop_fd, bool (*is_stopped)(void *ctx), void *ctx);

/* Waits up to half a second, whatever signals come, for readers to take the rest. True when nothing is left. */
bool run_view_drain(struct run_view *view);

/* Reports what was not shown because the signal `number` came. */
void run_view_rest(struct run_view *view, int32_t number);

/* Shows how the run ended. */
void run_view_summary(struct run_view *view, int status);

/* Shows a line of roost itself among the others. */
void run_view_say(struct run_view *view, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
