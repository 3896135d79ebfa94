/* ray_ask.h - how the program asks Ray: through the user's Python, which has the roost package.
 *
 * Ray has no stable C interface. So a module of the package asks it and prints one JSON document; its
 * messages for people go to standard error as they come. */
#ifndef AGENT_RAY_ASK_H
#define AGENT_RAY_ASK_H

#include "base/diag.h"

struct ray_question {
    const char *python;       /* ROOST_PYTHON; NULL = the one beside the program */
    const char *module;       /* "roost._ray.probe" */
    const char *const *words; /* its arguments, NULL-terminated */
    const char *const *env;   /* NULL-terminated */
};

/* Runs the module to its end. Returns what it printed, to be freed; NULL after reporting why there is
 * nothing: the module's own error, {"error": {"code", "message", "hint"}}, or why it could not be run. */
char *ray_ask(const struct ray_question *question, struct diag *diag);

/* Finds the Python that `python` (ROOST_PYTHON) names: a path, or a name in an absolute folder of PATH
 * in `env`. NULL or "" = the one beside the program. False after reporting why there is none. */
bool ray_find_python(const char *python, const char *const *env, char *out, size_t size,
                     struct diag *diag);

/* Reports {"error": {"code", "message", "hint"}}; false when the text is not such an object. */
bool ray_report_answer(struct strview text, struct diag *diag);

#endif
