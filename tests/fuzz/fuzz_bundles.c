/* fuzz_bundles.c - any bytes as what probes answered: a line a bundle, node id | address | GPU id |
 * visible devices. Whatever they say, the order is total: the same for every order of the input, with
 * every bundle once and the bundles of a node together. */
#include <roost/bundle.h>

#include "tests/fuzz/check.h"

enum { BUNDLES_MAX = 64 };

/* Cuts the next field off at `stop` or the end of the line. */
static char *take_field(char **at, char stop)
{
    char *field = *at, *end = field + strcspn(field, stop == '\n' ? "\n" : "|\n");
    *at = *end == stop ? end + 1 : end;
    if (*end == stop)
        *end = '\0';
    return field;
}

static size_t take_bundles(char *text, struct roost_bundle *out)
{
    size_t count = 0;
    for (; *text && count < BUNDLES_MAX; count++) {
        char *line = take_field(&text, '\n');
        struct roost_bundle *it = &out[count];
        it->index = (int32_t)count;
        it->node_id = take_field(&line, '|');
        it->address = take_field(&line, '|');
        it->gpu_id = take_field(&line, '|');
        it->visible = line;
    }
    return count;
}

static bool is_same_node(const struct roost_bundle *a, const struct roost_bundle *b)
{
    return strcmp(a->node_id, b->node_id) == 0 &&
           (a->node_id[0] || strcmp(a->address, b->address) == 0);
}

static void check_order(const struct roost_order *order, const struct roost_bundle *bundles)
{
    size_t count = roost_order_count(order);
    const int32_t *indices = roost_order_indices(order), *nodes = roost_order_nodes(order);
    bool is_there[BUNDLES_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        CHECK(indices[i] >= 0 && indices[i] < (int32_t)count && !is_there[indices[i]]);
        is_there[indices[i]] = true;
        CHECK(i == 0 ? nodes[i] == 0 : nodes[i] == nodes[i - 1] || nodes[i] == nodes[i - 1] + 1);
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (is_same_node(&bundles[indices[i]], &bundles[indices[k]]))
                CHECK(nodes[i] == nodes[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct roost_bundle bundles[BUNDLES_MAX] = {0}, turned[BUNDLES_MAX];
    struct roost_error err;
    char *text = malloc(size + 1);
    CHECK(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    size_t count = take_bundles(text, bundles);
    struct roost_order *order = roost_order_new(bundles, count, NULL, &err);
    bool is_good = true;
    for (size_t i = 0; i < count; i++)
        is_good &= bundles[i].gpu_id[0] && (bundles[i].node_id[0] || bundles[i].address[0]);
    CHECK((order != NULL) == is_good && (order || err.message[0]));
    if (order)
        check_order(order, bundles);
    for (size_t shift = 0; order && shift < count; shift += 7) {
        for (size_t i = 0; i < count; i++)
            turned[i] = bundles[(shift % 2 ? count - 1 - i : i + shift) % count];
        struct roost_order *other = roost_order_new(turned, count, NULL, &err);
        CHECK(other && memcmp(roost_order_indices(order), roost_order_indices(other),
                              count * sizeof(int32_t)) == 0);
        roost_order_free(other);
    }
    roost_order_free(order);
    free(text);
    return 0;
}
