/* ask.h - the way from the program to Ray: a Python of the user's with the roost package in it.
 *
 * Ray has no C interface that lasts, so a module of the package asks it and prints one JSON document;
 * what it says to people goes to standard error as it comes. */
#ifndef AGENT_RAY_ASK_H
#define AGENT_RAY_ASK_H

#include "base/diag.h"

struct ray_question {
    const char *python;       /* ROOST_PYTHON; NULL = the one beside the program */
    const char *module;       /* "roost._ray_probe" */
    const char *const *words; /* its arguments, NULL-terminated */
    const char *const *env;   /* NULL-terminated */
};

/* Runs the module to its end. What it printed, to be freed; NULL after saying why there is nothing: its
 * own error, {"error": {"code", "message", "hint"}}, or that it could not be run. */
char *ray_ask(const struct ray_question *question, struct diag *diag);

/* The Python that is `python` (ROOST_PYTHON): a path, or a name that an absolute folder of PATH in `env` has;
 * NULL or "" = the one that stands where the program does. False after saying why there is none. */
bool ray_find_python(const char *python, const char *const *env, char *out, size_t size,
                     struct diag *diag);

/* Says {"error": {"code", "message", "hint"}}; false when the text is not that. */
bool ray_say_answer(struct strview text, struct diag *diag);

#endif
