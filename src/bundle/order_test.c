/* order_test.c - the same bundles in any order give the same order. */
#include <roost/bundle.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "bundle/gpu_id.h"
#include "tests/unit.h"

/* Sorts the bundles, turned and reversed in every way, and shows their indices, or the error. */
static void order(const struct roost_bundle *given, size_t count,
                  const struct roost_order_options *options, struct text *out)
{
    struct text first = TEXT_INIT;
    for (size_t turn = 0; turn < 2 * count || turn == 0; turn++) {
        struct roost_bundle turned[16];
        struct roost_error err;
        for (size_t i = 0; i < count; i++) {
            size_t at = (i + turn / 2) % count;
            turned[i] = given[turn % 2 ? count - 1 - at : at];
        }
        struct roost_order *it = roost_order_new(turned, count, options, &err);
        out->len = 0;
        if (!it)
            text_printf(out, "%s", err.message);
        for (size_t i = 0; it && i < count; i++)
            text_printf(out, "%s%d", i ? " " : "", (int)roost_order_indices(it)[i]);
        if (turn == 0)
            text_puts(&first, text_string(out));
        if (it)
            assert_string_equal(text_string(out), text_string(&first));
        roost_order_free(it);
    }
    text_release(&first);
}

TEST(nodes_come_by_kind_and_value_and_stay_together)
{
    static const struct roost_bundle bundles[] = {
        {0, "a", "10.0.0.10", "0", NULL}, {1, "b", "10.0.0.9", "1", NULL},
        {2, "b", "10.0.0.9", "0", NULL},  {3, "c", "fd00::10", "0", NULL},
        {4, "d", "[fd00::9]", "0", NULL}, {5, "e", "gpu10", "0", NULL},
        {6, "f", "gpu9", "0", NULL},      {7, "g", "::ffff:10.0.0.1", "0", NULL},
        {8, "i", NULL, "0", NULL},        {9, "h", "10.0.0.9", "0", NULL},
        {10, "h", "10.0.0.9", "7", NULL},
    };
    struct text got = TEXT_INIT;
    order(bundles, ROWS(bundles), NULL, &got);
    assert_string_equal(text_string(&got), "7 2 1 9 10 0 4 3 6 5 8");
    text_release(&got);
}

TEST(device_ids_are_numbers_then_listed_then_bytes)
{
    static const struct roost_bundle bundles[] = {
        {0, NULL, "n", "10", NULL},
        {1, NULL, "n", "9", NULL},
        {2, NULL, "n", "-3", NULL},
        {3, NULL, "n", "GPU-a", "GPU-b, GPU-a"},
        {4, NULL, "n", "GPU-b", "GPU-b, GPU-a"},
        {5, NULL, "n", "MIG-1", "GPU-b"},
        {6, NULL, "n", "MIG-0", NULL},
        {7, NULL, "n", "100000000000000000000", NULL},
        {8, NULL, "n", "99999999999999999999", NULL},
        {9, NULL, "n", "-100000000000000000000", NULL},
        {10, NULL, "n", "009", NULL},
    };
    struct text got = TEXT_INIT;
    order(bundles, ROWS(bundles), NULL, &got);
    assert_string_equal(text_string(&got), "9 2 1 10 0 8 7 4 3 6 5");
    text_release(&got);
}

static bool answer(void *ctx, const char *name, char *out, size_t size)
{
    ++*(int *)ctx;
    if (strcmp(name, "lost") == 0)
        return false;
    snprintf(out, size, "%s", strcmp(name, "other") == 0 ? "no address" : "10.0.0.5");
    return true;
}

TEST(names_are_asked_for_once_and_only_when_wanted)
{
    static const struct roost_bundle bundles[] = {
        {0, NULL, "twin-b", "0", NULL},   {1, NULL, "twin-a", "0", NULL},
        {2, NULL, "twin-b", "1", NULL},   {3, NULL, "twin-a", "1", NULL},
        {4, NULL, "lost", "0", NULL},     {5, "x", "lost", "0", NULL},
        {6, NULL, "other", "0", NULL},    {7, NULL, "10.0.0.5", "0", NULL},
        {8, NULL, "10.0.0.6", "0", NULL},
    };
    int asked = 0;
    struct roost_order_options options = {answer, &asked};
    struct roost_resolved found;
    struct roost_order *it = roost_order_new(bundles, ROWS(bundles), &options, NULL);
    assert_non_null(it);
    assert_int_equal(asked, 4);
    assert_int_equal(roost_order_resolved_count(it), 4);
    assert_true(roost_order_resolved(it, 0, &found) && !found.address);
    assert_string_equal(found.name, "lost");
    assert_true(roost_order_resolved(it, 2, &found));
    assert_string_equal(found.address, "10.0.0.5");
    assert_false(roost_order_resolved(it, 4, &found));
    roost_order_free(it);
    struct text got = TEXT_INIT;
    order(bundles, ROWS(bundles), &options, &got);
    assert_string_equal(text_string(&got), "7 1 3 0 2 8 4 5 6");
    asked = 0;
    order(bundles, ROWS(bundles), NULL, &got);
    assert_string_equal(text_string(&got), "7 8 4 5 6 1 3 0 2");
    assert_int_equal(asked, 0);
    text_release(&got);
}

TEST(a_malformed_answer_names_bundle_node_and_value)
{
    static const struct {
        struct roost_bundle bundle;
        const char *message;
    } rows[] = {
        {{-1, "a", "n", "0", NULL},
         "bundle -1 on node 'n' with GPU id '0': a bundle's index cannot be negative"},
        {{1, NULL, NULL, "7", NULL},
         "bundle 1 on node '' with GPU id '7': the probe told neither the node's id nor its "
         "address"},
        {{1, "", "", "7", NULL},
         "bundle 1 on node '' with GPU id '7': the probe told neither the node's id nor its "
         "address"},
        {{1, "id", NULL, NULL, NULL},
         "bundle 1 on node 'id' with GPU id '': the probe told no GPU id"},
        {{1, NULL, "n", "", NULL}, "bundle 1 on node 'n' with GPU id '': the probe told no GPU id"},
        {{0, NULL, "m", "3", NULL},
         "bundle 0 on node 'm' with GPU id '3': another bundle has this index"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_bundle bundles[2] = {{0, NULL, "n", "0", NULL}, rows[i].bundle};
        struct roost_error err;
        assert_null(roost_order_new(bundles, 2, NULL, &err));
        CHECK_TEXT(rows[i].message, err.message, rows[i].message);
        CHECK_FACT(rows[i].message, err.hint[0] && err.code == ROOST_ERR_SCHEMA);
    }
}

TEST(no_bundles_and_many_on_one_node_have_an_order_too)
{
    enum { MANY = 1000 };
    struct roost_bundle *bundles = calloc(MANY, sizeof *bundles);
    char (*ids)[8] = calloc(MANY, sizeof *ids);
    assert_true(bundles && ids);
    for (int i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof *ids, "%d", i * 7 % MANY);
        bundles[i] = (struct roost_bundle){i, "one", "n", ids[i], NULL};
    }
    struct roost_order *it = roost_order_new(bundles, MANY, NULL, NULL);
    assert_non_null(it);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(roost_order_indices(it)[i] * 7 % MANY, i);
    roost_order_free(it);
    it = roost_order_new(bundles, 0, NULL, NULL);
    assert_true(it && roost_order_count(it) == 0);
    roost_order_free(it);
    free(bundles);
    free(ids);
}

RUN_TESTS(cmocka_unit_test(nodes_come_by_kind_and_value_and_stay_together),
          cmocka_unit_test(device_ids_are_numbers_then_listed_then_bytes),
          cmocka_unit_test(names_are_asked_for_once_and_only_when_wanted),
          cmocka_unit_test(a_malformed_answer_names_bundle_node_and_value),
          cmocka_unit_test(no_bundles_and_many_on_one_node_have_an_order_too))
