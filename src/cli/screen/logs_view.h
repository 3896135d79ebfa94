/* logs_view.h - shows the logs of a run directory: what is there now, or new lines as they come. */
#ifndef CLI_SCREEN_LOGS_VIEW_H
#define CLI_SCREEN_LOGS_VIEW_H

#include "base/diag.h"
#include "cli/screen/screen.h"

struct logs_options {
    const char *component;        /* show only this one; NULL = all */
    const struct rankset *ranks;  /* show only these; NULL = all */
    struct screen_options screen; /* without names and ranks */
    bool follows;
    /* For `follows`: whether the run is alive. Called twice a second. */
    bool (*is_alive)(void *ctx);
    void *ctx;
};

/* Shows the logs in `run_dir`: components in their natural order, then ranks, standard output before
 * standard error. With `follows` both come as they grow, until the run has ended. Returns when all is
 * out, or its reader has gone (screen_error tells; *out_error is that errno, 0 = none). False after
 * saying why nothing could be shown: a component that is not there (nearest name as the hint), no memory. */
bool logs_show(int run_dir, const struct logs_options *options, int *out_error, struct diag *diag);

#endif
