/* ray_cluster.c - options and config -> what roost._ray_probe is asked. */
#include "cli/ray_cluster.h"

#include <stdio.h>

#include "launch/ray/ask.h"

char *ray_cluster_ask(const struct invocation *invocation, const struct roost_config *config,
                      struct roost_report *report)
{
    struct diag diag = diag_start(report, NULL);
    char count[16] = "0";
    const char *address = config ? roost_config_ray_address(config) : NULL;
    if (config)
        snprintf(count, sizeof count, "%d", (int)roost_config_num_nodes(config));
    const char *words[6] = {"--num-nodes", count};
    size_t used = 2;
    if (address) {
        words[used++] = "--address";
        words[used++] = address;
    }
    if (invocation->command == &cmd_run) /* whose bridge warns of what it finds itself */
        words[used++] = "--for-run";
    struct ray_question question = {.python = invocation_env(invocation, "ROOST_PYTHON"),
                                    .module = "roost._ray_probe",
                                    .words = words,
                                    .env = (const char *const *)invocation->env};
    return ray_ask(&question, &diag);
}
