/* spec_write.h - the commands of a run as the bytes that its supervisor reads. */
#ifndef RUN_SPEC_WRITE_H
#define RUN_SPEC_WRITE_H

#include "agent/digest.h"
#include "command/commands.h"

/* A memory file with everything, or -1 with errno. `ports` are the leased numbers. With `only_node` it
 * has the processes of that node alone, and their ports are counted by themselves. */
int spec_write(const struct commands *commands, const int32_t *ports, const int32_t *only_node);

/* The same for the supervisor of a run on several nodes, which starts no process itself. The file has the
 * names, rules and agents of the processes, and their digests in place of their variables. */
int spec_write_outline(const struct commands *commands, const int32_t *agent_of_node,
                       const struct digest *digests);

/* Fills `out` with the digest of each process of a node, at its place among all processes of the commands. */
void spec_digest(const struct commands *commands, int32_t only_node, struct digest *out);

#endif
