/* oom.h - want of memory: whether the kernel has killed for it, which it says only by counting, and whom it
 * should kill last. */
#ifndef SUPERVISE_OOM_H
#define SUPERVISE_OOM_H

#include <stdint.h>

/* How often it has: in the control group that is open as `cgroup_dir` (-1 = none) where that counts, else
 * on the whole machine, by `proc`, the directory that is mounted as /proc. -1 when nobody tells. */
int64_t oom_count(int cgroup_dir, const char *proc);

enum { OOM_SCORE_MAX = 16 };

/* Lets this process, and those it forks, be killed last, as far as this user may: by oom_score_adj. `out`
 * gets the text that it had before; "" = it was not changed. */
void oom_spare(char out[OOM_SCORE_MAX]);

#endif
