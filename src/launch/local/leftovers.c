/* leftovers.c - the guardian's work, with what a bystander has. */
#include "launch/local/leftovers.h"

#include <stdio.h>

#include "launch/local/cgroup.h"
#include "launch/local/sweep.h"

bool leftovers_end(const char *run_id, const char *cgroup, int64_t timeout_ms)
{
    struct cgroup group;
    char token[64];
    bool is_empty = true;
    snprintf(token, sizeof token, "ROOST_RUN_ID=%s", run_id);
    if (cgroup[0] ? cgroup_open(&group, cgroup) : cgroup_find(&group, run_id)) {
        cgroup_kill(&group);
        is_empty = cgroup_remove(&group, timeout_ms);
    }
    (void)sweep_token(token, timeout_ms);
    return is_empty;
}
