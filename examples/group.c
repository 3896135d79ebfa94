/* group.c - a driver in C: places four workers on a cluster of eight accelerators, starts them, calls them
 * and reads what each of them answered.
 *
 * Usage:  group PROGRAM [RANK]     PROGRAM is adder; a RANK is killed before the last call
 *         Where roost is not installed, ROOST_PROGRAM names its program:
 *         ROOST_PROGRAM=build/roost build/group build/adder
 * Build:  cc group.c $(pkg-config --cflags --libs roost) -o group */
#include <inttypes.h>
#include <roost/roost.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static int complain(const struct roost_error *err)
{
    fprintf(stderr, "%s%s%s\n", err->message, *err->hint ? "\n  = " : "", err->hint);
    return roost_code_exit(err->code);
}

static void print_outcome(struct roost_outcome outcome)
{
    int64_t number;
    printf("  rank %" PRId32 ": %s", outcome.rank, roost_outcome_word(outcome.kind));
    if (outcome.kind == ROOST_OUTCOME_VALUE && outcome.bytes.len == sizeof number) {
        memcpy(&number, outcome.bytes.at, sizeof number);
        printf(" %" PRId64, number);
    } else if (outcome.kind == ROOST_OUTCOME_ERROR) {
        printf(": %.*s", (int)outcome.bytes.len, (const char *)outcome.bytes.at);
    } else if (*outcome.why) {
        printf(": %s", outcome.why);
    }
    printf("\n");
}

static int call(struct roost_group *group, const char *method, int64_t number, const int32_t *ranks,
                size_t rank_count)
{
    struct roost_error err;
    struct roost_bytes bytes = {&number, sizeof number};
    struct roost_call_options options = {.method = method,
                                         .bytes = &bytes,
                                         .byte_count = 1,
                                         .ranks = ranks,
                                         .rank_count = rank_count};
    struct roost_call *it = roost_group_call(group, &options, &err);
    if (!it)
        return complain(&err);
    (void)roost_call_wait(it, -1);
    printf("%s(%" PRId64 "):\n", method, number);
    for (size_t i = 0; i < roost_call_count(it); i++)
        print_outcome(roost_call_outcome(it, i));
    roost_call_free(it);
    return 0;
}

static int use(struct roost_group *group, int32_t victim)
{
    struct roost_error err;
    int status = call(group, "add", 100, NULL, 0);
    if (status == 0)
        status = call(group, "fail", 0, (const int32_t[]){2, 0}, 2);
    if (status || victim < 0)
        return status;
    if (roost_group_signal(group, victim, SIGKILL, &err) != ROOST_OK)
        return complain(&err);
    while (roost_group_rank(group, victim).state != ROOST_RANK_ENDED)
        roost_group_pump(group);
    return call(group, "add", 200, NULL, 0);
}

int main(int argc, char **argv)
{
    struct roost_error err;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: group PROGRAM [RANK]\n");
        return 2;
    }
    struct roost_cluster_options where = {.text = "1x8"};
    struct roost_cluster *cluster = roost_cluster_new(&where, NULL, &err);
    struct roost_packed packed = {.start = 0, .end = 7, .per_process = 2, .stride = 1};
    struct roost_plan *plan =
        cluster ? roost_plan_new_packed(cluster, &(struct roost_scope){0}, &packed, &err) : NULL;
    struct roost_run_options options = {
        .cluster = cluster,
        .single = {.placed = plan ? roost_plan_component(plan, 0) : NULL, .name = "adder"},
        .command = (const char *const[]){argv[1]},
        .command_count = 1,
        .env = (const char *const *)environ,
        .program = getenv("ROOST_PROGRAM")};
    struct roost_group *group = plan ? roost_group_start(&options, NULL, &err) : NULL;
    int status = 0;
    if (!group || roost_group_wait_ready(group, 30000, NULL, &err) != ROOST_OK)
        status = complain(&err);
    else
        status = use(group, argc == 3 ? (int32_t)strtol(argv[2], NULL, 10) : -1);
    roost_group_free(group);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    return status;
}
