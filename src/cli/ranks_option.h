/* ranks_option.h - the option --ranks of commands that show lines of workers. */
#ifndef CLI_RANKS_OPTION_H
#define CLI_RANKS_OPTION_H

#include "base/rankset.h"
#include "cli/command.h"

/* Reads it into *out (from the arena) and points *out_ranks there; NULL when it was not given. 0, or
 * an exit status after saying what is wrong. */
int ranks_option(const struct invocation *invocation, struct arena *arena, struct rankset *out,
                 const struct rankset **out_ranks);

#endif
