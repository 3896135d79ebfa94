/* interfaces.h - which network interfaces the collective libraries of a process use.
 *
 * RLINF_COMM_NET_DEVICES names them once. roost copies it to the variable that gloo reads and to the one for
 * the node's accelerators, unless the caller, env_configs or roost.launch sets that variable. */
#ifndef COMMAND_INTERFACES_H
#define COMMAND_INTERFACES_H

#include "command/commands.h"

#define INTERFACES_SOURCE "RLINF_COMM_NET_DEVICES"

enum { INTERFACES_EACH = 2 };

/* The variables of a process on a node with accelerators of this type, index 0 or 1; NULL = there is none. */
const char *interface_variable(enum roost_accelerator type, int index);

/* Warns, once per variable, when one is set to another value, which roost keeps. Call it when the
 * environments of the components are known. */
void interfaces_check(const struct commands *commands, struct diag *diag);

#endif
