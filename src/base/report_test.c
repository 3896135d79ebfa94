/* report_test.c - what a report and an error keep of what was reported. */
#include <roost/error.h>

#include "base/diag.h"
#include "base/text.h"
#include "tests/unit.h"

static const struct source file_a = {.name = "a.yaml", .text = SV("one: 1\ntwo: 2\nthree: 3\n")};
static const struct source file_b = {.name = "b.yaml", .text = SV("x: 1\n")};

static struct place at(const struct source *source, int32_t line, int32_t column)
{
    return (struct place){.source = source, .line = line, .column = column, .length = 1};
}

TEST(entries_come_by_file_line_and_column_and_placeless_ones_last)
{
    struct roost_report *report = roost_report_new();
    struct diag diag = diag_start(report, NULL);
    diag_error(&diag, ROOST_ERR_RANK, NOWHERE, "i");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_b, 1, 1), "g");
    diag_warn(&diag, ROOST_WARN_IDLE, at(&file_a, 3, 9), "f");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 2, 6), "c");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 2, 6), "d");
    diag_warn(&diag, ROOST_WARN_IDLE, at(&file_a, 2, 6), "e");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 2, 1), "b");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 1, 99), "a");
    diag_warn(&diag, ROOST_WARN_IDLE, at(&file_b, 0, 0), "j");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_b, 1, 2), "h");
    struct text got = TEXT_INIT;
    for (size_t i = 0; i < roost_report_count(report); i++)
        text_puts(&got, roost_report_at(report, i)->message);
    assert_string_equal(text_string(&got), "abcdefghij");
    assert_null(roost_report_at(report, 10));
    assert_int_equal(roost_report_errors(report), 7);
    assert_int_equal(roost_report_warnings(report), 3);
    text_release(&got);
    roost_report_free(report);
}

TEST(an_entry_holds_the_line_it_is_about)
{
    struct roost_report *report = roost_report_new();
    struct diag diag = diag_start(report, NULL);
    diag_error(&diag, ROOST_ERR_SCHEMA, (struct place){.source = &file_a, .line = 2, .column = 6},
               "said %d", 7);
    diag_hint(&diag, "do %s", "this");
    const struct roost_diagnostic *it = roost_report_at(report, 0);
    assert_string_equal(it->file, "a.yaml");
    assert_int_equal(it->line, 2);
    assert_int_equal(it->column, 6);
    assert_int_equal(it->length, 1);
    assert_string_equal(it->message, "said 7");
    assert_string_equal(it->hint, "do this");
    assert_string_equal(it->source_line, "two: 2");
    assert_int_equal(it->code, ROOST_ERR_SCHEMA);
    assert_int_equal(it->warning, ROOST_WARN_NONE);
    roost_report_free(report);
}

TEST(a_hint_stays_with_its_entry_when_others_are_sorted_before_it)
{
    struct roost_report *report = roost_report_new();
    struct diag diag = diag_start(report, NULL);
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 3, 1), "late");
    diag_error(&diag, ROOST_ERR_RANK, at(&file_a, 1, 1), "early");
    diag_hint(&diag, "for early");
    assert_string_equal(roost_report_at(report, 0)->hint, "for early");
    assert_string_equal(roost_report_at(report, 1)->hint, "");
    roost_report_free(report);
}

TEST(beyond_256_entries_are_counted_and_not_kept)
{
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct diag diag = diag_start(report, &err);
    for (int32_t i = 0; i < 300; i++) {
        diag_error(&diag, i < 290 ? ROOST_ERR_FIT : ROOST_ERR_RANK, at(&file_a, 300 - i, 1), "%d",
                   i);
        diag_hint(&diag, "hint %d", i);
    }
    assert_int_equal(roost_report_errors(report), 300);
    assert_int_equal(roost_report_count(report), 256);
    assert_string_equal(roost_report_at(report, 0)->message, "255");
    assert_string_equal(roost_report_at(report, 0)->hint, "hint 255");
    assert_string_equal(roost_report_at(report, 255)->hint, "hint 0");
    assert_string_equal(err.message, "0");
    /* A code that was only counted still decides the exit. */
    assert_int_equal(roost_report_exit(report), 3);
    roost_report_free(report);
}

TEST(the_error_is_the_first_one_with_its_own_hint)
{
    struct roost_error err;
    memset(&err, 'x', sizeof err);
    struct diag diag = diag_start(NULL, &err);
    assert_int_equal(err.code, ROOST_OK);
    diag_warn(&diag, ROOST_WARN_IDLE, NOWHERE, "not an error");
    diag_hint(&diag, "nor its hint");
    assert_string_equal(err.hint, "");
    assert_int_equal(diag_error(&diag, ROOST_ERR_FIT, at(&file_a, 2, 6), "first"), ROOST_ERR_FIT);
    diag_warn(&diag, ROOST_WARN_IDLE, NOWHERE, "between");
    diag_hint(&diag, "of the warning");
    assert_string_equal(err.hint, "");
    diag_error(&diag, ROOST_ERR_RANK, NOWHERE, "second");
    diag_hint(&diag, "of the second");
    assert_int_equal(err.code, ROOST_ERR_FIT);
    assert_int_equal(diag.first, ROOST_ERR_FIT);
    assert_int_equal(diag.errors, 2);
    assert_string_equal(err.file, "a.yaml");
    assert_int_equal(err.line, 2);
    assert_string_equal(err.message, "first");
    assert_string_equal(err.hint, "");
    assert_int_equal(diag_nomem(&diag), ROOST_ERR_MEMORY);
}

TEST(a_diag_without_report_and_error_still_counts)
{
    struct diag diag = diag_start(NULL, NULL);
    diag_warn(&diag, ROOST_WARN_IDLE, NOWHERE, "nothing");
    diag_hint(&diag, "nothing");
    assert_int_equal(diag_nomem(&diag), ROOST_ERR_MEMORY);
    assert_int_equal(diag.errors, 1);
    assert_int_equal(diag.first, ROOST_ERR_MEMORY);
}

TEST(long_texts_are_cut_between_characters_and_marked)
{
    char name[2 * ROOST_ERROR_FILE_MAX], words[2 * ROOST_ERROR_MESSAGE_MAX];
    for (size_t shift = 0; shift < 3; shift++) {
        struct roost_error err;
        struct diag diag = diag_start(NULL, &err);
        for (size_t i = 0; i + 3 < sizeof name; i++)
            name[i] = i < shift ? 'a' : "\xe2\x82\xac"[(i - shift) % 3];
        for (size_t i = 0; i + 3 < sizeof words; i++)
            words[i] = i < shift ? 'a' : "\xe2\x82\xac"[(i - shift) % 3];
        name[sizeof name - 3] = words[sizeof words - 3] = '\0';
        struct source source = {.name = name, .text = SV("")};
        diag_error(&diag, ROOST_ERR_IO, at(&source, 1, 1), "%s", words);
        diag_hint(&diag, "%s", words);
        const char *const texts[] = {err.file, err.message, err.hint};
        for (size_t t = 0; t < ROWS(texts); t++) {
            struct strview text = sv_from(texts[t]);
            struct strview tail = sv_sub(text, text.len - 3, text.len);
            assert_true(sv_is(tail, "..."));
            assert_int_equal((text.len - 3 - shift) % 3, 0);
        }
        assert_in_range(strlen(err.message), ROOST_ERROR_MESSAGE_MAX - 4,
                        ROOST_ERROR_MESSAGE_MAX - 1);
    }
}

TEST(a_long_line_is_shown_around_its_place)
{
    char line[30000]; /* of three-byte characters */
    for (size_t i = 0; i < sizeof line; i += 3)
        memcpy(line + i, "\xe6\xbc\x94", 3);
    for (int32_t column = 1; column <= 10001; column += 625) {
        struct roost_report *report = roost_report_new();
        struct diag diag = diag_start(report, NULL);
        struct source source = {.name = "long", .text = {line, sizeof line}};
        diag_error(&diag, ROOST_ERR_IO, at(&source, 1, column), "x");
        const struct roost_diagnostic *it = roost_report_at(report, 0);
        size_t len = strlen(it->source_line);
        assert_int_equal(len % 3, 0);
        assert_in_range(len, 8185, 8191);
        assert_memory_equal(it->source_line, line, len);
        assert_in_range(column, it->source_column, it->source_column + (int32_t)len / 3);
        assert_int_equal(it->source_goes_on, it->source_column + (int32_t)len / 3 <= 10000);
        roost_report_free(report);
    }
}

TEST(a_line_of_8191_bytes_is_shown_whole)
{
    char line[9000];
    memset(line, 'x', sizeof line);
    for (size_t len = 8186; len < 8198; len++) {
        struct roost_report *report = roost_report_new();
        struct diag diag = diag_start(report, NULL);
        struct source source = {.name = "long", .text = {line, len}};
        diag_error(&diag, ROOST_ERR_IO, at(&source, 1, 1), "x");
        const struct roost_diagnostic *it = roost_report_at(report, 0);
        assert_int_equal(strlen(it->source_line), len < 8192 ? len : 8191);
        assert_int_equal(it->source_goes_on, len >= 8192);
        roost_report_free(report);
    }
}

static size_t peek_text(void *ctx, size_t offset, char *buf, size_t cap)
{
    struct strview piece = sv_sub(*(struct strview *)ctx, offset, offset + cap);
    memcpy(buf, piece.at, piece.len);
    return piece.len;
}

TEST(a_streamed_source_is_read_again_around_the_place)
{
    char text[20000];
    memset(text, 'x', sizeof text);
    memcpy(text + 5000, "\r\n", 2);
    memcpy(text + 15000, "\xe2\x80\xa8", 3);
    struct strview all = {text, sizeof text};
    struct source source = {.name = "stream", .peek = peek_text, .peek_ctx = &all};
    static const struct {
        size_t offset;
        int32_t line, column, first;
        bool goes_on;
    } rows[] = {
        {0, 1, 1, 1, false},         {4999, 1, 5000, 904, false}, {5002, 2, 1, 1, true},
        {10000, 2, 4999, 903, true}, {15003, 3, 1, 1, true},      {20000, 3, 4998, 902, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char buf[8192];
        struct excerpt excerpt;
        struct place place = at(&source, rows[i].line, rows[i].column);
        place.offset = rows[i].offset;
        assert_true(source_excerpt(place, buf, sizeof buf, &excerpt));
        assert_int_equal(excerpt.first, rows[i].first);
        assert_in_range(strlen(excerpt.text), 4000, 8191);
        assert_int_equal(excerpt.goes_on, rows[i].goes_on);
        assert_null(strpbrk(excerpt.text, "\r\n\xe2"));
    }
}

TEST(an_invalid_config_wins_over_one_that_does_not_fit_and_the_system_over_both)
{
    static const struct {
        enum roost_code codes[3];
        int status;
    } rows[] = {
        {{ROOST_OK}, 0},
        {{ROOST_ERR_FIT}, 4},
        {{ROOST_ERR_HARDWARE, ROOST_ERR_FIT}, 4},
        {{ROOST_ERR_FIT, ROOST_ERR_RANK}, 3},
        {{ROOST_ERR_NAME, ROOST_ERR_FIT}, 3},
        {{ROOST_ERR_FIT, ROOST_ERR_RANK, ROOST_ERR_MEMORY}, 5},
        {{ROOST_ERR_IO, ROOST_ERR_USAGE}, 5},
        {{ROOST_ERR_FIT, ROOST_ERR_USAGE, ROOST_ERR_RANK}, 2},
        {{ROOST_ERR_WORKER}, 1},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct roost_report *report = roost_report_new();
        struct diag diag = diag_start(report, NULL);
        diag_warn(&diag, ROOST_WARN_IDLE, NOWHERE, "warnings never fail");
        for (size_t k = 0; k < 3 && rows[i].codes[k]; k++)
            diag_error(&diag, rows[i].codes[k], NOWHERE, "x");
        assert_int_equal(roost_report_exit(report), rows[i].status);
        roost_report_free(report);
    }
    roost_report_free(NULL);
}

TEST(codes_and_warnings_have_the_words_of_the_one_list)
{
    static const struct {
        enum roost_code code;
        const char *word;
        int status;
    } codes[] = {
        {ROOST_OK, "ok", 0},
        {ROOST_ERR_USAGE, "usage", 2},
        {ROOST_ERR_SYNTAX, "syntax", 3},
        {ROOST_ERR_SCHEMA, "schema", 3},
        {ROOST_ERR_REFERENCE, "reference", 3},
        {ROOST_ERR_RANK, "rank", 3},
        {ROOST_ERR_NAME, "name", 3},
        {ROOST_ERR_LIMIT, "limit", 3},
        {ROOST_ERR_FIT, "fit", 4},
        {ROOST_ERR_HARDWARE, "hardware", 4},
        {ROOST_ERR_IO, "io", 5},
        {ROOST_ERR_MEMORY, "memory", 5},
        {ROOST_ERR_ENGINE, "engine", 5},
        {ROOST_ERR_LEASE, "lease", 5},
        {ROOST_ERR_ACCESS, "access", 5},
        {ROOST_ERR_TIMEOUT, "timeout", 5},
        {ROOST_ERR_BUG, "bug", 5},
        {ROOST_ERR_WORKER, "worker", 1},
    };
    static const struct {
        enum roost_warning warning;
        const char *word;
    } warnings[] = {
        {ROOST_WARN_NONE, "none"},
        {ROOST_WARN_READING, "reading"},
        {ROOST_WARN_REFERENCE_REFUSES, "rlinf"},
        {ROOST_WARN_IDLE, "idle"},
        {ROOST_WARN_OTHER_LABEL, "other-label"},
        {ROOST_WARN_OVERRIDDEN, "overridden"},
        {ROOST_WARN_EXTRA_NODES, "extra-nodes"},
        {ROOST_WARN_NOT_COMPOSED, "defaults"},
        {ROOST_WARN_MIXED, "mixed"},
        {ROOST_WARN_INTERFACES, "interfaces"},
    };
    for (size_t i = 0; i < ROWS(codes); i++) {
        assert_string_equal(roost_code_word(codes[i].code), codes[i].word);
        assert_int_equal(roost_code_exit(codes[i].code), codes[i].status);
    }
    for (size_t i = 0; i < ROWS(warnings); i++)
        assert_string_equal(roost_warning_word(warnings[i].warning), warnings[i].word);
}

RUN_TESTS(
    cmocka_unit_test(entries_come_by_file_line_and_column_and_placeless_ones_last),
    cmocka_unit_test(an_entry_holds_the_line_it_is_about),
    cmocka_unit_test(a_hint_stays_with_its_entry_when_others_are_sorted_before_it),
    cmocka_unit_test(beyond_256_entries_are_counted_and_not_kept),
    cmocka_unit_test(the_error_is_the_first_one_with_its_own_hint),
    cmocka_unit_test(a_diag_without_report_and_error_still_counts),
    cmocka_unit_test(long_texts_are_cut_between_characters_and_marked),
    cmocka_unit_test(a_long_line_is_shown_around_its_place),
    cmocka_unit_test(a_line_of_8191_bytes_is_shown_whole),
    cmocka_unit_test(a_streamed_source_is_read_again_around_the_place),
    cmocka_unit_test(an_invalid_config_wins_over_one_that_does_not_fit_and_the_system_over_both),
    cmocka_unit_test(codes_and_warnings_have_the_words_of_the_one_list))
