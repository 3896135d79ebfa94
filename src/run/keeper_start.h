/* keeper_start.h - a keeper in two steps, for who has a namespace already and something to do meanwhile. */
#ifndef RUN_KEEPER_START_H
#define RUN_KEEPER_START_H

#include <roost/registry.h>

#include "base/diag.h"

/* Where a keeper will live; all borrowed for the call. */
struct keeper_place {
    const char *runtime;    /* the path of the runtime directory */
    int runtime_dir, lock;  /* that directory, and what namespace_take gave */
    const char *name_space; /* whose lock it is */
    const char *run_id;     /* of its run, by which whoever sweeps finds it; NULL = none */
};

/* Starts the process; it does not answer yet. Of the options `view`, `program` and those of the port are
 * used. NULL after saying why not. */
struct roost_keeper *keeper_spawn(const struct roost_keeper_options *options,
                                  const struct keeper_place *place, struct diag *diag);

/* Waits until it answers at its socket; false after saying why it does not. */
bool keeper_meet(const struct roost_keeper *keeper, struct diag *diag);

/* Asks it to end, and waits for nothing: roost_keeper_free does. NULL is nothing. */
void keeper_let_go(const struct roost_keeper *keeper);

#endif
