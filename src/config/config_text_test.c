/* config_text_test.c - the text of a config reads the same as the config did. */
#include "config/config.h"
#include "tests/unit.h"

static const char plain[] = "cluster:\n"
                            "  num_nodes: 1 # of one\n"
                            "  component_placement: {actor: 0}\n";

static struct roost_config *load(const char *text, size_t len, const char *const *overrides,
                                 size_t count)
{
    struct roost_config_options options = {.path = "c",
                                           .text = text,
                                           .text_len = len,
                                           .overrides = overrides,
                                           .override_count = count};
    return roost_config_load(&options, NULL, NULL);
}

TEST(a_config_with_nothing_over_it_is_its_own_text)
{
    struct text text = TEXT_INIT;
    struct roost_config *config = load(plain, sizeof plain - 1, NULL, 0);
    assert_true(config_put_text(config, &text));
    assert_string_equal(text_string(&text), plain);
    text_release(&text);
    roost_config_free(config);
}

TEST(overrides_are_in_the_text_and_types_stay_what_they_were)
{
    static const char *const overrides[] = {
        "cluster.num_nodes=2", "cluster.node_groups=[{label: late, node_ranks: '0,1'}]",
        ("+other={\"a: b\": '# \"no\" comment', n: null, none: , f: 0.5, yes: true, time: '1:0', "
         "quoted: '7', far: '${cluster.num_nodes}', list: [1, [], {}]}")};
    struct text text = TEXT_INIT, again = TEXT_INIT;
    struct roost_config *config = load(plain, sizeof plain - 1, overrides, 3);
    assert_true(config_put_text(config, &text));
    assert_string_equal(text_string(&text),
                        "{\"cluster\": {\"num_nodes\": 2,\n"
                        "\"component_placement\": {\"actor\": 0},\n"
                        "\"node_groups\": [{\"label\": \"late\",\n"
                        "\"node_ranks\": \"0,1\"}]},\n"
                        "\"other\": {\"a: b\": \"# \\\"no\\\" comment\",\n"
                        "\"n\": null,\n\"none\": null,\n\"f\": 0.5,\n\"yes\": true,\n"
                        "\"time\": \"1:0\",\n\"quoted\": \"7\",\n"
                        "\"far\": \"${cluster.num_nodes}\",\n"
                        "\"list\": [1,\n[],\n{}]}}");
    struct roost_config *copy = load(text.bytes, text.len, NULL, 0);
    assert_non_null(copy);
    assert_int_equal(roost_config_num_nodes(copy), 2);
    assert_int_equal(roost_config_node_group_count(copy), 1);
    copy->is_layered = true;
    assert_true(config_put_text(copy, &again));
    assert_string_equal(text_string(&again), text_string(&text));
    text_release(&text);
    text_release(&again);
    roost_config_free(copy);
    roost_config_free(config);
}

TEST(aliases_that_would_be_a_large_text_are_refused)
{
    static const char *const override[] = {"cluster.num_nodes=2"};
    struct text bomb = TEXT_INIT, text = TEXT_INIT;
    text_puts(&bomb, plain);
    text_puts(&bomb, "a0: &a0 [");
    text_repeat(&bomb, 'x', 30000);
    text_puts(&bomb, "]\n");
    for (int i = 1; i < 8; i++)
        text_printf(&bomb, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
    struct roost_config *config = load(bomb.bytes, bomb.len, override, 1);
    assert_non_null(config);
    assert_false(config_put_text(config, &text));
    assert_true(text.len < 2 * CONFIG_BYTES_MAX);
    text_release(&bomb);
    text_release(&text);
    roost_config_free(config);
}

RUN_TESTS(cmocka_unit_test(a_config_with_nothing_over_it_is_its_own_text),
          cmocka_unit_test(overrides_are_in_the_text_and_types_stay_what_they_were),
          cmocka_unit_test(aliases_that_would_be_a_large_text_are_refused))
