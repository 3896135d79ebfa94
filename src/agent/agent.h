/* agent.h - an agent: the process that looks after the workers on one node of a run on several nodes. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "supervise/cgroup.h"

/* Serves one run under a guardian (by its pidfd); returns the exit status of the process. */
int agent_main(int guardian, struct cgroup *cgroup);

#endif
