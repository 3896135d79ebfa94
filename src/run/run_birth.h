/* run_birth.h - a run on its way; shared by run_start.c (the steps) and run_places.c (where it lives). */
#ifndef RUN_RUN_BIRTH_H
#define RUN_RUN_BIRTH_H

#include <roost/registry.h>

#include "command/commands.h"
#include "run/run_internal.h"

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
    bool is_on_ray;
    struct diag *diag;
};

/* Finds the runtime directory and a namespace, and makes the run's own directory. False after saying
 * why. */
bool birth_find_places(struct birth *birth);

/* Writes who the run is where others look for a namespace. */
bool birth_sign_namespace(struct birth *birth);

/* What the supervisor is told of the whole. */
struct setup birth_setup(const struct birth *birth);

/* Writes run.json. */
bool birth_describe(struct birth *birth);

/* --- run_talk.c: the conversation; each is false after saying why --- */

/* The next message, in run->inbox; what is not `type` ends the try. */
bool birth_expect(struct birth *birth, enum message_type type);

/* The same, until a moment of clock_ms(); *is_late then, with nothing said. */
bool birth_expect_until(struct birth *birth, enum message_type type, int64_t deadline,
                        bool *is_late);

/* Sends a message with a file, which it takes; -1 = it could not be made, errno says why. */
bool birth_send_file(struct birth *birth, enum message_type type, const void *body, size_t len,
                     int file);

/* Says that errno kept the supervisor from being reached; false. */
bool birth_say_channel(struct birth *birth);

/* --- run_parts.c --- */

/* The steps behind the supervisor's greeting for a run on the nodes of a Ray cluster. */
bool birth_on_ray(struct birth *birth);

#endif
