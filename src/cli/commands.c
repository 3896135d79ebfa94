/* commands.c - the list of commands: the program looks names up in it, the man page is made from it. */
#include "cli/command.h"

const struct command *const commands[] = {&cmd_check,      &cmd_plan, &cmd_groups, &cmd_probe,
                                          &cmd_run,        &cmd_ps,   &cmd_logs,   &cmd_stop,
                                          &cmd_completion, NULL};
