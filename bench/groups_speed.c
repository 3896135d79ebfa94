/* groups_speed.c - what do 100,000 slots cost, laid out and sorted, and do they grow as n log n?
 *
 * Cost is measured against qsort of as many records with memcmp, the least that any order costs, on
 * bundles in random order: the records are what slime sorts, an address and a GPU, as 16 bytes.
 * Growth is measured on bundles as Ray gives them, nodes in any order and neighbours mixed. In random
 * order it is the machine's caches that grow short, for qsort too: there it is measured against the
 * growth of qsort. Eight bundles to a node, each with the node's id, its
 * address and a number. Rounds are interleaved, and the time is the processor's: a busy machine would
 * take turns away from the long rounds only. Prints one JSON object. */
#include <malloc.h>
#include <roost/roost.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { ROUNDS = 31, PER_NODE = 8, SLOTS = 100000, FEW = SLOTS / 10, WINDOW = 64 };

static const double COST_TARGET = 5.0, GROWTH_TARGET = 13.0, RANDOM_TARGET = 1.5;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct record {
    unsigned char bytes[16];
};

/* Bundles and records of the same nodes, in the same shuffled order. */
struct subject {
    int count;
    struct roost_bundle *bundles;
    struct record *records, *scratch;
    struct answer {
        char node_id[41], address[16], gpu_id[7];
    } *answers;
    struct roost_config *config;
};

static void fail(const char *why)
{
    fprintf(stderr, "groups_speed: %s\n", why);
    exit(2);
}

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void shuffle(int *list, int count, unsigned seed)
{
    unsigned state = seed;
    for (int i = count - 1; i > 0; i--) {
        int k = (int)(next_random(&state) % (unsigned)(i + 1)), kept = list[i];
        list[i] = list[k];
        list[k] = kept;
    }
}

/* Bundle i is on place order[i]: nodes in any order, and bundles mixed within `window` of them. */
static void mix(int *order, int *nodes, int count, int window)
{
    for (int i = 0; i < count / PER_NODE; i++)
        nodes[i] = i;
    shuffle(nodes, count / PER_NODE, 1);
    for (int i = 0; i < count; i++)
        order[i] = nodes[i / PER_NODE] * PER_NODE + i % PER_NODE;
    for (int i = 0; i < count; i += window)
        shuffle(order + i, count - i < window ? count - i : window, (unsigned)i + 2);
}

static struct roost_config *config_new(int slots)
{
    struct roost_error err;
    char text[256];
    snprintf(text, sizeof text,
             "roost: {groups: {debug_rollout_only: true, rollout_num_gpus: %d, port_base: 1024}}",
             slots);
    struct roost_config_options wanted = {.path = "bench.yaml",
                                          .text = text,
                                          .text_len = strlen(text),
                                          .takes_placement_groups_alone = true};
    struct roost_config *config = roost_config_load(&wanted, NULL, &err);
    if (!config)
        fail(err.message);
    return config;
}

static struct subject subject_new(int count, int window)
{
    size_t room = (size_t)count;
    struct subject it = {.count = count,
                         .bundles = calloc(room, sizeof *it.bundles),
                         .records = calloc(room, sizeof *it.records),
                         .scratch = calloc(room, sizeof *it.scratch),
                         .answers = calloc(room, sizeof *it.answers),
                         .config = config_new(count)};
    int *order = calloc(room, sizeof *order), *nodes = calloc(room, sizeof *nodes);
    if (!it.bundles || !it.records || !it.scratch || !it.answers || !order || !nodes)
        fail("out of memory");
    mix(order, nodes, count, window);
    for (int i = 0; i < count; i++) {
        unsigned node = (unsigned)(order[i] / PER_NODE), gpu = (unsigned)(order[i] % PER_NODE);
        unsigned char bytes[16] = {[8] = 10,
                                   (unsigned char)(node >> 16),
                                   (unsigned char)(node >> 8),
                                   (unsigned char)node,
                                   0,
                                   0,
                                   0,
                                   (unsigned char)gpu};
        memcpy(it.records[i].bytes, bytes, sizeof bytes);
        struct answer *answer = &it.answers[i];
        snprintf(answer->node_id, sizeof answer->node_id, "%08x%032x", node * 2654435761u, node);
        snprintf(answer->address, sizeof answer->address, "10.%u.%u.%u", node >> 16 & 255,
                 node >> 8 & 255, node & 255);
        snprintf(answer->gpu_id, sizeof answer->gpu_id, "%u", gpu);
        it.bundles[i] = (struct roost_bundle){.index = i,
                                              .node_id = answer->node_id,
                                              .address = answer->address,
                                              .gpu_id = answer->gpu_id};
    }
    free(order);
    free(nodes);
    return it;
}

static void subject_free(struct subject *it)
{
    roost_config_free(it->config);
    free(it->bundles);
    free(it->records);
    free(it->scratch);
    free(it->answers);
}

/* Seconds for an order and a layout, from nothing to nothing. */
static double time_groups(const struct subject *it)
{
    struct roost_error err;
    double start = cpu_seconds();
    struct roost_order *order = roost_order_new(it->bundles, (size_t)it->count, NULL, &err);
    if (!order)
        fail(err.message);
    struct roost_bundles *bundles = roost_bundles_new(it->config, NULL, NULL, NULL, &err);
    if (!bundles)
        fail(err.message);
    bool is_right = roost_order_nodes(order)[it->count - 1] == (it->count - 1) / PER_NODE &&
                    roost_bundles_layout(bundles)->engines.part_count == it->count;
    roost_order_free(order);
    roost_bundles_free(bundles);
    double seconds = cpu_seconds() - start;
    if (!is_right)
        fail("not the order that was asked for");
    return seconds;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct record));
}

static double time_qsort(struct subject *it)
{
    memcpy(it->scratch, it->records, (size_t)it->count * sizeof *it->scratch);
    double start = cpu_seconds();
    qsort(it->scratch, (size_t)it->count, sizeof *it->scratch, by_bytes);
    return cpu_seconds() - start;
}

int main(void)
{
    /* Memory is kept between rounds: small arrays never leave malloc, and large ones would be
     * measured with the kernel's work of clearing pages. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    struct subject mixed = subject_new(SLOTS, SLOTS), mixed_few = subject_new(FEW, FEW);
    struct subject large = subject_new(SLOTS, WINDOW), small = subject_new(FEW, WINDOW);
    double groups[ROUNDS], sorted[ROUNDS], whole[ROUNDS], tenth[ROUNDS];
    double groups_few[ROUNDS], sorted_few[ROUNDS];
    for (int round = -2; round < ROUNDS; round++) { /* two to warm up */
        int at = round < 0 ? 0 : round;
        groups[at] = time_groups(&mixed);
        sorted[at] = time_qsort(&mixed);
        whole[at] = time_groups(&large);
        tenth[at] = time_groups(&small);
        groups_few[at] = time_groups(&mixed_few);
        sorted_few[at] = time_qsort(&mixed_few);
    }
    subject_free(&mixed);
    subject_free(&mixed_few);
    subject_free(&large);
    subject_free(&small);
    double groups_s = median(groups, ROUNDS), sorted_s = median(sorted, ROUNDS);
    double whole_s = median(whole, ROUNDS), tenth_s = median(tenth, ROUNDS);
    double cost = groups_s / sorted_s, growth = whole_s / tenth_s;
    double random = groups_s / median(groups_few, ROUNDS) / (sorted_s / median(sorted_few, ROUNDS));
    bool is_cheap = cost <= COST_TARGET, is_even = growth <= GROWTH_TARGET;
    bool is_random_even = random <= RANDOM_TARGET;
    printf("{\"bench\": \"groups_speed\", \"slots\": %d, \"rounds\": %d,\n"
           " \"groups_ms\": %.3f, \"qsort_ms\": %.3f, \"whole_ms\": %.3f, \"tenth_ms\": %.3f,\n"
           " \"measures\": [\n"
           "  {\"name\": \"100,000 slots / qsort\", \"value\": %.2f, \"target\": %.0f, "
           "\"at_most\": true, \"ok\": %s},\n"
           "  {\"name\": \"10 times the slots\", \"value\": %.2f, \"target\": %.0f, "
           "\"at_most\": true, \"ok\": %s},\n"
           "  {\"name\": \"10 times the slots in random order / qsort's growth\", \"value\": %.2f, "
           "\"target\": %.1f, \"at_most\": true, \"ok\": %s}],\n"
           " \"ok\": %s}\n",
           SLOTS, ROUNDS, groups_s * 1e3, sorted_s * 1e3, whole_s * 1e3, tenth_s * 1e3, cost,
           COST_TARGET, is_cheap ? "true" : "false", growth, GROWTH_TARGET,
           is_even ? "true" : "false", random, RANDOM_TARGET, is_random_even ? "true" : "false",
           is_cheap && is_even && is_random_even ? "true" : "false");
    return 0;
}
