/* logs_view.h - the logs of a run directory on the screen: what is there, or as it comes. */
#ifndef CLI_LOGS_VIEW_H
#define CLI_LOGS_VIEW_H

#include "base/diag.h"
#include "cli/screen.h"

struct logs_options {
    const char *component;        /* only this one; NULL = all */
    const struct rankset *ranks;  /* only these; NULL = all */
    struct screen_options screen; /* names and ranks are filled in */
    bool follows;
    /* For `follows`: whether the run goes on; asked twice a second. */
    bool (*is_alive)(void *ctx);
    void *ctx;
};

/* Shows the logs in `run_dir`: components in their natural order, then ranks, standard output before
 * standard error. With `follows` both come as they grow, until the run has ended. Returns when all is
 * out, or its reader has gone (screen_error tells; *out_error is that errno, 0 = none). False after
 * saying why nothing could be shown: a component that is not there (nearest name as the hint), no memory. */
bool logs_show(int run_dir, const struct logs_options *options, int *out_error, struct diag *diag);

#endif
