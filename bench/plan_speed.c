/* plan_speed.c - what does planning a million processes cost, and does it grow linearly?
 *
 * Measured against a plain loop that allocates and fills arrays of the same number and sizes as the
 * plan's columns: the least that any planner with these columns has to do. Rounds are interleaved so
 * that a busy machine slows both alike, and every round gets fresh pages, as a program that plans
 * once does. Prints one JSON object. */
#include <malloc.h>
#include <roost/roost.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { ROUNDS = 21, PER_NODE = 8, LARGE_NODES = 131072, SMALL_NODES = 13108 };
enum { LARGE = LARGE_NODES * PER_NODE, SMALL = LARGE / 10 };

static const double COST_TARGET = 5.0, GROWTH_TARGET = 12.0;

/* A config and its cluster, ready to be planned again and again. */
struct subject {
    struct roost_config *config;
    struct roost_cluster *cluster;
};

static void fail(const struct roost_error *err)
{
    fprintf(stderr, "plan_speed: %s\n", err->message);
    exit(2);
}

static struct subject subject_new(int nodes, const char *ranks)
{
    struct roost_error err;
    char text[256], spec[64];
    snprintf(text, sizeof text,
             "cluster:\n  num_nodes: %d\n  component_placement:\n    actor: %s\n", nodes, ranks);
    snprintf(spec, sizeof spec, "%dx%d", nodes, PER_NODE);
    struct roost_config_options wanted = {
        .path = "bench.yaml", .text = text, .text_len = strlen(text)};
    struct subject subject = {.config = roost_config_load(&wanted, NULL, &err)};
    if (!subject.config)
        fail(&err);
    struct roost_cluster_options options = {.text = spec, .config = subject.config};
    subject.cluster = roost_cluster_new(&options, NULL, &err);
    if (!subject.cluster)
        fail(&err);
    return subject;
}

static void subject_free(struct subject *subject)
{
    roost_cluster_free(subject->cluster);
    roost_config_free(subject->config);
}

/* Seconds for a plan from nothing to nothing. */
static double time_plan(const struct subject *subject, int32_t processes)
{
    struct roost_error err;
    double start = now_seconds();
    struct roost_plan *plan = roost_plan_new(subject->config, subject->cluster, NULL, NULL, &err);
    if (!plan)
        fail(&err);
    bool is_right = roost_plan_component(plan, 0)->world_size == processes;
    roost_plan_free(plan);
    double seconds = now_seconds() - start;
    if (!is_right) {
        fprintf(stderr, "plan_speed: not the plan that was asked for\n");
        exit(2);
    }
    return seconds;
}

/* The columns of an isolated component: eight of int32_t (one is longer by one) and one of bytes. */
static double time_loop(int32_t processes)
{
    enum { WIDE = 8 };
    size_t count = (size_t)processes;
    int32_t *wide[WIDE];
    double start = now_seconds();
    for (int i = 0; i < WIDE; i++)
        wide[i] = malloc((count + (i == 0)) * sizeof **wide);
    uint8_t *bytes = malloc(count);
    for (int i = 0; i < WIDE; i++)
        if (!wide[i] || !bytes)
            exit(2);
    for (int i = 0; i < WIDE; i++)
        for (int32_t p = 0; p < processes; p++)
            wide[i][p] = p;
    wide[0][processes] = processes;
    for (int32_t p = 0; p < processes; p++)
        bytes[p] = (uint8_t)p;
    /* The arrays escape, so that the compiler cannot leave the loops out. */
    __asm__ volatile("" : : "r"(wide), "r"(bytes) : "memory");
    for (int i = 0; i < WIDE; i++)
        free(wide[i]);
    free(bytes);
    return now_seconds() - start;
}

int main(void)
{
    /* A fixed threshold: otherwise malloc learns to keep pages, and rounds after the first are no
     * longer what a program sees that plans once. */
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    char ranks[32];
    snprintf(ranks, sizeof ranks, "0-%d", SMALL - 1);
    struct subject large = subject_new(LARGE_NODES, "all");
    struct subject small = subject_new(SMALL_NODES, ranks);
    double plan[ROUNDS], loop[ROUNDS], tenth[ROUNDS];
    for (int round = -2; round < ROUNDS; round++) { /* two to warm up */
        int at = round < 0 ? 0 : round;
        plan[at] = time_plan(&large, LARGE);
        loop[at] = time_loop(LARGE);
        tenth[at] = time_plan(&small, SMALL);
    }
    subject_free(&large);
    subject_free(&small);
    double plan_s = median(plan, ROUNDS), loop_s = median(loop, ROUNDS);
    double tenth_s = median(tenth, ROUNDS);
    double cost = plan_s / loop_s, growth = plan_s / tenth_s;
    printf("{\"bench\": \"plan_speed\", \"processes\": %d, \"nodes\": %d, \"rounds\": %d,\n"
           " \"plan_ms\": %.3f, \"loop_ms\": %.3f, \"tenth_ms\": %.3f,\n"
           " \"measures\": [\n"
           "  {\"name\": \"planning / plain loop\", \"value\": %.2f, \"target\": %.0f, "
           "\"at_most\": true, \"ok\": %s},\n"
           "  {\"name\": \"10 times the processes\", \"value\": %.2f, \"target\": %.0f, "
           "\"at_most\": true, \"ok\": %s}],\n"
           " \"ok\": %s}\n",
           LARGE, LARGE_NODES, ROUNDS, plan_s * 1e3, loop_s * 1e3, tenth_s * 1e3, cost, COST_TARGET,
           cost <= COST_TARGET ? "true" : "false", growth, GROWTH_TARGET,
           growth <= GROWTH_TARGET ? "true" : "false",
           cost <= COST_TARGET && growth <= GROWTH_TARGET ? "true" : "false");
    return 0;
}
