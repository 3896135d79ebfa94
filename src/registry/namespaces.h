/* namespaces.h - the names of runs: which registry servers of this user live, and how to reach one.
 *
 * NAME.registry in the runtime directory is the registry server's socket; NAME.namespace is the file that the
 * registry server keeps locked, and with it the guardian of the run whose own it is. */
#ifndef REGISTRY_NAMESPACES_H
#define REGISTRY_NAMESPACES_H

#include <roost/engine/registry.h>

#include "base/diag.h"
#include "base/text.h"

enum { NAMESPACE_FILE_MAX = ROOST_NAMESPACE_MAX + 16 };

/* Whether `name` can be one; false after it reported why not. */
bool namespace_check(const char *name, struct diag *diag);

/* The name of a registry server's socket. */
void namespace_socket(const char *name, char out[NAMESPACE_FILE_MAX]);

/* Takes the namespace `wanted` or, if that is NULL, the first free one of roost, roost_1, ... It is held as
 * long as the returned descriptor, or a copy of it, is open. `dir` is the checked runtime directory. -1 after
 * reporting why not. */
int namespace_take(int dir, const char *wanted, char out[ROOST_NAMESPACE_MAX + 1],
                   struct diag *diag);

/* A non-blocking connection to a registry server; -1 after it reported why there is none. */
int namespaces_connect(const char *const *env, const char *name, struct diag *diag);

#endif
