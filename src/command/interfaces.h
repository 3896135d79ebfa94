/* interfaces.h - which network interfaces the collective libraries of a process use.
 *
 * RLINF_COMM_NET_DEVICES names them once. It is copied to the variable that gloo reads and to the one of
 * the node's accelerators, unless those are set: by the caller, by env_configs, by roost.launch. */
#ifndef COMMAND_INTERFACES_H
#define COMMAND_INTERFACES_H

#include "command/commands.h"

#define INTERFACES_SOURCE "RLINF_COMM_NET_DEVICES"

enum { INTERFACES_EACH = 2 };

/* The variables of a process on a node with such accelerators, index 0 or 1; NULL = it has none. */
const char *interface_variable(enum roost_accelerator type, int index);

/* Warns, once a variable, where one is set to something else and stays so. After the environments of the
 * components are known. */
void interfaces_check(const struct commands *commands, struct diag *diag);

#endif
