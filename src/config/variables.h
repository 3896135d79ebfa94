/* variables.h - the environment variables that roost gives to every process. */
#ifndef CONFIG_VARIABLES_H
#define CONFIG_VARIABLES_H

#include "base/strview.h"

/* A variable that roost sets itself, so that a user cannot. */
bool is_roost_variable(struct strview name);

#endif
