/* guardian_say.c - the words for each step that can fail. Only the last one has to do with the program. */
#include "supervise/guardian_say.h"

#include <string.h>

#include "base/cure.h"

void guardian_say(struct diag *diag, const char *program, const struct spawned *spawned,
                  const char *cure)
{
    if (spawned->failed == SPAWN_EXEC) {
        diag_error(diag, ROOST_ERR_ENGINE, (struct place){0},
                   "cannot run the program '%s' as the guardian of the run: %s",
                   quote(sv_from(program)).text, strerror(spawned->error));
        diag_hint(diag, "%s", cure);
        return;
    }
    diag_error(diag, ROOST_ERR_ENGINE, (struct place){0},
               "cannot start the guardian of the run: cannot %s: %s",
               spawn_step_word(spawned->failed), strerror(spawned->error));
    if (spawned->failed == SPAWN_CLONE)
        diag_hint(diag, "raise the limit of processes: ulimit -u, or pids.max");
    else
        diag_hint(diag, "%s", cure_of_descriptor(spawned->error).text);
}
