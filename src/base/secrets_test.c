/* secrets_test.c - messages without secrets: whole ones, pieces, cut and escaped ones. */
#include "base/secrets.h"

#include <stdio.h>

#include "base/diag.h"
#include "tests/unit.h"

static const struct source file = {.name = "config.yaml"};

struct fixture {
    struct arena arena;
    struct secrets secrets;
    const struct secret *value; /* "Bearer " and the secret, at 1:1 */
};

static struct fixture open_fixture(const char *text)
{
    struct fixture it = {.arena = ARENA_INIT};
    static char joined[512];
    snprintf(joined, sizeof joined, "Bearer %s", text);
    struct place at = {.source = &file, .line = 1, .column = 1};
    const struct secret_variable *variable =
        secrets_add_variable(&it.secrets, &it.arena, SV("MY_TOKEN"), sv_from(text));
    assert_non_null(variable);
    it.value = secrets_add(&it.secrets, &it.arena, variable, sv_from(joined), SV("Bearer ***"), at);
    assert_non_null(it.value);
    return it;
}

TEST(messages_do_not_show_secrets)
{
    static const struct {
        const char *secret, *message, *of_others, *of_its_own; /* NULL = the same */
    } rows[] = {
        {"hunter2-token", "not 'hunter2-token'", "not '***'", NULL},
        {"hunter2-token", "not 'Bearer hunter2-token'", "not 'Bearer ***'", NULL},
        {"hunter2-token", "xhunter2-tokeny", "x***y", NULL},
        {"hunter2-token", "not 'hunter2-to...'", "not '***...'", NULL},
        {"hunter2-token", "not 'Bearer hun...'", "not '***...'", NULL},
        {"hunter2-token", "not 'hun'", NULL, "not '***'"},
        {"hunter2-token", "not 'hunter2'", "not '***'", NULL},
        {"hunter2-token", "not hunter2", NULL, "not ***"},
        {"hunter2-token", "not 'Bearer'", NULL, NULL},
        {"hunter2-token", "a token of hunters", NULL, "a *** of hunters"},
        {"hunter2-token", "nothing to hide", NULL, NULL},
        {"x", "'num_nodes' must be a number, not 'x'", "'num_nodes' must be a number, not '***'",
         NULL},
        {"x", "extra x", "extra ***", NULL},
        {"4096", "rank 4096 is beyond 40960", "rank *** is beyond 40960", NULL},
        {"a\033b", "not 'a\\x1bb'", "not '***'", NULL},
        {"it's so secret", "not 'it's so secret'", "not '***'", NULL},
        {"", "''", NULL, NULL},
        {"***", "'***'", NULL, NULL},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct fixture it = open_fixture(rows[i].secret);
        const char *others = rows[i].of_others ? rows[i].of_others : rows[i].message;
        const char *own = rows[i].of_its_own ? rows[i].of_its_own : others;
        char out[128];
        size_t len = secrets_redact(&it.secrets, NULL, rows[i].message, out, sizeof out);
        CHECK_TEXT(rows[i].message, out, others);
        assert_int_equal(len, strlen(others));
        secrets_redact(&it.secrets, it.value, rows[i].message, out, sizeof out);
        CHECK_TEXT(rows[i].message, out, own);
        arena_release(&it.arena);
    }
}

TEST(of_two_secrets_the_longer_one_is_replaced)
{
    struct fixture it = open_fixture("hunter2-token");
    char out[64];
    assert_non_null(
        secrets_add_variable(&it.secrets, &it.arena, SV("OTHER_KEY"), SV("hunter2-token-too")));
    secrets_redact(&it.secrets, NULL, "hunter2-token-too", out, sizeof out);
    assert_string_equal(out, "***");
    arena_release(&it.arena);
}

TEST(a_variable_is_kept_once_and_a_value_is_found_by_its_place)
{
    struct fixture it = open_fixture("hunter2-token");
    assert_ptr_equal(
        secrets_add_variable(&it.secrets, &it.arena, SV("MY_TOKEN"), SV("hunter2-token")),
        it.secrets.variables);
    struct place at = {.source = &file, .line = 1, .column = 1};
    assert_ptr_equal(secrets_at(&it.secrets, at), it.value);
    at.column = 2;
    assert_null(secrets_at(&it.secrets, at));
    assert_null(secrets_at(&it.secrets, NOWHERE));
    assert_null(secrets_at(NULL, at));
    arena_release(&it.arena);
}

TEST(what_is_recorded_has_no_secret_in_message_hint_or_line)
{
    struct fixture it = open_fixture("hunter2-token");
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct diag diag = diag_start(report, &err);
    struct source written = {.name = "a", .text = SV("key: hunter2-token\n")};
    diag.secrets = &it.secrets;
    diag_error(&diag, ROOST_ERR_SCHEMA, (struct place){.source = &written, .line = 1, .column = 6},
               "not '%s'", "hunter2-token");
    diag_hint(&diag, "not '%s'", "hunter2-token");
    diag_warn(&diag, ROOST_WARN_READING, NOWHERE, "'%s' is text", "hunter2-token");
    diag_error(&diag, ROOST_ERR_SCHEMA, (struct place){.source = &file, .line = 1, .column = 1},
               "'%s' is a piece", "hu");
    assert_string_equal(err.message, "not '***'");
    assert_string_equal(err.hint, "not '***'");
    const struct roost_diagnostic *entry = NULL;
    for (size_t i = 0; (entry = roost_report_at(report, i)); i++) {
        assert_null(strstr(entry->message, "hu"));
        assert_null(strstr(entry->hint, "hu"));
        assert_null(entry->source_line);
    }
    assert_int_equal(roost_report_count(report), 3);
    roost_report_free(report);
    arena_release(&it.arena);
}

TEST(a_secret_is_taken_out_before_a_message_is_cut)
{
    char secret[480];
    memset(secret, 's', sizeof secret - 1);
    secret[sizeof secret - 1] = '\0';
    struct fixture it = open_fixture(secret);
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    diag.secrets = &it.secrets;
    diag_error(&diag, ROOST_ERR_SCHEMA, NOWHERE, "%0100d %s %0100d", 0, secret, 0);
    assert_null(strstr(err.message, "ss"));
    assert_non_null(strstr(err.message, " *** "));
    arena_release(&it.arena);
}

RUN_TESTS(cmocka_unit_test(messages_do_not_show_secrets),
          cmocka_unit_test(of_two_secrets_the_longer_one_is_replaced),
          cmocka_unit_test(a_variable_is_kept_once_and_a_value_is_found_by_its_place),
          cmocka_unit_test(what_is_recorded_has_no_secret_in_message_hint_or_line),
          cmocka_unit_test(a_secret_is_taken_out_before_a_message_is_cut))
