/* start.h - everything that one start of a worker needs, gathered. */
#ifndef SUPERVISE_START_H
#define SUPERVISE_START_H

#include "supervise/spawn.h"
#include "supervise/supervisor.h"

/* Memory of one start: pointers into the spec, and the few strings that are made here. */
struct start {
    char **strings; /* argv, NULL, environment, NULL, paths, NULL */
    char **env;
    const char **paths;
    char *path_text;
    char *pwd; /* "PWD=..." of a process with a directory of its own, or NULL */
    char listen_pid[sizeof "LISTEN_PID=" + SPAWN_PID_DIGITS];
    char listen_fds[32];
    char channel[48];
    int ends[2]; /* of the channel: the driver's and the process's; -1 = none */
    int handed[SPAWN_HANDED_MAX];
    int32_t handed_count;
};

/* Gathers the strings of a worker's next life and lets its ports go; `ends` of start are the caller's
 * doing. False without memory. */
bool start_fill(struct start *start, struct supervisor *supervisor, const struct worker *worker);
void start_release(struct start *start);

#endif
