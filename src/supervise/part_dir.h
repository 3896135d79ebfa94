/* part_dir.h - the folder where a part kept the logs of its workers until they were sent. */
#ifndef SUPERVISE_PART_DIR_H
#define SUPERVISE_PART_DIR_H

/* Removes the folder behind this descriptor with everything in it, as far as that can be. Links are
 * removed, never followed. Leaves the descriptor open. */
void part_dir_remove(int fd);

#endif
