/* host_agents.h - the supervisor's host for a run on several nodes (supervise/host.h).
 *
 * The supervisor decides as it does for workers of its own machine. An agent (agent.c) on the worker's node
 * starts it, signals it, sees it end, and looks whether it is ready. Messages go through the bridge
 * (roost/engine/agent.h), which is a child of the supervisor and dies with it. */
#ifndef AGENT_HOST_AGENTS_H
#define AGENT_HOST_AGENTS_H

#include "supervise/host.h"

extern const struct host host_agents;

#endif
