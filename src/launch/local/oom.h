/* oom.h - whether the kernel has killed for want of memory: it says so only by counting. */
#ifndef LAUNCH_LOCAL_OOM_H
#define LAUNCH_LOCAL_OOM_H

#include <stdint.h>

/* How often it has: in the control group that is open as `cgroup_dir` (-1 = none) where that counts, else
 * on the whole machine, by `proc`, the directory that is mounted as /proc. -1 when nobody tells. */
int64_t oom_count(int cgroup_dir, const char *proc);

#endif
