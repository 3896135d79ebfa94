/* fuzz_snapshot.c - any bytes, as a snapshot file.
 * A cluster that is accepted agrees with itself, can be placed on, and is read again from the plan
 * document that it is rendered into. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/check.h"

static struct roost_cluster *read_snapshot(const void *bytes, size_t len,
                                           struct roost_report *report)
{
    char path[64];
    int fd = memfd_create("snapshot", MFD_CLOEXEC);
    CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct roost_cluster_options options = {.text = path};
    struct roost_error err;
    struct roost_cluster *cluster = roost_cluster_new(&options, report, &err);
    CHECK((cluster != NULL) == (err.code == ROOST_OK));
    if (report)
        check_report(report, path, (struct strview){bytes, len});
    close(fd);
    return cluster;
}

/* One process on every node, as a document. */
static void render(const struct roost_cluster *cluster, struct text *out)
{
    int32_t count = roost_cluster_node_count(cluster);
    int32_t *nodes = calloc((size_t)count, sizeof *nodes);
    CHECK(nodes);
    for (int32_t n = 0; n < count; n++)
        nodes[n] = n;
    struct roost_plan *plan = roost_plan_new_node(cluster, NULL, nodes, count, NULL);
    CHECK(plan);
    check_component(roost_plan_component(plan, 0), cluster);
    CHECK(roost_render_plan_json(plan, cluster, NULL, keep_bytes, out) == ROOST_OK);
    roost_plan_free(plan);
    free(nodes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct roost_report *report = roost_report_new();
    CHECK(report);
    struct roost_cluster *cluster = read_snapshot(data, size, report);
    if (cluster) {
        struct text first = TEXT_INIT, second = TEXT_INIT;
        int64_t total = 0;
        for (int32_t n = 0; n < roost_cluster_node_count(cluster); n++) {
            struct roost_node node;
            CHECK(roost_cluster_node(cluster, n, &node) && node.node_rank == n);
            CHECK((node.accelerator == ROOST_ACCELERATOR_NONE) == (node.num_accelerators == 0));
            total += node.num_accelerators;
        }
        CHECK(total == roost_cluster_accelerator_count(cluster));
        render(cluster, &first);
        struct roost_cluster *again = read_snapshot(first.bytes, first.len, NULL);
        CHECK(again);
        render(again, &second);
        CHECK(first.len == second.len && memcmp(first.bytes, second.bytes, first.len) == 0);
        text_release(&first);
        text_release(&second);
        roost_cluster_free(again);
    }
    roost_cluster_free(cluster);
    roost_report_free(report);
    return 0;
}
