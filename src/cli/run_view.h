/* run_view.h - what a person sees of a run: its lines, its progress, its summary. */
#ifndef CLI_RUN_VIEW_H
#define CLI_RUN_VIEW_H

#include <poll.h>

#include "cli/command.h"
#include "cli/screen.h"

/* What became of a component's processes. */
struct run_count {
    int32_t up, done, failed, killed, lost, restarts;
};

/* That many processes are named with their logs. The summary counts the others. */
enum { RUN_VIEW_CUTS = 8 };

struct run_view {
    struct roost_run *run;
    struct screen *screen;
    struct log_tail *tail;
    struct run_count *counts; /* by component */
    const char **names;
    struct rankset rank_set;
    const struct rankset *ranks; /* NULL = all */
    struct arena arena;
    int run_dir;
    int32_t world_size;
    int32_t *last_end;                      /* which count the last end went to */
    struct roost_event ended;               /* that end */
    int32_t up;                             /* lives that have begun, of different processes */
    int32_t cut_count;                      /* processes whose logs are not whole */
    struct roost_event cuts[RUN_VIEW_CUTS]; /* what was reported of the first of them */
    bool is_verbose;
    bool is_quiet;
    bool is_started; /* all are up: no more progress */
};

/* Reads the options of the command, before anything is started. 0, or an exit status after saying
 * what is wrong with them; release it in any case. */
int run_view_read(struct run_view *view, const struct invocation *invocation);

/* Shows `run` as the options of the command ask. 0, or an exit status after saying why not. */
int run_view_init(struct run_view *view, struct roost_run *run,
                  const struct invocation *invocation);
void run_view_release(struct run_view *view);

/* What an event means for the screen. */
void run_view_event(struct run_view *view, const struct roost_event *event);

/* Descriptors to wait for (at most 3) and the longest wait. */
nfds_t run_view_poll(const struct run_view *view, struct pollfd *out, int *out_timeout);

/* Shows what has come. */
void run_view_show(struct run_view *view);

/* Shows everything to the end. `is_stopped` is asked after every piece, and when `stop_fd` is readable: once
 * it says so, nothing more is shown and the result is false. */
bool run_view_finish(struct run_view *view, int stop_fd, bool (*is_stopped)(void *ctx), void *ctx);

/* Gives readers half a second, whatever signals come, to take what is on its way. True when nothing is left. */
bool run_view_drain(struct run_view *view);

/* Says what was not shown because the signal `number` came. */
void run_view_rest(struct run_view *view, int32_t number);

/* How the run ended. */
void run_view_summary(struct run_view *view, int status);

/* A line of roost itself among the others. */
void run_view_say(struct run_view *view, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
