/* oom.h - out of memory: how often the kernel has killed for it, and which processes it should kill last.
 * The kernel counts its kills but does not tell which process it killed. */
#ifndef SUPERVISE_OOM_H
#define SUPERVISE_OOM_H

#include <stdint.h>

/* How often the kernel has killed in the control group that is open as `cgroup_dir` (-1 = none). If the
 * kernel does not count that, the number for the whole machine, from `proc`, the directory that is mounted
 * as /proc. -1 = neither is counted. */
int64_t oom_count(int cgroup_dir, const char *proc);

enum { OOM_SCORE_MAX = 16 };

/* Makes the kernel kill this process, and its forks, last, as far as this user may: by oom_score_adj.
 * `out` gets the earlier text; "" = it was not changed. */
void oom_spare(char out[OOM_SCORE_MAX]);

#endif
