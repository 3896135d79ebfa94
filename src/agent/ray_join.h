/* ray_join.h - the first message to the bridge of a run on Ray, and its answer. */
#ifndef AGENT_RAY_JOIN_H
#define AGENT_RAY_JOIN_H

#include "base/text.h"
#include "command/commands.h"

/* What to join, and which nodes and accelerators of it a run is on. Borrowed. */
struct ray_join {
    const char *run_id;
    const struct roost_config *config;
    const struct roost_cluster *cluster;
    const struct commands *commands;
    int32_t wait_ms;     /* for nodes to come */
    struct strview view; /* the managers' view of the cluster, as JSON; empty = only of nodes */
    const int32_t *node_of_agent;
    int32_t agent_count;
};

/* Writes it as JSON. */
void ray_join_put(struct text *out, const struct ray_join *join);

/* What the bridge answers; memory of `arena`. */
struct ray_joined {
    const char *name_space;
    const char *const **env_of_agent; /* what processes there inherit, NULL-terminated */
};

/* Reads the answer for so many agents; false after reporting why. */
bool ray_joined_read(struct ray_joined *out, struct arena *arena, struct strview json,
                     int32_t agent_count, struct diag *diag);

#endif
