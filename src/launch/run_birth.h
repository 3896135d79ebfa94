/* run_birth.h - a run on its way; shared by run_start.c (the steps) and run_places.c (where it lives). */
#ifndef LAUNCH_RUN_BIRTH_H
#define LAUNCH_RUN_BIRTH_H

#include <roost/registry.h>

#include "launch/commands.h"
#include "launch/run_internal.h"

/* A run on its way. */
struct birth {
    const struct roost_run_options *options;
    struct roost_run *run;
    struct commands *commands;
    char runtime[RUNTIME_PATH_MAX];
    int runtime_dir;
    int namespace_lock;
    char name_space[ROOST_NAMESPACE_MAX + 1];
    int32_t *ports;
    struct diag *diag;
};

/* Finds the runtime directory and a namespace, and makes the run's own directory. False after saying
 * why. */
bool birth_find_places(struct birth *birth);

/* Writes who the run is where others look for a namespace. */
bool birth_sign_namespace(struct birth *birth);

#endif
