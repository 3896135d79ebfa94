/* proc.h - what the kernel tells of this process, and of others by their numbers. */
#ifndef LAUNCH_LOCAL_PROC_H
#define LAUNCH_LOCAL_PROC_H

#include <stdint.h>

struct proc_stat {
    char state; /* the letter of /proc/PID/stat: T and t are stopped, D waits deep in the kernel */
    int32_t parent; /* its pid */
};

/* How many descriptors this process has open; -1 when that cannot be known. */
int32_t proc_open_files(void);

/* '?' and -1 when there is no such process. */
struct proc_stat proc_stat(int32_t pid);

#endif
