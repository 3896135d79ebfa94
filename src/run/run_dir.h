/* run_dir.h - the directory of one run: its logs, its records, and the page that describes it. */
#ifndef RUN_RUN_DIR_H
#define RUN_RUN_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include <roost/engine/process.h>
#include <roost/launch.h>

#include "base/diag.h"

enum { RUN_ID_LEN = ROOST_RUN_ID_SIZE - 1, RUN_PATH_MAX = 4096, RUN_BOOT_MAX = 40 };

/* Whether a text has the form of a run id. Users may put other names beside the runs. */
bool is_run_id(const char *text);

struct run_dir {
    char id[RUN_ID_LEN + 1];
    char path[RUN_PATH_MAX];
    int fd;   /* the directory, -1 = none */
    int page; /* run.json, empty until run_dir_describe */
};

/* Makes DIR/<id>, mode 0700, with a new id. DIR is `base`; if that is NULL, the state directory of `env`. For
 * another DIR, a link in the state directory leads to the run. False after reporting why. */
bool run_dir_make(struct run_dir *dir, const char *base, const char *const *env, struct diag *diag);

/* Writes run.json, once. False after reporting why. */
bool run_dir_describe(struct run_dir *dir, const char *json, size_t len, struct diag *diag);

/* Whether a process of the run is alive. `fd` is a descriptor of its directory that was opened for this call:
 * driver, guardian and supervisor share a lock on the directory, and the kernel unlocks it when the last of
 * them ends. Also true on a file system without locks, where this cannot be known. */
bool run_dir_is_held(int fd);

/* The kernel's id of the current boot; false when it has none. */
bool run_boot_id(char out[RUN_BOOT_MAX]);

/* Empties the directory, open as `fd`, of a run that never started a process. False, and nothing is touched,
 * when the directory has files that such a run does not make: a log, a record. */
bool run_dir_clear_unstarted(int fd);

/* Removes what run_dir_make made: the run did not begin. */
void run_dir_remove(struct run_dir *dir, const char *const *env);
void run_dir_release(struct run_dir *dir);

#endif
