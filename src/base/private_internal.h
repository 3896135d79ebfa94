/* private_internal.h - what private_dir.c and private_file.c share: how a refusal is worded. */
#ifndef BASE_PRIVATE_INTERNAL_H
#define BASE_PRIVATE_INTERNAL_H

#include <sys/stat.h>

#include "base/diag.h"
#include "base/private_dir.h"

/* Whether `name` stays in its directory; says so when it does not. */
bool private_name_check(struct diag *diag, const char *name);

/* "cannot <step> '<path>': <errno words>", with a cure. */
void private_say_errno(struct diag *diag, int error, const char *step, const char *path);

#endif
