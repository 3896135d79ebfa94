/* plan_commands.h - the view of roost plan --commands. */
#ifndef CLI_PLAN_COMMANDS_H
#define CLI_PLAN_COMMANDS_H

#include "cli/planning.h"

/* Prints the commands of a plan, of one component only unless it is NULL. Returns the exit status. */
int plan_commands(const struct planning *planning, const struct invocation *invocation,
                  const char *component);

#endif
