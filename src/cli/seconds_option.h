/* seconds_option.h - options that are a number of seconds: --grace, --wait. */
#ifndef CLI_SECONDS_OPTION_H
#define CLI_SECONDS_OPTION_H

#include "cli/command.h"

/* Reads the option, seconds with a fraction, into *out_ms; -1 when it was not given. 0, or an exit
 * status after saying what is wrong. */
int seconds_option(const struct invocation *invocation, const char *name, int32_t *out_ms);

#endif
