/* start_cost.c - how long a run takes that a program of so many megabytes starts: its memory must not
 * matter. Usage: start_cost MEGABYTES CONFIG ROOST     prints seconds, from the start to the end */
#include <roost/roost.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

extern char **environ;

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    size_t size = (size_t)strtol(argv[1], NULL, 10) << 20;
    char *memory = malloc(size + 1);
    if (!memory)
        return 2;
    memset(memory, 1, size + 1);
    struct roost_error err = {0};
    struct roost_config_options reading = {.path = argv[2]};
    struct roost_config *config = roost_config_load(&reading, NULL, &err);
    struct roost_cluster_options choice = {.config = config};
    struct roost_cluster *cluster = config ? roost_cluster_new(&choice, NULL, &err) : NULL;
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, NULL, NULL, &err) : NULL;
    struct roost_run_options options = {.config = config,
                                        .cluster = cluster,
                                        .plan = plan,
                                        .env = (const char *const *)environ,
                                        .program = argv[3]};
    struct roost_event event;
    double start = now_seconds();
    struct roost_run *run = plan ? roost_run_start(&options, NULL, &err) : NULL;
    while (run && roost_run_next(run, -1, &event))
        continue;
    int status = run ? roost_run_status(run, NULL) : 1;
    double seconds = now_seconds() - start;
    roost_run_free(run);
    if (status)
        fprintf(stderr, "start_cost: %s\n", err.message);
    else
        printf("%.6f %d\n", seconds, memory[size]);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    free(memory);
    return status;
}
