/* guardian_say.h - why a guardian could not be started. */
#ifndef SUPERVISE_GUARDIAN_SAY_H
#define SUPERVISE_GUARDIAN_SAY_H

#include "base/diag.h"
#include "supervise/spawn.h"

/* Says it, for a program that should have become the guardian of a run; `cure` is for one that cannot be
 * run. */
void guardian_say(struct diag *diag, const char *program, const struct spawned *spawned,
                  const char *cure);

#endif
