/* override_test.c - key=value on top of a tree. */
#include "config/override.h"

#include "tests/tree_unit.h"

static struct node *apply_words(struct loaded *loaded, const char *const *words, size_t count)
{
    struct overrides overrides;
    if (!overrides_init(&overrides, &loaded->arena, words, count, &loaded->diag))
        return NULL;
    return overrides_apply(&overrides, &loaded->arena, loaded->root, &loaded->diag);
}

/* The tree with up to three overrides, and every error behind it. */
static void check_override(const char *yaml, const char *const *overrides, size_t count,
                           const char *expected)
{
    struct loaded loaded;
    struct text got = TEXT_INIT, kept = TEXT_INIT;
    load_text(&loaded, sv_from(yaml));
    struct node *root = apply_words(&loaded, overrides, count);
    assert_non_null(root);
    put_node(&got, root);
    for (size_t i = 0; i < roost_report_count(loaded.report); i++) {
        const struct roost_diagnostic *it = roost_report_at(loaded.report, i);
        CHECK_TEXT(yaml, it->file, "command line");
        text_printf(&got, " | %s %d:%d: %s", roost_code_word(it->code), it->line, it->column,
                    it->message);
    }
    CHECK_TEXT(overrides[0], text_string(&got), expected);
    put_node(&kept, loaded.root);
    CHECK_TEXT(overrides[0], text_string(&kept), yaml); /* the tree itself is not changed */
    text_release(&kept);
    text_release(&got);
    load_release(&loaded);
}

static void check_rows(const char *const (*rows)[3], size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_override(rows[i][0], &rows[i][1], 1, rows[i][2]);
}

TEST(an_override_adds_replaces_and_merges)
{
    static const char *const rows[][3] = {
        {"{a: 1}", "a=2", "{a: 2}"},
        {"{a: 1}", "+b=2", "{a: 1, b: 2}"},
        {"{a: {b: 1}}", "a.b=2", "{a: {b: 2}}"},
        {"{a: {b: 1}}", "+a.c=2", "{a: {b: 1, c: 2}}"},
        {"{a: {b: 1}}", "+x.y.z=2", "{a: {b: 1}, x: {y: {z: 2}}}"},
        {"{a: {b: 1}}", "a={c: 2}", "{a: {b: 1, c: 2}}"},
        {"{a: {b: 1}}", "a=5", "{a: 5}"},
        {"{a: ~}", "+a.b=1", "{a: {b: 1}}"},
        {"{a: [1, 2]}", "a=[9]", "{a: [9]}"},
        {"{a: [1, 2]}", "a.1=9", "{a: [1, 9]}"},
        {"{a: [{b: 1}]}", "a.0.b=9", "{a: [{b: 9}]}"},
        {"{a.b: 1}", "a.b=2", "{a.b: 2}"}, /* a key that holds a dot is taken whole */
        {"{a: 1}", "++a=2", "{a: 2}"},
        {"{a: 1}", "++b=2", "{a: 1, b: 2}"},
        {"{a: {b: 1}}", "+a={c: 2}", "{a: {b: 1, c: 2}}"},
        {"{a: ~}", "+a=2", "{a: 2}"},
        {"{a: 1}", "roost.engine=ray", "{a: 1, roost: {engine: ray}}"},
        {"{a: 1}", "cluster.num_nodes=2", "{a: 1, cluster: {num_nodes: 2}}"},
        {"{a: 1}", "a=", "{a: ''}"},
        {"{a: 1}", "a=  ", "{a: ''}"},
        {"{a: 1}", "a='x y'", "{a: 'x y'}"},
        {"{a: 1}", "a=0-3:0-7", "{a: 0-3:0-7}"},
        {"{a: 1}", "a=b=c", "{a: b=c}"},
        {"{a: 1}", "+b=[&x 1, *x]", "{a: 1, b: [1, 1]}"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(a_wrong_override_is_said_and_left_out)
{
    static const char *const rows[][3] = {
        {"{a: 1}", "a", "{a: 1} | usage 1:1: 'a' is not an override"},
        {"{a: 1}", "", "{a: 1} | usage 1:1: '' is not an override"},
        {"{a: 1}", "=2", "{a: 1} | usage 1:1: '=2' is not an override"},
        {"{a: 1}", "+=2", "{a: 1} | usage 1:1: '+=2' is not an override"},
        {"{a: 1}", "+++b=2", "{a: 1, +b: 2}"},
        {"{a: 1}", "b=2", "{a: 1} | reference 1:1: the config has no key 'b'"},
        {"{a: {b: 1}}", "a.c=2", "{a: {b: 1}} | reference 1:1: the config has no key 'a.c'"},
        {"{a: [{b: 1}]}", "a.0.c=2",
         "{a: [{b: 1}]} | reference 1:1: the config has no key 'a.0.c'"},
        {"{a: 1}", "+a=2", "{a: 1} | reference 1:2: the config has 'a' already"},
        {"{a: {b: 1}}", "+a.b=2", "{a: {b: 1}} | reference 1:2: the config has 'a.b' already"},
        {"{a: 1}", "~a=", "{a: 1} | usage 1:1: '~a=' is not an override"},
        {"{a: 1}", ".a=2", "{a: 1} | usage 1:1: the key is not a dotted path"},
        {"{a: 1}", "b..c=2", "{a: 1} | usage 1:1: the key is not a dotted path"},
        {"{a: 1}", "b.=2", "{a: 1} | usage 1:1: the key is not a dotted path"},
        {"{a: 1}", "a.b=2",
         "{a: 1} | reference 1:1: 'b' would go below a value that is not a mapping"},
        {"{a: [1, 2]}", "a.2=2",
         "{a: [1, 2]} | reference 1:1: '2' is not an index of this list of 2"},
        {"{a: [1, 2]}", "a.x=2",
         "{a: [1, 2]} | reference 1:1: 'x' is not an index of this list of 2"},
        {"{a: []}", "a.0=2", "{a: []} | reference 1:1: '0' is not an index of this list of 0"},
        {"{a: 1}", "a=*x", "{a: 1} | syntax 1:3: alias '*x' has no anchor before it"},
        {"{a: 1}", "a=\xff", "{a: 1} | syntax 1:3: byte 0xff is not UTF-8"},
        {"{a: 1}", "a=!t x", "{a: 1} | syntax 1:3: tag '!t' is not allowed"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(overrides_apply_in_order_and_errors_name_theirs)
{
    static const char *const three[] = {"+a.b=1", "wrong", "a.b=3"};
    check_override("{}", three, 3, "{a: {b: 3}} | usage 2:1: 'wrong' is not an override");
}

TEST(an_override_reaches_one_of_two_places_that_share_a_value)
{
    struct loaded loaded;
    struct text got = TEXT_INIT;
    static const char *const override[] = {"b.x=2"};
    load_text(&loaded, SV("a: &m {x: 1}\nb: *m\n"));
    put_node(&got, apply_words(&loaded, override, 1));
    assert_string_equal(text_string(&got), "{a: {x: 1}, b: {x: 2}}");
    text_release(&got);
    load_release(&loaded);
}

/* A key of `parts` parts on an empty tree. */
static size_t errors_of_depth(int parts)
{
    struct loaded loaded;
    struct text key = TEXT_INIT;
    for (int i = 0; i < parts; i++)
        text_puts(&key, i ? ".k" : "+k");
    text_puts(&key, "=1");
    const char *const overrides[] = {text_string(&key)};
    load_text(&loaded, SV("{}"));
    assert_non_null(apply_words(&loaded, overrides, 1));
    size_t errors = loaded.diag.errors;
    text_release(&key);
    load_release(&loaded);
    return errors;
}

TEST(a_key_goes_as_deep_as_a_tree_and_no_deeper)
{
    assert_int_equal(errors_of_depth(32), 0);
    assert_int_equal(errors_of_depth(33), 0);
    assert_int_equal(errors_of_depth(34), 1);
    assert_int_equal(errors_of_depth(20000), 1);
}

RUN_TESTS(cmocka_unit_test(an_override_adds_replaces_and_merges),
          cmocka_unit_test(a_wrong_override_is_said_and_left_out),
          cmocka_unit_test(overrides_apply_in_order_and_errors_name_theirs),
          cmocka_unit_test(an_override_reaches_one_of_two_places_that_share_a_value),
          cmocka_unit_test(a_key_goes_as_deep_as_a_tree_and_no_deeper))
