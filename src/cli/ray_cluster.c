/* ray_cluster.c - options and config -> what roost._ray_probe is asked. */
#include "cli/ray_cluster.h"

#include <stdio.h>

#include "agent/ray_ask.h"
#include "cli/seconds_option.h"
#include "config/config.h"

char *ray_cluster_ask(const struct invocation *invocation, const struct roost_config *config,
                      struct roost_report *report)
{
    struct diag diag = config_diag(config, report, NULL);
    char count[16] = "0";
    const char *address = config ? roost_config_ray_address(config) : NULL;
    if (config)
        snprintf(count, sizeof count, "%d", (int)roost_config_num_nodes(config));
    const char *words[8] = {"--num-nodes", count};
    size_t used = 2;
    int32_t wait;
    char seconds[24];
    if (seconds_option(invocation, "wait", &wait) == 0 && wait >= 0) {
        snprintf(seconds, sizeof seconds, "%d.%03d", wait / 1000, wait % 1000);
        words[used++] = "--timeout";
        words[used++] = seconds;
    }
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
