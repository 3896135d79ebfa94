/* doors.h - how the processes that watch over others begin: deaf to signals but for a descriptor that tells
 * of them, and what they were handed theirs alone. */
#ifndef SUPERVISE_DOORS_H
#define SUPERVISE_DOORS_H

/* Blocks every signal and keeps the descriptors first .. first + count - 1 from children. The answer is a
 * signalfd of those that ask to end (TERM, INT, HUP, QUIT); -1 with errno. */
int doors_open(int first, int count);

#endif
