/* agent_dir.h - the folder on a node where an agent keeps the logs of its workers until they are sent. */
#ifndef AGENT_AGENT_DIR_H
#define AGENT_AGENT_DIR_H

/* Removes the folder of this descriptor with everything in it, as far as possible. Links are removed,
 * never followed. Leaves the descriptor open. */
void agent_dir_remove(int fd);

#endif
