/* tree_test.c - lookups, nulls and merging of trees. */
#include "config/tree.h"

#include "tests/tree_unit.h"

static struct node *read(struct loaded *loaded, const char *text)
{
    struct node *root =
        yaml_load(&loaded->arena, &loaded->source, sv_from(text), 1, 1, &loaded->diag);
    CHECK_FACT(text, root != NULL);
    return root;
}

static void check_merge(const char *base, const char *over, const char *expected)
{
    struct loaded loaded;
    struct text got = TEXT_INIT, kept = TEXT_INIT;
    load_start(&loaded, SV(""));
    struct node *below = read(&loaded, base);
    put_node(&got, node_merge(&loaded.arena, below, read(&loaded, over)));
    CHECK_TEXT(over, text_string(&got), expected);
    put_node(&kept, below);
    CHECK_TEXT(base, text_string(&kept), base); /* what was merged into is not changed */
    text_release(&kept);
    text_release(&got);
    load_release(&loaded);
}

TEST(merging_goes_key_by_key_and_replaces_all_else)
{
    static const char *const rows[][3] = {
        {"{a: 1}", "{b: 2}", "{a: 1, b: 2}"},
        {"{a: 1, b: 2}", "{a: 3}", "{a: 3, b: 2}"},
        {"{a: {x: 1, y: 2}}", "{a: {y: 3, z: 4}}", "{a: {x: 1, y: 3, z: 4}}"},
        {"{a: {x: {p: 1}}}", "{a: {x: {q: 2}}}", "{a: {x: {p: 1, q: 2}}}"},
        {"{a: {x: 1}}", "{a: 5}", "{a: 5}"},
        {"{a: 5}", "{a: {x: 1}}", "{a: {x: 1}}"},
        {"{a: [1, 2, 3]}", "{a: [9]}", "{a: [9]}"},
        {"{a: {x: 1}}", "{a: {}}", "{a: {x: 1}}"},
        {"{}", "{a: 1}", "{a: 1}"},
        {"5", "{a: 1}", "{a: 1}"},
        {"{a: 1}", "[1]", "[1]"},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_merge(rows[i][0], rows[i][1], rows[i][2]);
}

TEST(merging_onto_nothing_gives_what_is_merged)
{
    struct loaded loaded;
    load_start(&loaded, SV(""));
    struct node *over = read(&loaded, "{a: 1}");
    assert_ptr_equal(node_merge(&loaded.arena, NULL, over), over);
    load_release(&loaded);
}

TEST(children_of_a_merged_mapping_have_it_as_their_parent)
{
    struct loaded loaded;
    load_start(&loaded, SV(""));
    struct node *merged = node_merge(&loaded.arena, read(&loaded, "{a: 1, c: {d: 1}}"),
                                     read(&loaded, "{b: 2, c: {e: 2}}"));
    assert_ptr_equal(node_get(merged, SV("a"))->parent, merged);
    assert_ptr_equal(node_get(merged, SV("b"))->parent, merged);
    struct node *inner = node_get(merged, SV("c"));
    assert_ptr_equal(inner->parent, merged);
    assert_ptr_equal(node_get(inner, SV("d"))->parent, inner);
    assert_ptr_equal(node_get(inner, SV("e"))->parent, inner);
    load_release(&loaded);
}

TEST(a_key_is_found_in_mappings_only)
{
    struct loaded loaded;
    load_start(&loaded, SV(""));
    struct node *root = read(&loaded, "{a: 1, '': 2, l: [a]}");
    assert_true(sv_is(node_get(root, SV("a"))->text, "1"));
    assert_true(sv_is(node_get(root, SV(""))->text, "2"));
    assert_null(node_get(root, SV("b")));
    assert_null(node_get(node_get(root, SV("l")), SV("a")));
    assert_null(node_get(node_get(root, SV("a")), SV("1")));
    assert_null(node_get(NULL, SV("a")));
    load_release(&loaded);
}

TEST(null_is_a_plain_word_or_nothing)
{
    static const struct {
        const char *text;
        bool is_null;
    } rows[] = {
        {"a:", true},        {"a: ~", true},     {"a: null", true},    {"a: Null", true},
        {"a: NULL", true},   {"a: ''", false},   {"a: 'null'", false}, {"a: nULL", false},
        {"a: \"~\"", false}, {"a: none", false}, {"a: []", false},     {"a: {}", false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct loaded loaded;
        load_start(&loaded, SV(""));
        struct node *value = node_get(read(&loaded, rows[i].text), SV("a"));
        CHECK_FACT(rows[i].text, node_is_null(value) == rows[i].is_null);
        load_release(&loaded);
    }
}

TEST(putting_replaces_a_key_or_adds_it_at_the_end)
{
    struct loaded loaded;
    struct text got = TEXT_INIT;
    load_start(&loaded, SV(""));
    struct node *root = read(&loaded, "{a: 1, b: 2}");
    struct node *copy = node_copy_mapping(&loaded.arena, root, 1);
    struct node *value = node_new_scalar(&loaded.arena, root, SV("9"));
    node_put(copy, node_new_scalar(&loaded.arena, root, SV("a")), value);
    node_put(copy, node_new_scalar(&loaded.arena, root, SV("c")), value);
    put_node(&got, copy);
    assert_string_equal(text_string(&got), "{a: '9', b: 2, c: '9'}");
    text_release(&got);
    load_release(&loaded);
}

TEST(a_scalar_is_underlined_up_to_its_first_line_end)
{
    struct loaded loaded;
    load_start(&loaded, SV(""));
    struct node *root = read(&loaded, "a: \"\xc3\xa9t\xc3\xa9\\nmore\"\nb: xyz\nc: {d: 1}\ne: ''");
    assert_int_equal(node_place(node_get(root, SV("a"))).length, 3);
    assert_int_equal(node_place(node_get(root, SV("b"))).length, 3);
    assert_int_equal(node_place(node_get(root, SV("b"))).line, 2);
    assert_int_equal(node_place(node_get(root, SV("b"))).column, 4);
    assert_int_equal(node_place(node_get(root, SV("c"))).length, 1);
    assert_int_equal(node_place(node_get(root, SV("e"))).length, 1);
    load_release(&loaded);
}

RUN_TESTS(cmocka_unit_test(merging_goes_key_by_key_and_replaces_all_else),
          cmocka_unit_test(merging_onto_nothing_gives_what_is_merged),
          cmocka_unit_test(children_of_a_merged_mapping_have_it_as_their_parent),
          cmocka_unit_test(a_key_is_found_in_mappings_only),
          cmocka_unit_test(null_is_a_plain_word_or_nothing),
          cmocka_unit_test(putting_replaces_a_key_or_adds_it_at_the_end),
          cmocka_unit_test(a_scalar_is_underlined_up_to_its_first_line_end))
