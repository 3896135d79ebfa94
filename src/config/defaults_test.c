/* defaults_test.c - Hydra's defaults lists, composed from files in a folder of the test's own. */
#include "config/defaults.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tree_unit.h"

static char folder[] = "/tmp/roost-defaults-XXXXXX";

static const char *const files[][2] = {
    {"base.yaml", "a: 1\nb: {c: 2}\n"},
    {"other.yaml", "a: 9\nz: 1\n"},
    {"list.yaml", "[1]\n"},
    {"broken.yaml", "a: [\n"},
    {"loop.yaml", "defaults: [loop]\n"},
    {"db/mysql.yaml", "defaults: [small]\nport: 1\n"},
    {"db/small.yaml", "size: 3\n"},
    {"db/global.yaml", "\n# @package _global_\ntop: 1\n"},
    {"db/hidden.yaml", "# a comment\n# @package _global_\ntop: 1\n"},
    {"db/named.yaml", "# @package x.y\nk: 1\n"},
};

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* The composed tree, or the first error; then how many entries were warned about as not composed. */
static void check_compose(const char *yaml, const char *expected, const char *warned)
{
    struct loaded loaded;
    struct text got = TEXT_INIT, said = TEXT_INIT;
    load_text(&loaded, sv_from(yaml));
    struct node *root =
        defaults_compose(&loaded.arena, path_of("main.yaml"), loaded.root, NULL, &loaded.diag);
    if (root)
        put_node(&got, root);
    else
        text_puts(&got, loaded.err.message);
    CHECK_FACT(yaml, (root == NULL) == (loaded.diag.errors > 0));
    if (root)
        CHECK_TEXT(yaml, text_string(&got), expected);
    else
        CHECK_SAYS(yaml, text_string(&got), expected);
    for (size_t i = 0; i < roost_report_count(loaded.report); i++)
        if (roost_report_at(loaded.report, i)->warning)
            text_printf(&said, "%s; ", roost_report_at(loaded.report, i)->message);
    CHECK_SAYS(yaml, text_string(&said), warned);
    text_release(&got);
    text_release(&said);
    load_release(&loaded);
}

TEST(entries_are_composed_in_order_and_the_file_itself_comes_last)
{
    check_compose("{a: 5}", "{a: 5}", "");
    check_compose("defaults: [base]\na: 5\n", "{a: 5, b: {c: 2}}", "");
    check_compose("defaults: [base, other]\n", "{a: 9, b: {c: 2}, z: 1}", "");
    check_compose("defaults: [_self_, base]\na: 5\n", "{a: 1, b: {c: 2}}", "");
    check_compose("defaults: [base]\nb: {d: 3}\n", "{a: 1, b: {c: 2, d: 3}}", "");
}

TEST(groups_packages_and_headers_say_where_content_goes)
{
    check_compose("defaults: [db/small]\n", "{db: {size: 3}}", "");
    check_compose("defaults: [{db: small}]\n", "{db: {size: 3}}", "");
    check_compose("defaults: [db/mysql]\n", "{db: {size: 3, port: 1}}", "");
    check_compose("defaults: [base@p.q]\n", "{p: {q: {a: 1, b: {c: 2}}}}", "");
    check_compose("defaults: [base@_global_]\n", "{a: 1, b: {c: 2}}", "");
    check_compose("defaults: [db/global]\n", "{top: 1}", "");
    check_compose("defaults: [db/hidden]\n", "{db: {top: 1}}", "");
    check_compose("defaults: [db/named]\n", "{x: {y: {k: 1}}}", "");
    check_compose("defaults: [{db@_global_: small}]\n", "{size: 3}", "");
    check_compose("defaults: [base.yaml]\n", "{a: 1, b: {c: 2}}", "");
}

TEST(what_is_not_composed_is_said)
{
    check_compose("defaults: [nothing]\nx: 1\n", "{x: 1}",
                  "'nothing' is not composed: there is no file");
    check_compose("defaults: [optional nothing]\nx: 1\n", "{x: 1}", "");
    check_compose("defaults: [{override db: small}]\nx: 1\n", "{x: 1}",
                  "it overrides another entry");
    check_compose("defaults: ['${x}']\nx: 1\n", "{x: 1}", "its name is an interpolation");
    check_compose("defaults: ['../base']\nx: 1\n", "{x: 1}", "does not name a file below");
    check_compose("defaults: ['/etc/passwd']\nx: 1\n", "{x: 1}", "is not composed");
    check_compose("defaults: ['db/../base']\nx: 1\n", "{x: 1}", "does not name a file below");
    check_compose("defaults: ['']\nx: 1\n", "{x: 1}", "does not name a file below");
    check_compose("defaults: [{a: b, c: d}]\nx: 1\n", "{x: 1}", "it is not one name");
    check_compose("defaults: [[base]]\nx: 1\n", "{x: 1}", "it is not one name");
    check_compose("defaults: base\nx: 1\n", "{defaults: base, x: 1}", "");
}

TEST(files_that_cannot_be_composed_fail_the_whole)
{
    check_compose("defaults: [list]\n", "is not a mapping", "");
    check_compose("defaults: [broken]\n", "is not YAML that roost reads", "");
    check_compose("defaults: [loop]\n", "nested more than 8 deep, or name each other", "");
}

TEST(more_than_64_files_are_refused)
{
    struct text yaml = TEXT_INIT;
    text_puts(&yaml, "defaults: [");
    for (int i = 0; i < 64; i++)
        text_puts(&yaml, "base,");
    size_t fits = yaml.len;
    text_puts(&yaml, "]\n");
    check_compose(text_string(&yaml), "{a: 1, b: {c: 2}}", "");
    yaml.len = fits;
    text_puts(&yaml, "base]\n");
    check_compose(text_string(&yaml), "defaults name more than 64 files", "");
    text_release(&yaml);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || mkdir(path_of("db"), 0700) != 0)
        return -1;
    for (size_t i = 0; i < ROWS(files); i++) {
        FILE *file = fopen(path_of(files[i][0]), "w");
        if (!file || fputs(files[i][1], file) < 0 || fclose(file) != 0)
            return -1;
    }
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(files); i++)
        unlink(path_of(files[i][0]));
    rmdir(path_of("db"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_are_composed_in_order_and_the_file_itself_comes_last),
        cmocka_unit_test(groups_packages_and_headers_say_where_content_goes),
        cmocka_unit_test(what_is_not_composed_is_said),
        cmocka_unit_test(files_that_cannot_be_composed_fail_the_whole),
        cmocka_unit_test(more_than_64_files_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
