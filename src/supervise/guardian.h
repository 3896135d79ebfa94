/* guardian.h - the process above a supervisor or an agent. When that process ends, however it ends, the
 * guardian ends everything that is left of it. */
#ifndef SUPERVISE_GUARDIAN_H
#define SUPERVISE_GUARDIAN_H

#include "base/diag.h"
#include "supervise/cgroup.h"
#include "supervise/spawn.h"

/* The process that a guardian forks and watches. */
struct guarded {
    /* Its main function; `guardian` is a pidfd. Returns its exit status. */
    int (*main)(int guardian, struct cgroup *cgroup);

    /* Called in the guardian when nothing of the process is left. `is_killed`: it did not come to its own
     * end. */
    void (*clean)(bool is_killed);

    /* The process that starts the guardian may kill its own children when it ends. A detached guardian is
     * not one of them: it forks once more first. */
    bool is_detached;

    /* The guardian keeps the socket open until it ends itself, so that the other end sees it close when
     * nothing is left. Otherwise the socket closes with the watched process. */
    bool keeps_socket;
};

/* Runs as the guardian of `name`; returns the process's exit status. The descriptors that it finds open
 * (messages.h) are its only input. */
int guardian_run(const struct guarded *guarded, const char *name, bool wants_cgroup);

/* Reports, in the process that tried to start it, why `program` did not become a guardian. `cure` is the hint
 * for a program that cannot be executed. */
void guardian_report_start(struct diag *diag, const char *program, const struct spawned *spawned,
                           const char *cure);

#endif
