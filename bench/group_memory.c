/* group_memory.c - what a driver holds for each of a thousand workers that it can call, on a whole group: its
 * run, its sockets, its logs, its calls.
 *
 * Usage: group_memory ROOST WORKER     the roost program, and build/adder */
#include <roost/roost.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

enum { WORKERS = 1000, CALLS = 20, READY_MS = 120000 };

static const double TARGET = 64; /* kB a worker */

extern char **environ;

static void must(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "group_memory: cannot %s\n", what);
    exit(1);
}

/* Memory that is this process's alone. */
static double own_kb(void)
{
    long size = 0, resident = 0, shared = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    must(file && fscanf(file, "%ld %ld %ld", &size, &resident, &shared) == 3, "read statm");
    fclose(file);
    return (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static void raise_files(void)
{
    struct rlimit files;
    must(getrlimit(RLIMIT_NOFILE, &files) == 0, "read the limit of open files");
    files.rlim_cur = files.rlim_max;
    must(setrlimit(RLIMIT_NOFILE, &files) == 0, "raise the limit of open files");
}

static struct roost_group *start(const struct roost_plan *plan, const struct roost_cluster *cluster,
                                 char **argv)
{
    struct roost_error err = {0};
    struct roost_run_options options = {
        .cluster = cluster,
        .single = {.placed = roost_plan_component(plan, 0), .name = "adder"},
        .command = (const char *const[]){argv[2]},
        .command_count = 1,
        .env = (const char *const *)environ,
        .program = argv[1]};
    struct roost_group *group = roost_group_start(&options, NULL, &err);
    if (!group || roost_group_wait_ready(group, READY_MS, NULL, &err) != ROOST_OK)
        fprintf(stderr, "group_memory: %s\n", err.message);
    must(group && err.code == ROOST_OK, "start the workers");
    return group;
}

static void call_all(struct roost_group *group)
{
    int64_t number = 1;
    struct roost_bytes bytes = {&number, sizeof number};
    struct roost_call_options options = {.method = "add", .bytes = &bytes, .byte_count = 1};
    struct roost_call *call = roost_group_call(group, &options, NULL);
    must(call && roost_call_wait(call, READY_MS), "call the workers");
    for (size_t i = 0; i < roost_call_count(call); i++)
        must(roost_call_outcome(call, i).kind == ROOST_OUTCOME_VALUE, "have every answer");
    roost_call_free(call);
}

int main(int argc, char **argv)
{
    must(argc == 3, "run without two arguments: the roost program, and build/adder");
    raise_files();
    char spec[32];
    snprintf(spec, sizeof spec, "1x%d", WORKERS);
    struct roost_cluster_options where = {.text = spec};
    struct roost_cluster *cluster = roost_cluster_new(&where, NULL, NULL);
    struct roost_packed packed = {.start = 0, .end = WORKERS - 1, .per_process = 1, .stride = 1};
    struct roost_plan *plan =
        cluster ? roost_plan_new_packed(cluster, &(struct roost_scope){0}, &packed, NULL) : NULL;
    must(plan != NULL, "plan the workers");
    double before = own_kb(), began = now_seconds();
    struct roost_group *group = start(plan, cluster, argv);
    double ready = now_seconds() - began;
    for (int i = 0; i < CALLS; i++)
        call_all(group);
    double each = (own_kb() - before) / WORKERS;
    roost_group_free(group);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    const char *ok = each <= TARGET ? "true" : "false";
    printf("{\"bench\": \"group_memory\", \"workers\": %d, \"ready_s\": %.2f, \"measures\": [\n"
           "  {\"name\": \"kB a worker of 1,000\", \"value\": %.2f, \"target\": %.1f, \"at_most\": "
           "true, \"ok\": %s}],\n \"ok\": %s}\n",
           WORKERS, ready, each, TARGET, ok, ok);
    return 0;
}
