/* caller.c - calls workers that are being killed, and writes down what became of every call.
 *
 * caller CONFIG CALLS KILLS SEED: the config has one component, which restarts. Each call goes to a few ranks
 * chosen at random; now and then one rank is killed. Prints "asked CALL RANK" for every rank of a call,
 * "told CALL RANK KIND ANSWER" for every outcome and "killed RANK PID" for every kill; the test compares that
 * with what the workers themselves wrote down, and the supervisor recorded. */
#include <inttypes.h>
#include <roost/roost.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { UNDER_WAY = 32, RANKS_MAX = 4, PAYLOAD_MAX = 200 * 1024, SIZE_MOST = 1024 };

struct pending {
    struct roost_call *call;
    int64_t number;
};

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void die(const struct roost_error *err)
{
    fprintf(stderr, "caller: %s\n", err->message);
    exit(1);
}

/* Some calls are large, to be cut in the middle of a frame or to go by shared memory. */
static void start(struct roost_group *group, int64_t number, struct pending *out)
{
    static char filler[PAYLOAD_MAX];
    struct roost_error err;
    int32_t size = roost_group_size(group), ranks[RANKS_MAX];
    size_t count = 0, wanted = 1 + draw(RANKS_MAX);
    while (count < wanted) {
        ranks[count] = (int32_t)draw((uint32_t)size);
        size_t same = 0;
        while (ranks[same] != ranks[count])
            same++;
        count += same == count;
    }
    struct roost_bytes bytes[] = {{&number, sizeof number},
                                  {filler, draw(50) == 0 ? draw(PAYLOAD_MAX) : draw(64)}};
    struct roost_call_options options = {
        .method = "note", .bytes = bytes, .byte_count = 2, .ranks = ranks, .rank_count = count};
    out->number = number;
    for (size_t i = 0; i < count; i++)
        printf("asked %" PRId64 " %" PRId32 "\n", number, ranks[i]);
    out->call = roost_group_call(group, &options, &err);
    if (!out->call)
        die(&err);
}

static void finish(struct pending *pending)
{
    if (!roost_call_wait(pending->call, 60000)) {
        fprintf(stderr, "caller: call %" PRId64 " has no end\n", pending->number);
        exit(1);
    }
    for (size_t i = 0; i < roost_call_count(pending->call); i++) {
        struct roost_outcome outcome = roost_call_outcome(pending->call, i);
        int64_t answer = -1;
        if (outcome.kind == ROOST_OUTCOME_VALUE && outcome.bytes.len == sizeof answer)
            memcpy(&answer, outcome.bytes.at, sizeof answer);
        printf("told %" PRId64 " %" PRId32 " %s %" PRId64 "\n", pending->number, outcome.rank,
               roost_outcome_word(outcome.kind), answer);
    }
    roost_call_free(pending->call);
    pending->call = NULL;
}

/* Kills a life that is there and was not killed before: one between two lives would not hear of it. */
static void kill_one(struct roost_group *group)
{
    static int32_t killed[SIZE_MOST]; /* the last process of each rank that was */
    struct roost_error err;
    for (;;) {
        int32_t rank = (int32_t)draw((uint32_t)roost_group_size(group));
        struct roost_rank_info info = roost_group_rank(group, rank);
        if (info.state != ROOST_RANK_READY || info.pid == killed[rank]) {
            roost_group_pump(group);
            continue;
        }
        killed[rank] = info.pid;
        printf("killed %" PRId32 " %" PRId32 "\n", rank, info.pid);
        if (roost_group_signal(group, rank, SIGKILL, &err) != ROOST_OK)
            die(&err);
        return;
    }
}

static void call_and_kill(struct roost_group *group, int64_t calls, int64_t kills)
{
    struct pending pending[UNDER_WAY] = {0};
    for (int64_t number = 0; number < calls; number++) {
        struct pending *slot = &pending[number % UNDER_WAY];
        if (slot->call)
            finish(slot);
        start(group, number, slot);
        if (kills > 0 && number % (calls / kills) == calls / kills / 2)
            kill_one(group);
    }
    for (int i = 0; i < UNDER_WAY; i++)
        if (pending[i].call)
            finish(&pending[i]);
}

int main(int argc, char **argv)
{
    struct roost_error err;
    if (argc != 5)
        return 2;
    state = strtoull(argv[4], NULL, 10);
    struct roost_config_options where = {.path = argv[1]};
    struct roost_config *config = roost_config_load(&where, NULL, &err);
    struct roost_cluster *cluster =
        config ? roost_cluster_new(&(struct roost_cluster_options){.config = config}, NULL, &err)
               : NULL;
    struct roost_plan *plan = cluster ? roost_plan_new(config, cluster, NULL, NULL, &err) : NULL;
    struct roost_run_options options = {.config = config,
                                        .cluster = cluster,
                                        .plan = plan,
                                        .env = (const char *const *)environ,
                                        .program = getenv("ROOST_PROGRAM")};
    struct roost_group *group = plan ? roost_group_start(&options, NULL, &err) : NULL;
    if (group && roost_group_size(group) > SIZE_MOST)
        return 2;
    if (!group || roost_group_wait_ready(group, 60000, NULL, &err) != ROOST_OK)
        die(&err);
    call_and_kill(group, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10));
    roost_group_free(group);
    roost_plan_free(plan);
    roost_cluster_free(cluster);
    roost_config_free(config);
    return 0;
}
