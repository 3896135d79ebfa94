/* logs_view.h - shows the logs of a run directory: what is there now, or new lines as they come. */
#ifndef CLI_SCREEN_LOGS_VIEW_H
#define CLI_SCREEN_LOGS_VIEW_H

#include "base/diag.h"
#include "cli/screen/screen.h"

struct logs_options {
    const char *components;       /* show only these: "a,b"; NULL = all */
    const struct rankset *ranks;  /* show only these; NULL = all */
    struct screen_options screen; /* without names and ranks */
    bool follows;
    bool has_tail; /* show only the last `tail` lines of what is there */
    int64_t tail;
    int64_t since; /* ms since 1970: leave out what was written before */
    /* For `follows`: whether the run is alive. Called twice a second. */
    bool (*is_alive)(void *ctx);
    void *ctx;
};

/* Shows the logs in `run_dir`: lines in the order in which they were written, as logs/log_history.h promises
 * it. With `follows`, new lines follow as they come, until the run has ended. A run without recorded times is
 * shown log by log, and one line says so. Returns when all is out, or its reader has gone (screen_error
 * tells; *out_error is that errno, 0 = none). False after saying why nothing could be shown: a component that
 * is not there (nearest name as the hint), an option that needs times where there are none, no memory. */
bool logs_show(int run_dir, const struct logs_options *options, int *out_error, struct diag *diag);

#endif
