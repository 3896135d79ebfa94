/* leftovers.c - the guardian's work, with what a bystander has. */
#include "supervise/leftovers.h"

#include <poll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "supervise/cgroup.h"
#include "supervise/clock.h"
#include "supervise/proc.h"
#include "supervise/sweep.h"

enum { AGAIN_MS = 500 }; /* whoever stopped it once may do so again */

bool leftovers_end(const char *run_id, const char *cgroup, int64_t timeout_ms)
{
    struct cgroup group;
    bool is_empty = true;
    if (cgroup[0] ? cgroup_open(&group, cgroup) : cgroup_find(&group, run_id)) {
        cgroup_kill(&group);
        is_empty = cgroup_remove(&group, timeout_ms);
    }
    (void)sweep_run(run_id, timeout_ms);
    return cgroup_end_agents(run_id, cgroup, timeout_ms) && is_empty;
}

bool leftovers_await(int pidfd, int32_t pid, int64_t deadline)
{
    struct pollfd fd = {pidfd, POLLIN, 0};
    while (pidfd >= 0) {
        proc_continue(pidfd, pid);
        int64_t left = deadline - clock_ms();
        int result = poll(&fd, 1, left < 0 ? 0 : left < AGAIN_MS ? (int)left : AGAIN_MS);
        if (result > 0)
            break;
        if (result == 0 && left <= 0)
            return false;
    }
    return true;
}

bool leftovers_wake(const char *run_id, int32_t guardian, int32_t supervisor, int64_t timeout_ms)
{
    int pidfd = guardian > 1 ? pidfd_open(guardian, 0) : -1;
    if (pidfd < 0)
        return false;
    bool is_ended = false;
    if (proc_is_guardian(guardian, run_id)) {
        proc_continue(pidfd, guardian);
        struct proc_stat stat = proc_stat(supervisor);
        bool is_alone = stat.parent != guardian || stat.state == 'Z';
        is_ended = is_alone && leftovers_await(pidfd, guardian, clock_ms() + timeout_ms);
    }
    close(pidfd);
    return is_ended;
}
