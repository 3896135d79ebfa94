/* oom.h - out of memory: whether the kernel has killed a process for it, which it only counts, and
 * which processes it should kill last. */
#ifndef SUPERVISE_OOM_H
#define SUPERVISE_OOM_H

#include <stdint.h>

/* How often the kernel has killed: in the control group that is open as `cgroup_dir` (-1 = none) where
 * that is counted, else on the whole machine, by `proc`, the directory that is mounted as /proc. -1
 * when it is not counted. */
int64_t oom_count(int cgroup_dir, const char *proc);

enum { OOM_SCORE_MAX = 16 };

/* Makes the kernel kill this process, and its forks, last, as far as this user may: by oom_score_adj.
 * `out` gets the earlier text; "" = it was not changed. */
void oom_spare(char out[OOM_SCORE_MAX]);

#endif
