/* spec_write.h - the commands of a run as the bytes that its supervisor reads. */
#ifndef LAUNCH_LOCAL_SPEC_WRITE_H
#define LAUNCH_LOCAL_SPEC_WRITE_H

#include "launch/commands.h"

/* A memory file with everything, or -1 with errno. `ports` are the leased numbers. With `only_node` it
 * has the processes of that node alone, and their ports are counted by themselves. */
int spec_write(const struct commands *commands, const int32_t *ports, const int32_t *only_node);

/* The same for the supervisor of a run on several nodes, which starts none of them: their names, their
 * rules and their parts, by node. */
int spec_write_outline(const struct commands *commands, const int32_t *part_of_node);

#endif
