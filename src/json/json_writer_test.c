/* json_writer_test.c - commas, lines and layouts, and documents of random shape read back. */
#include "json/json_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/utf8.h"
#include "tests/unit.h"

/* Every kind of value, in both kinds of brackets. */
static void put_everything(struct json_writer *json)
{
    json_open_object(json);
    json_put_int(json_key(json, "roost"), 1);
    json_open_array(json_key(json, "empty"));
    json_close(json);
    json_open_object(json_key(json, "none"));
    json_close(json);
    json_open_array(json_key(json, "list"));
    json_put_string(json, "a\"b");
    json_put_string(json, NULL);
    json_put_view(json, SV("cd"));
    json_open_array(json);
    json_put_int(json, INT64_MIN);
    json_put_int(json, INT32_MIN);
    json_put_int(json, INT64_MAX);
    json_close(json);
    json_open_object(json);
    json_put_bool(json_key_view(json, SV("k\n")), true);
    json_put_bool(json_key(json, "no"), false);
    json_close(json);
    json_put_null(json);
    json_close(json);
    json_put_count(json_key(json, "count"), 0);
    json_put_count(json_key(json, "unknown"), -1);
    json_put_seconds(json_key(json, "at"), 12000000034);
    json_put_raw(json_key(json, "raw"), SV("0.5"));
    json_close(json);
}

TEST(a_compact_document_has_no_blanks)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_COMPACT);
    put_everything(&json);
    assert_string_equal(text_string(&text),
                        "{\"roost\":1,\"empty\":[],\"none\":{},\"list\":[\"a\\\"b\",null,\"cd\","
                        "[-9223372036854775808,-2147483648,9223372036854775807],"
                        "{\"k\\n\":true,\"no\":false},null],\"count\":0,\"unknown\":null,"
                        "\"at\":12.000000034,\"raw\":0.5}");
    text_release(&text);
}

TEST(a_spaced_document_has_a_blank_behind_commas_and_colons)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_SPACED);
    put_everything(&json);
    assert_string_equal(
        text_string(&text),
        "{\"roost\": 1, \"empty\": [], \"none\": {}, \"list\": [\"a\\\"b\", null, \"cd\", "
        "[-9223372036854775808, -2147483648, 9223372036854775807], "
        "{\"k\\n\": true, \"no\": false}, null], \"count\": 0, \"unknown\": null, "
        "\"at\": 12.000000034, \"raw\": 0.5}");
    text_release(&text);
}

TEST(a_line_starts_in_place_of_the_blank_and_not_in_an_empty_array)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_SPACED);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    json_line(&json, 1);
    json_open_array(json_key(&json, "rows"));
    for (int i = 0; i < 2; i++) {
        json_line(&json, 2);
        json_open_array(&json);
        json_put_int(&json, i);
        json_put_int(&json, i);
        json_close(&json);
    }
    json_close(&json);
    json_line(&json, 0);
    json_open_array(json_key(&json, "none"));
    json_line(&json, 3); /* for a row that does not come */
    json_close(&json);
    json_put_null(json_key(&json, "last"));
    json_close(&json);
    assert_string_equal(text_string(&text), "{\"roost\": 1,\n \"rows\": [\n  [0, 0],\n  [1, 1]],\n"
                                            "\"none\": [], \"last\": null}");
    text_release(&text);
}

TEST(raw_bytes_are_a_value_or_members_of_the_open_object)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_COMPACT);
    json_open_object(&json);
    for (int i = 0; i < 2; i++) {
        char *at = json_raw_start(&json, 7);
        assert_non_null(at);
        json_raw_end(&json, at + snprintf(at, 7, "\"%c\":%d", 'a' + i, i));
    }
    char *value = json_raw_start(json_key(&json, "c"), 1);
    *value = '2';
    json_raw_end(&json, value + 1);
    json_put_int(json_key(&json, "d"), 3);
    json_close(&json);
    assert_string_equal(text_string(&text), "{\"a\":0,\"b\":1,\"c\":2,\"d\":3}");
    text_release(&text);
}

static bool refuse(void *ctx, const char *bytes, size_t len)
{
    (void)ctx, (void)bytes, (void)len;
    return false;
}

TEST(a_text_that_fails_says_so_and_the_writer_goes_on)
{
    struct text text = {.flush = refuse};
    struct json_writer json = json_writer_on(&text, JSON_SPACED);
    json_open_array(&json);
    for (int i = 0; i < 300 * 1024; i++)
        json_put_int(&json, i % 10);
    assert_null(json_raw_start(&json, 1));
    json_close(&json);
    assert_false(text_finish(&text));
    text_release(&text);
}

TEST(nesting_as_deep_as_allowed_closes_in_order)
{
    struct text text = TEXT_INIT;
    struct json_writer json = json_writer_on(&text, JSON_COMPACT);
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        if (i % 2)
            json_open_array(json_key(&json, "k"));
        else
            json_open_object(&json);
    while (json.depth)
        json_close(&json);
    struct json_limits limits = {.max_depth = JSON_DEPTH_MAX};
    struct diag diag = {0};
    struct json_reader *reader =
        json_reader_from_text("deep", (struct strview){text.bytes, text.len}, &limits);
    assert_non_null(reader);
    assert_int_equal(json_next(reader, &diag).kind, JSON_OBJECT);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_int_equal(json_next(reader, &diag).kind, JSON_END);
    json_reader_free(reader);
    text_release(&text);
}

/* --- random documents --- */

/* What was written, as the events a reader must give. */
struct expected {
    enum json_kind kind;
    char text[24];
};

struct shape {
    struct json_writer json;
    unsigned seed;
    struct expected events[4096];
    int count;
    bool has_lines;
};

static void expect(struct shape *it, enum json_kind kind, const char *text)
{
    assert_true((size_t)it->count < ROWS(it->events));
    it->events[it->count].kind = kind;
    snprintf(it->events[it->count++].text, sizeof it->events->text, "%s", text);
}

static void put_scalar(struct shape *it)
{
    static const char *const words[] = {"", "a", "x\ny", "\"", "\\", "\xc3\xa9"};
    char digits[24];
    int64_t number = (int64_t)rand_r(&it->seed) * (rand_r(&it->seed) % 3 - 1) * 7;
    switch (rand_r(&it->seed) % 5) {
    case 0: {
        const char *word = words[(size_t)rand_r(&it->seed) % ROWS(words)];
        json_put_string(&it->json, word);
        expect(it, JSON_STRING, word);
        break;
    }
    case 1:
        json_put_int(&it->json, number);
        snprintf(digits, sizeof digits, "%lld", (long long)number);
        expect(it, JSON_NUMBER, digits);
        break;
    case 2:
        json_put_bool(&it->json, true);
        expect(it, JSON_TRUE, "");
        break;
    case 3:
        json_put_bool(&it->json, false);
        expect(it, JSON_FALSE, "");
        break;
    default:
        json_put_null(&it->json);
        expect(it, JSON_NULL, "");
        break;
    }
}

static void put_random(struct shape *it, int depth)
{
    int pick = rand_r(&it->seed) % 4;
    if (depth == 8 || (pick < 2 && depth > 0)) {
        put_scalar(it);
        return;
    }
    bool is_object = pick % 2;
    expect(it, is_object ? JSON_OBJECT : JSON_ARRAY, "");
    if (is_object)
        json_open_object(&it->json);
    else
        json_open_array(&it->json);
    int count = rand_r(&it->seed) % 4;
    for (int i = 0; i < count; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        if (it->has_lines && rand_r(&it->seed) % 2)
            json_line(&it->json, rand_r(&it->seed) % (JSON_INDENT_MAX + 1));
        if (is_object) {
            json_key(&it->json, key);
            expect(it, JSON_KEY, key);
        }
        put_random(it, depth + 1);
    }
    json_close(&it->json);
    expect(it, is_object ? JSON_OBJECT_END : JSON_ARRAY_END, "");
}

static void check_events(const struct shape *it, struct strview document)
{
    struct diag diag = {0};
    struct json_reader *reader = json_reader_from_text("random", document, NULL);
    assert_non_null(reader);
    for (int i = 0; i < it->count; i++) {
        struct json_event event = json_next(reader, &diag);
        bool has_text =
            event.kind == JSON_KEY || event.kind == JSON_STRING || event.kind == JSON_NUMBER;
        if (event.kind != it->events[i].kind ||
            (has_text && !sv_is(event.text, it->events[i].text)))
            fail_msg("event %d is %s, in %.*s", i, json_kind_words(event.kind), (int)document.len,
                     document.at);
    }
    assert_int_equal(json_next(reader, &diag).kind, JSON_END);
    json_reader_free(reader);
}

/* The document again, through a reader, in the same layout. */
static void check_copy(struct strview document, enum json_layout layout)
{
    struct diag diag = {0};
    struct text copy = TEXT_INIT;
    struct json_writer json = json_writer_on(&copy, layout);
    struct json_reader *reader = json_reader_from_text("random", document, NULL);
    assert_non_null(reader);
    assert_true(json_put_value(&json, reader, json_next(reader, &diag), &diag));
    assert_int_equal(json_next(reader, &diag).kind, JSON_END);
    assert_int_equal(copy.len, document.len);
    assert_memory_equal(copy.bytes, document.at, copy.len);
    json_reader_free(reader);
    text_release(&copy);
}

TEST(documents_of_random_shape_are_read_as_they_were_written)
{
    static struct shape it;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (unsigned round = 0; round < 400; round++) {
        enum json_layout layout = round % 2 ? JSON_SPACED : JSON_COMPACT;
        struct text text = TEXT_INIT;
        it = (struct shape){.json = json_writer_on(&text, layout), .seed = seed + round};
        it.has_lines = round % 4 >= 2;
        put_random(&it, 0);
        assert_false(text.has_failed);
        check_events(&it, (struct strview){text.bytes, text.len});
        if (!it.has_lines)
            check_copy((struct strview){text.bytes, text.len}, layout);
        text_release(&text);
    }
}

TEST(a_broken_document_is_not_copied_as_a_whole)
{
    static const char *const rows[] = {"[1, 2", "{\"a\": [1, }", "{\"a\" 1}", "", "[\"\\q\"]"};
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct diag diag = {0};
        struct text text = TEXT_INIT;
        struct json_writer json = json_writer_on(&text, JSON_COMPACT);
        struct json_reader *reader = json_reader_from_text("broken", sv_from(rows[i]), NULL);
        assert_non_null(reader);
        CHECK_FACT(rows[i], !json_put_value(&json, reader, json_next(reader, &diag), &diag));
        json_reader_free(reader);
        text_release(&text);
    }
}

TEST(json_strings_escape_what_they_must)
{
    static const struct {
        struct strview text;
        const char *json;
    } rows[] = {
        {SV(""), "\"\""},
        {SV("plain / text"), "\"plain / text\""},
        {SV("a\"b\\c"), "\"a\\\"b\\\\c\""},
        {SV("\n\r\t"), "\"\\n\\r\\t\""},
        {SV("\b\f\x01\x1f"), "\"\\u0008\\u000c\\u0001\\u001f\""},
        {SV("a\0b"), "\"a\\u0000b\""},
        {SV("\x7f"), "\"\\u007f\""},
        {SV("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {SV("\xff"), "\"\\ufffd\""},
        {SV("a\xc3"), "\"a\\ufffd\""},
        {SV("\xc3(b"), "\"\\ufffd(b\""},
        {SV("\xc0\xaf"), "\"\\ufffd\\ufffd\""},
        {SV("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct text got = TEXT_INIT;
        text_json(&got, rows[i].text);
        CHECK_TEXT(rows[i].json, text_string(&got), rows[i].json);
        text_release(&got);
    }
}

TEST(json_strings_of_any_two_bytes_read_back_the_same)
{
    struct text json = TEXT_INIT;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char bytes[3] = {(char)(pair >> 8), (char)pair, '\0'};
        struct diag diag = diag_start(NULL, NULL);
        if (!bytes[0] || !bytes[1])
            continue; /* the reader takes no NUL */
        json.len = 0;
        text_json(&json, (struct strview){bytes, 2});
        struct json_reader *reader =
            json_reader_from_text("x", (struct strview){json.bytes, json.len}, NULL);
        struct json_event event = json_next(reader, &diag);
        assert_int_equal(event.kind, JSON_STRING);
        const char *end = bytes + 2;
        bool is_valid = utf8_next(bytes, end, NULL) == 2 ||
                        (utf8_next(bytes, end, NULL) == 1 && utf8_next(bytes + 1, end, NULL) == 1);
        if (is_valid)
            assert_true(sv_is(event.text, bytes));
        else
            assert_true(event.text.len >= 3); /* a replacement character at least */
        assert_int_equal(json_next(reader, &diag).kind, JSON_END);
        json_reader_free(reader);
    }
    text_release(&json);
}

RUN_TESTS(cmocka_unit_test(a_compact_document_has_no_blanks),
          cmocka_unit_test(a_spaced_document_has_a_blank_behind_commas_and_colons),
          cmocka_unit_test(a_line_starts_in_place_of_the_blank_and_not_in_an_empty_array),
          cmocka_unit_test(raw_bytes_are_a_value_or_members_of_the_open_object),
          cmocka_unit_test(a_text_that_fails_says_so_and_the_writer_goes_on),
          cmocka_unit_test(nesting_as_deep_as_allowed_closes_in_order),
          cmocka_unit_test(documents_of_random_shape_are_read_as_they_were_written),
          cmocka_unit_test(a_broken_document_is_not_copied_as_a_whole),
          cmocka_unit_test(json_strings_escape_what_they_must),
          cmocka_unit_test(json_strings_of_any_two_bytes_read_back_the_same))
