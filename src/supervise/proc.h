/* proc.h - what the kernel knows about this process, and about others by their pids. */
#ifndef SUPERVISE_PROC_H
#define SUPERVISE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proc_stat {
    char state; /* the letter of /proc/PID/stat: T and t = stopped, D = waits inside the kernel */
    int32_t parent; /* its pid */
};

enum { PROC_WORDS_MAX = 160 };

/* How many descriptors this process has open; -1 when that cannot be known. */
int32_t proc_open_files(void);

/* '?' and -1 when there is no such process. */
struct proc_stat proc_stat(int32_t pid);

/* Continues the process of the pidfd if it is stopped. A process that is not stopped gets no signal: it may
 * be ending, and the signal could confuse a debugger or a sanitizer that inspects it then. */
void proc_continue(int pidfd, int32_t pid);

/* The first words of its command line, each ended by a NUL, and one more NUL after the last. Returns their
 * length, 0 when they cannot be read. */
size_t proc_words(int32_t pid, char out[PROC_WORDS_MAX]);

/* Whether the process is a guardian: `roost --guardian NAME ...`. Its supervisor has the same words. */
bool proc_is_guardian(int32_t pid, const char *name);

/* Whether it is the guardian of an agent of the run, or that agent: NAME is "<run id>.<node rank>". */
bool proc_is_agent(int32_t pid, const char *run_id);

#endif
