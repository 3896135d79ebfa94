/* yaml_load_test.c - YAML into trees: values, places, aliases, merges, limits and refusals. */
#include "config/yaml_load.h"

#include "tests/tree_unit.h"

/* The tree as text, or the first error. */
static void describe(struct strview text, struct text *out)
{
    struct loaded loaded;
    load_text(&loaded, text);
    assert_int_equal(loaded.root == NULL, loaded.diag.errors > 0);
    out->len = 0;
    if (loaded.root)
        put_node(out, loaded.root);
    else
        put_error(out, &loaded.err);
    load_release(&loaded);
}

static void check_rows(const char *const (*rows)[2], size_t count)
{
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        describe(sv_from(rows[i][0]), &got);
        CHECK_TEXT(rows[i][0], text_string(&got), rows[i][1]);
    }
    text_release(&got);
}

TEST(scalars_keep_their_own_text)
{
    static const char *const rows[][2] = {
        {"a: 1:0", "{a: 1:0}"},
        {"a: 007", "{a: 007}"},
        {"a: yes", "{a: yes}"},
        {"a: 0x10", "{a: 0x10}"},
        {"4090: x", "{4090: x}"},
        {"a: '007'", "{a: '007'}"},
        {"a: \"x\\ty\"", "{a: 'x\ty'}"},
        {"a:", "{a: }"},
        {"- a\n- [b, {c: d}]\n", "[a, [b, {c: d}]]"},
        {"a: |\n  x\n  y\n", "{a: 'x\ny\n'}"},
        {"a: one\n  two", "{a: one two}"},
        {"# only\na: b # comment", "{a: b}"},
        {"--- \na: b\n...\n", "{a: b}"},
        {"\xef\xbb\xbf"
         "a: b",
         "{a: b}"},
        {"just text", "just text"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(aliases_stand_for_what_their_anchor_named_last)
{
    static const char *const rows[][2] = {
        {"a: &x 1\nb: *x", "{a: 1, b: 1}"},
        {"a: &x [1, 2]\nb: *x\nc: [*x]", "{a: [1, 2], b: [1, 2], c: [[1, 2]]}"},
        {"a: &x 1\nb: *x\nc: &x 2\nd: *x", "{a: 1, b: 1, c: 2, d: 2}"},
        {"&k a: 1\nb: *k", "{a: 1, b: a}"},
        {"a: &x 1\n*x : 2", "{a: 1, 1: 2}"},
    };
    check_rows(rows, ROWS(rows));
    struct loaded loaded;
    load_text(&loaded, SV("a: &x {y: 1}\nb: *x"));
    assert_ptr_equal(node_get(loaded.root, SV("a")), node_get(loaded.root, SV("b")));
    load_release(&loaded);
}

TEST(merge_keys_bring_in_what_is_not_written)
{
    static const char *const rows[][2] = {
        {"a: &a {x: 1, y: 2}\nb: {<<: *a, z: 3}", "{a: {x: 1, y: 2}, b: {z: 3, x: 1, y: 2}}"},
        {"a: &a {x: 1}\nb: {x: 9, <<: *a}", "{a: {x: 1}, b: {x: 9}}"},
        {"a: &a {x: 1}\nb: {<<: *a, x: 9}", "{a: {x: 1}, b: {x: 9}}"},
        {"a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}",
         "{a: {x: 1}, b: {x: 2, y: 2}, c: {x: 1, y: 2}}"},
        {"a: &a {x: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: *b}",
         "{a: {x: 1}, b: {y: 2, x: 1}, c: {y: 2, x: 1}}"},
        {"a: {<<: {x: 1}}", "{a: {x: 1}}"},
        {"a: {<<: []}", "{a: {}}"},
        {"a: {'<<': 1}", "{a: {<<: 1}}"}, /* in quotes it is a key like others */
        {"a: {<<: 1}", "syntax 1:5: merge key '<<' takes a mapping or a list of mappings"},
        {"a: {<<: [{x: 1}, 2]}",
         "syntax 1:5: merge key '<<' takes a mapping or a list of mappings"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(what_is_not_one_plain_document_is_refused_with_its_place)
{
    static const char *const rows[][2] = {
        {"", "syntax 1:1: there is nothing in it"},
        {"# nothing\n", "syntax 1:1: there is nothing in it"},
        {"a: 1\n---\nb: 2\n",
         "syntax 2:1: a second document starts here; a config is one document"},
        {"a: !!int 1", "syntax 1:4: tag 'tag:yaml.org,2002:int' is not allowed"},
        {"a: !x [1]", "syntax 1:4: tag '!x' is not allowed"},
        {"a: !y {}", "syntax 1:4: tag '!y' is not allowed"},
        {"a: *x", "syntax 1:4: alias '*x' has no anchor before it"},
        {"a: *x\nb: &x 1", "syntax 1:4: alias '*x' has no anchor before it"},
        {"a: &x [*x]", "syntax 1:8: alias '*x' stands inside the value it names"},
        {"a: &x {b: {c: *x}}", "syntax 1:15: alias '*x' stands inside the value it names"},
        {"a: &x {<<: *x}", "syntax 1:12: alias '*x' stands inside the value it names"},
        {"[a]: 1", "syntax 1:1: a key must be plain text"},
        {"? {a: b}\n: 1", "syntax 1:3: a key must be plain text"},
        {"a: \x01", "syntax 1:4: character U+0001 is not allowed in YAML"},
        {"a: \xc2\x80", "syntax 1:4: character U+0080 is not allowed in YAML"},
        {"\xc3\xa9: x\xff", "syntax 1:5: byte 0xff is not UTF-8"},
        {"a:\n  b: \xed\xa0\x80", "syntax 2:6: byte 0xed is not UTF-8"},
        {"a: b\xef\xbb\xbf", "syntax 1:5: character U+FEFF is not allowed in YAML"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(a_nul_byte_is_refused_and_ends_nothing)
{
    struct text got = TEXT_INIT;
    describe(SV("a: b\0c"), &got);
    assert_string_equal(text_string(&got), "syntax 1:5: character U+0000 is not allowed in YAML");
    text_release(&got);
}

TEST(keys_that_come_twice_are_all_said_and_the_first_is_kept)
{
    struct loaded loaded;
    struct text got = TEXT_INIT;
    load_text(&loaded, SV("a: 1\nb: 2\na: 3\n\"b\": 4\na: 5\n"));
    assert_non_null(loaded.root);
    put_node(&got, loaded.root);
    assert_string_equal(text_string(&got), "{a: 1, b: 2}");
    assert_int_equal(roost_report_errors(loaded.report), 3);
    static const int32_t lines[] = {3, 4, 5};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(roost_report_at(loaded.report, i)->line, lines[i]);
        CHECK_SAYS("twice", roost_report_at(loaded.report, i)->message, "is written twice");
    }
    text_release(&got);
    load_release(&loaded);
}

TEST(what_libyaml_refuses_has_the_place_that_it_names)
{
    static const struct {
        const char *text;
        int32_t line;
    } rows[] = {
        {"a: b: c", 1},     {"a: [1, 2\nb: 3", 2}, {"a: 'open", 1},   {"\ta: 1", 1},
        {"a: 1\n b: 2", 2}, {"{a: 1", 1},          {"a: \"\\q\"", 1}, {"%YAML 3.0\n---\na: 1", 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct loaded loaded;
        load_text(&loaded, sv_from(rows[i].text));
        CHECK_FACT(rows[i].text, loaded.root == NULL);
        CHECK_FACT(rows[i].text, loaded.err.code == ROOST_ERR_SYNTAX);
        CHECK_FACT(rows[i].text, loaded.err.line == rows[i].line);
        CHECK_FACT(rows[i].text, loaded.err.column >= 1);
        load_release(&loaded);
    }
}

/* --- limits: one below, exactly, one above --- */

static void put_many(struct text *out, const char *piece, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_puts(out, piece);
}

/* Whether the text is read; if not, it must be because of a limit, said with this phrase. */
static bool is_read(struct text *text, const char *phrase)
{
    struct loaded loaded;
    load_text(&loaded, (struct strview){text->bytes, text->len});
    bool is_good = loaded.root != NULL;
    if (!is_good) {
        assert_int_equal(loaded.err.code, ROOST_ERR_LIMIT);
        CHECK_SAYS(phrase, loaded.err.message, phrase);
        assert_true(loaded.err.line > 0);
    }
    load_release(&loaded);
    text_release(text);
    return is_good;
}

static bool reads_depth(size_t depth, const char *open, const char *close)
{
    struct text text = TEXT_INIT;
    put_many(&text, open, depth);
    put_many(&text, close, depth);
    return is_read(&text, "nested more than 32 deep");
}

TEST(depth_32_is_read_and_33_is_not)
{
    assert_true(reads_depth(31, "[", "]"));
    assert_true(reads_depth(32, "[", "]"));
    assert_false(reads_depth(33, "[", "]"));
    assert_true(reads_depth(32, "{a: ", "}"));
    assert_false(reads_depth(33, "{a: ", "}"));
    assert_false(reads_depth(100000, "[", ""));
}

static bool reads_items(size_t count)
{
    struct text text = TEXT_INIT;
    text_puts(&text, "[");
    put_many(&text, "1,", count);
    text_puts(&text, "]");
    return is_read(&text, "more than 100000 values");
}

TEST(a_hundred_thousand_values_are_read_and_one_more_is_not)
{
    assert_true(reads_items(99998)); /* and the list itself */
    assert_true(reads_items(99999));
    assert_false(reads_items(100000));
}

static bool reads_scalar(size_t len, const char *quote_mark)
{
    struct text text = TEXT_INIT;
    text_puts(&text, "a: ");
    text_puts(&text, quote_mark);
    text_repeat(&text, 'x', (int)len);
    text_puts(&text, quote_mark);
    return is_read(&text, "at most 65536 are read");
}

TEST(a_text_of_64_kib_is_read_and_one_byte_more_is_not)
{
    static const char *const marks[] = {"", "'", "\""};
    for (size_t i = 0; i < ROWS(marks); i++) {
        assert_true(reads_scalar(65535, marks[i]));
        assert_true(reads_scalar(65536, marks[i]));
        assert_false(reads_scalar(65537, marks[i]));
    }
}

static bool reads_anchors(int count)
{
    struct text text = TEXT_INIT;
    for (int i = 0; i < count; i++)
        text_printf(&text, "- &a%d 1\n", i);
    return is_read(&text, "more than 1024 anchors");
}

TEST(a_thousand_and_24_anchors_are_read_and_one_more_is_not)
{
    assert_true(reads_anchors(1023));
    assert_true(reads_anchors(1024));
    assert_false(reads_anchors(1025));
}

/* A list that stands for 1 + 9 * (1 + aliases) values. */
static bool reads_aliases(size_t aliases)
{
    struct text text = TEXT_INIT;
    text_puts(&text, "[&x [1,2,3,4,5,6,7,8],");
    put_many(&text, "*x,", aliases);
    text_puts(&text, "]");
    return is_read(&text, "aliases make this stand for more than 100000 values");
}

TEST(aliases_may_stand_for_a_hundred_thousand_values_and_no_more)
{
    assert_true(reads_aliases(11109));
    assert_true(reads_aliases(11110)); /* 100000 */
    assert_false(reads_aliases(11111));
}

TEST(bombs_of_aliases_and_merges_are_refused_at_once)
{
    struct text laughs = TEXT_INIT, merges = TEXT_INIT, nested = TEXT_INIT;
    text_puts(&laughs, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    text_puts(&merges, "m0: &m0 {a: 1, b: 2}\n");
    for (int i = 1; i < 30; i++) {
        text_printf(&laughs, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                    i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        text_printf(&merges, "m%d: &m%d {x%d: *m%d, y%d: *m%d, <<: *m%d}\n", i, i, i, i - 1, i,
                    i - 1, i - 1);
    }
    assert_false(is_read(&laughs, "aliases make this stand for more than 100000 values"));
    assert_false(is_read(&merges, "aliases make this stand for more than 100000 values"));
    text_puts(&nested, "m: &m {");
    for (int i = 0; i < 9000; i++)
        text_printf(&nested, "k%d: 1, ", i);
    text_puts(&nested, "}\nall: [");
    put_many(&nested, "{<<: *m},", 1000);
    text_puts(&nested, "]");
    assert_false(is_read(&nested, "stand for more than 100000 values"));
}

TEST(an_alias_inside_its_own_merge_cannot_be_hidden_by_depth)
{
    struct text text = TEXT_INIT;
    text_puts(&text, "a: &a ");
    put_many(&text, "{b: ", 20);
    text_puts(&text, "{<<: *a}");
    put_many(&text, "}", 20);
    struct loaded loaded;
    load_text(&loaded, (struct strview){text.bytes, text.len});
    assert_null(loaded.root);
    CHECK_SAYS("merge", loaded.err.message, "stands inside the value it names");
    load_release(&loaded);
    text_release(&text);
}

TEST(a_piece_of_a_source_has_its_places_in_the_source)
{
    struct loaded loaded;
    load_start(&loaded, SV("one\nkey={a: 1, b: *z}\n"));
    struct strview piece = sv_sub(loaded.source.text, 8, 21);
    assert_null(yaml_load(&loaded.arena, &loaded.source, piece, 2, 5, &loaded.diag));
    assert_int_equal(loaded.err.line, 2);
    assert_int_equal(loaded.err.column, 15);
    load_release(&loaded);
}

RUN_TESTS(cmocka_unit_test(scalars_keep_their_own_text),
          cmocka_unit_test(aliases_stand_for_what_their_anchor_named_last),
          cmocka_unit_test(merge_keys_bring_in_what_is_not_written),
          cmocka_unit_test(what_is_not_one_plain_document_is_refused_with_its_place),
          cmocka_unit_test(a_nul_byte_is_refused_and_ends_nothing),
          cmocka_unit_test(keys_that_come_twice_are_all_said_and_the_first_is_kept),
          cmocka_unit_test(what_libyaml_refuses_has_the_place_that_it_names),
          cmocka_unit_test(depth_32_is_read_and_33_is_not),
          cmocka_unit_test(a_hundred_thousand_values_are_read_and_one_more_is_not),
          cmocka_unit_test(a_text_of_64_kib_is_read_and_one_byte_more_is_not),
          cmocka_unit_test(a_thousand_and_24_anchors_are_read_and_one_more_is_not),
          cmocka_unit_test(aliases_may_stand_for_a_hundred_thousand_values_and_no_more),
          cmocka_unit_test(bombs_of_aliases_and_merges_are_refused_at_once),
          cmocka_unit_test(an_alias_inside_its_own_merge_cannot_be_hidden_by_depth),
          cmocka_unit_test(a_piece_of_a_source_has_its_places_in_the_source))
