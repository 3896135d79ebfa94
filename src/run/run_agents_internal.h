/* run_agents_internal.h - a run on its way to the nodes of a Ray cluster; shared by run_agents.c (the steps) and
 * run_agents_ports.c (ports of other nodes). */
#ifndef RUN_RUN_PARTS_INTERNAL_H
#define RUN_RUN_PARTS_INTERNAL_H

#include <limits.h>

#include <roost/engine/agent.h>

#include "agent/ray_join.h"
#include "run/run_start.h"

struct agents_start {
    struct run_start *start;
    struct arena *arena;
    int32_t count;
    int32_t *node_of_agent;
    int32_t *agent_of_node; /* -1 = none */
    const char **words;     /* [count + 1]: "node 2 (10.0.0.3)" */
    struct ray_joined joined;
    size_t *taken;          /* [count]: ports that came from the agent */
    int64_t deadline;       /* for the next message of an agent */
    struct digest *digests; /* of all processes: what they are to be executed with */
    char home[PATH_MAX], config_dir[PATH_MAX];
};

/* How long nodes that have come may take to answer: as long as they may take to come, ten seconds at
 * least. */
int64_t agents_answer_ms(const struct run_start *start);

/* The next message of this type, from an agent or the bridge (agent -1); false after reporting why. */
bool agents_expect(struct agents_start *it, int32_t type, struct roost_agent_head *head,
                   const char **out_body, size_t *out_len);

/* A memory file of a text, which it releases; -1 with errno. */
int agents_file_of(struct text *text);

/* --- run_agents_ports.c; each is false after reporting why --- */

/* Sends each agent the setup of the run and the ports that its processes want. */
bool agents_send_setups(struct agents_start *it);

/* Takes the ports that the agents have leased. */
bool agents_take_ports(struct agents_start *it);

/* Reports the agents that have not leased their ports in time; false. */
bool agents_report_late(const struct agents_start *it);

#endif
