/* start.h - gathers everything that one start of a worker needs. */
#ifndef SUPERVISE_START_H
#define SUPERVISE_START_H

#include "supervise/here.h"
#include "supervise/spawn.h"

/* Memory of one start: pointers into the spec, and the few strings that are made here. */
struct start {
    char **strings; /* argv, NULL, environment, NULL, paths, NULL */
    char **env;
    const char **paths;
    char *path_text;
    char *pwd; /* "PWD=..." of a process with a directory of its own, or NULL */
    char listen_pid[sizeof "LISTEN_PID=" + SPAWN_PID_DIGITS];
    char listen_fds[32];
    char socket[48];
    int ends[2]; /* of the socket: the driver's and the process's; -1 = none */
    int handed[SPAWN_HANDED_MAX];
    int32_t handed_count;
};

/* Gathers the strings of a worker's next life and releases its ports; the caller fills `ends` of start.
 * False without memory. */
bool start_fill(struct start *start, const struct here *here, const struct worker *worker);
void start_release(struct start *start);

/* The kernel refuses a program with a variable of 128 KiB, so the driver sends long values apart from the
 * others. The process that starts workers on a node, its supervisor or agent, writes each value once to a file
 * in its own folder, and sets NAME_FILE to the path of that file instead of NAME. This writes the long values
 * of all components and fills `file_env` of each. 0, or the exit status of the process after reporting the
 * reason to the driver. */
int start_write_long_values(struct watcher *watcher);

#endif
