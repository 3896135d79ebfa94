/* run_start.h - a run that is being started, in its driver. run_start.c has the steps of every run,
 * run_here.c and run_agents.c those that depend on where its processes are, run_places.c finds its folders,
 * run_talk.c talks to the supervisor. */
#ifndef RUN_RUN_START_H
#define RUN_RUN_START_H

#include <roost/engine/registry.h>

#include "command/commands.h"
#include "run/run_internal.h"

struct run_start;

/* Where the processes of a run are, for its driver: the counterpart of supervise/host.h. */
struct run_host {
    const char *engine;    /* its word in run.json */
    bool brings_namespace; /* the run takes no namespace of its own */
    bool shows_errors;     /* the supervisor's children write to the driver's standard error */

    /* The steps after the supervisor's greeting, up to MSG_START. False after reporting why. */
    bool (*start)(struct run_start *start);
};

extern const struct run_host run_here;      /* run_here.c: on this machine */
extern const struct run_host run_on_agents; /* run_agents.c: on the nodes of a Ray cluster */

struct run_start {
    const struct run_host *host;
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

/* --- run_places.c --- */

/* Finds the runtime directory and a namespace, and makes the run's own directory. False after reporting
 * why. */
bool run_start_find_places(struct run_start *start);

/* Writes the run's id into the file of its namespace. */
bool run_start_sign_namespace(struct run_start *start);

/* --- run_start.c --- */

/* The setup for the supervisor: the fields that are the same for every host. */
struct setup run_start_setup(const struct run_start *start);

/* Writes run.json. */
bool run_start_describe(struct run_start *start);

/* --- run_talk.c: the conversation; each is false after reporting why --- */

/* Receives the next message into run->inbox. A message of another type is an error. */
bool run_start_expect(struct run_start *start, enum message_type type);

/* The same, until a moment of clock_ms(). When that has passed, *is_late is set and nothing is
 * reported. */
bool run_start_expect_until(struct run_start *start, enum message_type type, int64_t deadline,
                            bool *is_late);

/* Sends a message with a file, which it takes; -1 = the file could not be made, and errno has the
 * reason. */
bool run_start_send_file(struct run_start *start, enum message_type type, const void *body,
                         size_t len, int file);

/* Reports that the supervisor cannot be reached, with the reason of errno; false. */
bool run_start_report_socket(struct run_start *start);

#endif
