/* resolve_test.c - interpolations: paths, neighbours, environment, loops and bombs. */
#include "config/secret_values.h"

#include "tests/tree_unit.h"

static const char *const environment[] = {"HOME=/root", "EMPTY=", "DOLLAR=${a}", "NUM=8", NULL};

/* What the dotted `path` stands for, as text, or the first error. */
static void describe(const char *yaml, const char *path, struct text *out)
{
    struct loaded loaded;
    struct env_names read = {0};
    load_text(&loaded, sv_from(yaml));
    CHECK_FACT(yaml, loaded.root != NULL);
    struct resolver resolver = {.arena = &loaded.arena,
                                .root = loaded.root,
                                .env = environment,
                                .read = &read,
                                .diag = &loaded.diag};
    const struct node *found = resolve_path(&resolver, path);
    out->len = 0;
    if (found)
        put_node(out, found);
    else if (loaded.diag.errors)
        put_error(out, &loaded.err);
    else
        text_puts(out, "nothing");
    CHECK_FACT(yaml, !found || loaded.diag.errors == 0);
    CHECK_FACT(yaml, resolver.depth == 0);
    load_release(&loaded);
}

static void check_rows(const char *const (*rows)[3], size_t count)
{
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < count; i++) {
        describe(rows[i][0], rows[i][1], &got);
        CHECK_TEXT(rows[i][0], text_string(&got), rows[i][2]);
    }
    text_release(&got);
}

TEST(an_interpolation_is_the_value_it_names)
{
    static const char *const rows[][3] = {
        {"a: 1\nb: ${a}", "b", "1"},
        {"a: {x: {y: 5}}\nb: ${a.x.y}", "b", "5"},
        {"a: {x: [1, 2]}\nb: ${a.x}", "b", "[1, 2]"},
        {"a: [7, 8]\nb: ${a.1}", "b", "8"},
        {"a: [7, 8]\nb: ${a[1]}", "b", "8"},
        {"a: {x: [{y: 3}]}\nb: ${a.x[0].y}", "b", "3"},
        {"a: {x: 1, y: '${.x}'}", "a.y", "1"},
        {"a: {x: 1, y: {z: '${..x}'}}", "a.y.z", "1"},
        {"a: 1\nb: {c: {d: '${...a}'}}", "b.c.d", "1"},
        {"a: 1\nb: ${a}\nc: ${b}", "c", "1"},
        {"a: 1\nb: ' ${ a } '", "b", "' 1 '"},
        {"a: x\nb: ${a}-${a}", "b", "'x-x'"},
        {"a: x\nb: pre${a}post", "b", "'prexpost'"},
        {"a: ''\nb: ${a}", "b", "''"},
        {"b: ${c}\nc: {d: '${e}'}\ne: 4", "b", "{d: '${e}'}"}, /* a mapping is not looked into */
        {"b: ${c}\nc: {d: '${e}'}\ne: 4", "b.d", "4"},
        {"a: $b ${", "b", "nothing"},
        {"a: x$b{c}", "a", "x$b{c}"},
        {"a: 1\nb: x\\${a}y", "b", "'x${a}y'"}, /* escaped */
        {"a: &m {x: 1, y: '${.x}'}\nb: {<<: *m, x: 2}", "b.y", "1"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(the_environment_is_what_the_caller_handed_in)
{
    static const char *const rows[][3] = {
        {"a: ${oc.env:HOME}", "a", "'/root'"},
        {"a: '${oc.env: HOME }'", "a", "'/root'"},
        {"a: ${oc.env:EMPTY}", "a", "''"},
        {"a: ${oc.env:EMPTY,x}", "a", "''"},
        {"a: ${oc.env:MISSING,x}", "a", "'x'"},
        {"a: '${oc.env:MISSING, \"a b\" }'", "a", "'a b'"},
        {"a: ${oc.env:MISSING,}", "a", "''"},
        {"a: '${oc.env:MISSING,${oc.env:NUM}}'", "a", "'8'"},
        {"a: '${oc.env:MISSING,${oc.env:ALSO,${b}}}'\nb: 3", "a", "3"},
        {"a: ${oc.env:DOLLAR}", "a", "'${a}'"}, /* never interpolated again */
        {"a: x${oc.env:NUM}y", "a", "'x8y'"},
        {"a: ${oc.env:HOM}", "a", "reference 1:6: environment variable 'HOM' is not set"},
        {"a: ${oc.env:HOMER}", "a", "reference 1:6: environment variable 'HOMER' is not set"},
        {"a: '${oc.env:1X}'", "a",
         "reference 1:7: '1X' is not the name of an environment variable"},
        {"a: '${oc.env:}'", "a", "reference 1:7: '' is not the name of an environment variable"},
    };
    check_rows(rows, ROWS(rows));
}

TEST(what_cannot_be_followed_is_said_at_its_place)
{
    static const char *const rows[][3] = {
        {"a: ${b}", "a", "reference 1:6: '${b}' names a value that is not there"},
        {"a: {x: 1}\nb: x ${a.y} z", "b",
         "reference 2:8: '${a.y}' names a value that is not there"},
        {"a: [1]\nb: ${a.1}", "b", "reference 2:6: '${a.1}' names a value that is not there"},
        {"a: []\nb: ${a.0}", "b", "reference 2:6: '${a.0}' names a value that is not there"},
        {"a: 1\nb: ${a.x}", "b", "reference 2:6: '${a.x}' names a value that is not there"},
        {"a: 1\nb: ${.....a}", "b", "reference 2:6: '${.....a}' names a value that is not there"},
        {"a: '${}'", "a", "reference 1:7: '${}' names a value that is not there"},
        {"a: '${.}'", "a", "reference 1:7: '${.}' names a value that is not there"},
        {"a: 1\nb: ${a..x}", "b", "reference 2:6: '${a..x}' names a value that is not there"},
        {"a: ${now:%Y}", "a",
         "reference 1:6: '${now:%Y}' is not an interpolation that roost follows"},
        {"a: 1\nb: '${${a}}'", "b",
         "reference 2:7: '${${a}}' is not an interpolation that roost follows"},
        {"a: ${b", "a", "syntax 1:4: '${b' has a '${' without its '}'"},
        {"a: [1]\nb: x${a}", "b", "reference 2:4: 'x${a}' puts a list or mapping inside a text"},
        {"a: ${a}", "a", "reference 1:4: '${a}' leads back to itself"},
        {"a: ${b}\nb: ${c}\nc: x${a}", "a", "reference 1:4: '${a}' leads back to itself"},
        {"a: {b: '${c.b}'}\nc: ${a}", "a.b", "reference 1:8: '${c.b}' leads back to itself"},
    };
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < ROWS(rows); i++) {
        describe(rows[i][0], rows[i][1], &got);
        /* A loop may be reported at any of its members. */
        if (strstr(rows[i][2], "leads back"))
            CHECK_SAYS(rows[i][0], text_string(&got), "leads back to itself");
        else
            CHECK_TEXT(rows[i][0], text_string(&got), rows[i][2]);
    }
    text_release(&got);
}

TEST(a_broken_value_is_said_once_however_often_it_is_used)
{
    struct loaded loaded;
    struct env_names read = {0};
    load_text(&loaded, SV("a: ${zzz}\nb: ${a}\nc: ${a}${b}\n"));
    struct resolver resolver = {
        .arena = &loaded.arena, .root = loaded.root, .read = &read, .diag = &loaded.diag};
    assert_null(resolve_path(&resolver, "a"));
    assert_int_equal(loaded.diag.errors, 1);
    assert_null(resolve_path(&resolver, "a"));
    assert_int_equal(loaded.diag.errors, 1);
    load_release(&loaded);
}

TEST(variables_that_were_asked_for_are_remembered_once_each)
{
    struct loaded loaded;
    struct env_names read = {0};
    struct text yaml = TEXT_INIT;
    for (int i = 0; i < 40; i++)
        text_printf(&yaml, "k%d: ${oc.env:V%d,x}\n", i, i % 20);
    load_text(&loaded, (struct strview){yaml.bytes, yaml.len});
    struct resolver resolver = {
        .arena = &loaded.arena, .root = loaded.root, .read = &read, .diag = &loaded.diag};
    for (int32_t i = 0; i < loaded.root->count; i++)
        assert_non_null(resolve(&resolver, loaded.root->pairs[i].value));
    assert_int_equal(read.count, 20);
    assert_string_equal(read.names[0], "V0");
    assert_string_equal(read.names[19], "V19");
    text_release(&yaml);
    load_release(&loaded);
}

/* k0 -> k1 -> ... -> k(count), which is 1. */
static void check_chain(int count, const char *expected)
{
    struct text yaml = TEXT_INIT, got = TEXT_INIT;
    for (int i = 0; i < count; i++)
        text_printf(&yaml, "k%d: ${k%d}\n", i, i + 1);
    text_printf(&yaml, "k%d: 1\n", count);
    describe(text_string(&yaml), "k0", &got);
    CHECK_SAYS("chain", text_string(&got), expected);
    text_release(&yaml);
    text_release(&got);
}

TEST(chains_of_64_are_followed_and_longer_ones_are_not)
{
    check_chain(63, "1");
    check_chain(64, "1");
    check_chain(65, "is the end of too long a chain");
    check_chain(5000, "is the end of too long a chain");
}

TEST(a_text_that_grows_beyond_64_kib_is_refused)
{
    struct text yaml = TEXT_INIT, got = TEXT_INIT;
    text_puts(&yaml, "k0: 0123456789\n");
    for (int i = 1; i < 20; i++)
        text_printf(&yaml, "k%d: ${k%d}${k%d}\n", i, i - 1, i - 1);
    describe(text_string(&yaml), "k12", &got);
    assert_int_equal(got.len, 40960 + 2);
    describe(text_string(&yaml), "k19", &got);
    CHECK_SAYS("doubling", text_string(&got), "becomes too long a text");
    text_release(&yaml);
    text_release(&got);
}

/* How many of the values k0, k1, ... are resolved before an error, and that it is a limit. */
static int count_resolved(const struct text *yaml, const char *phrase)
{
    struct loaded loaded;
    struct env_names read = {0};
    int count = 0;
    load_text(&loaded, (struct strview){yaml->bytes, yaml->len});
    assert_non_null(loaded.root);
    struct resolver resolver = {
        .arena = &loaded.arena, .root = loaded.root, .read = &read, .diag = &loaded.diag};
    for (int32_t i = 0; i < loaded.root->count; i++)
        if (sv_starts(loaded.root->pairs[i].key->text, "k"))
            count += resolve(&resolver, loaded.root->pairs[i].value) != NULL;
    if (loaded.diag.errors) {
        assert_int_equal(loaded.err.code, ROOST_ERR_LIMIT);
        CHECK_SAYS("limit", loaded.err.message, phrase);
    }
    load_release(&loaded);
    return count;
}

TEST(all_texts_together_may_take_a_mebibyte_and_no_more)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "x: ");
    text_repeat(&yaml, 'x', 65535);
    for (int i = 0; i < 18; i++)
        text_printf(&yaml, "\nk%d: ${x}y", i);
    text_char(&yaml, '\n');
    assert_int_equal(count_resolved(&yaml, "bytes of text"), 16);
    text_release(&yaml);
}

TEST(a_thousand_and_24_variables_are_looked_up_and_one_more_is_not)
{
    struct text yaml = TEXT_INIT;
    for (int i = 0; i < 1026; i++)
        text_printf(&yaml, "k%d: ${oc.env:V%d,x}\n", i, i);
    assert_int_equal(count_resolved(&yaml, "environment variables"), 1024);
    text_release(&yaml);
}

/* Checks how the value at `path` is shown with this environment; NULL = it holds no secret. `is_of_program`:
 * values of secret variables are looked for. */
static void check_shown(const char *yaml, const char *path, const char *const *env,
                        bool is_of_program, const char *wanted)
{
    struct loaded loaded;
    struct env_names read = {0};
    struct secrets secrets = {0};
    load_text(&loaded, sv_from(yaml));
    struct resolver resolver = {.arena = &loaded.arena,
                                .root = loaded.root,
                                .env = env,
                                .read = &read,
                                .secrets = &secrets,
                                .diag = &loaded.diag};
    CHECK_FACT(yaml, !is_of_program || secret_look_for(&resolver));
    const struct node *found = resolve_path(&resolver, path);
    CHECK_FACT(yaml, found && !found->secret == !wanted);
    CHECK_FACT(yaml, !wanted || sv_is(found->secret->shown, wanted));
    load_release(&loaded);
}

TEST(what_comes_from_a_secret_variable_is_marked_with_what_is_shown)
{
    static const char *const secret_env[] = {"T_TOKEN=hunter2", "U_KEY=other", "HOME=/root", NULL};
    static const char *const rows[][3] = {
        {"b: ${oc.env:T_TOKEN}", "b", "***"},
        {"b: Bearer ${oc.env:T_TOKEN}!", "b", "Bearer ***!"},
        {"b: ${oc.env:T_TOKEN}${oc.env:U_KEY}", "b", "******"},
        {"a: ${oc.env:T_TOKEN}\nb: ${a}", "b", "***"},
        {"a: x${oc.env:T_TOKEN}\nb: ${a}-${a}", "b", "x***-x***"},
        {"a: &a {x: '${oc.env:T_TOKEN}'}\nb: {<<: *a}", "b.x", "***"},
        {"b: ${oc.env:UNSET_KEY,plain}", "b", NULL},
        {"b: '${oc.env:UNSET_KEY,x${oc.env:T_TOKEN}}'", "b", "x***"},
        {"b: ${oc.env:HOME}", "b", NULL},
        {"b: hunter2", "b", NULL},
        {"b: '\\${oc.env:T_TOKEN}'", "b", NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_shown(rows[i][0], rows[i][1], secret_env, false, rows[i][2]);
}

TEST(secrets_that_a_program_wrote_out_are_found)
{
    static const char *const secret_env[] = {"T_TOKEN=hunter2-token", "U_KEY=short",
                                             "V_KEY=hunter2-token-too", "HOME=/root/of/mine", NULL};
    static const char *const rows[][2] = {
        {"a: hunter2-token", "***"},     {"a: Bearer hunter2-token.", "Bearer ***."},
        {"a: hunter2-token-too", "***"}, {"a: short", NULL},
        {"a: /root/of/mine", NULL},      {"b: x\na: hunter2-token ${b}", "*** x"},
        {"a: hunter2-toke", NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++)
        check_shown(rows[i][0], "a", secret_env, true, rows[i][1]);
}

RUN_TESTS(cmocka_unit_test(an_interpolation_is_the_value_it_names),
          cmocka_unit_test(the_environment_is_what_the_caller_handed_in),
          cmocka_unit_test(what_cannot_be_followed_is_said_at_its_place),
          cmocka_unit_test(a_broken_value_is_said_once_however_often_it_is_used),
          cmocka_unit_test(variables_that_were_asked_for_are_remembered_once_each),
          cmocka_unit_test(chains_of_64_are_followed_and_longer_ones_are_not),
          cmocka_unit_test(a_text_that_grows_beyond_64_kib_is_refused),
          cmocka_unit_test(all_texts_together_may_take_a_mebibyte_and_no_more),
          cmocka_unit_test(a_thousand_and_24_variables_are_looked_up_and_one_more_is_not),
          cmocka_unit_test(what_comes_from_a_secret_variable_is_marked_with_what_is_shown),
          cmocka_unit_test(secrets_that_a_program_wrote_out_are_found))
