/* ray_cluster.h - the live Ray cluster as a snapshot. */
#ifndef CLI_RAY_CLUSTER_H
#define CLI_RAY_CLUSTER_H

#include "cli/command.h"

/* Asks for the nodes; waits until there are as many as the config (may be NULL) wants. To be freed; NULL
 * after telling the report why not. */
char *ray_cluster_ask(const struct invocation *invocation, const struct roost_config *config,
                      struct roost_report *report);

#endif
