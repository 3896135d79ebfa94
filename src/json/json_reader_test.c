/* json_reader_test.c - events, places and every message, whole and in pieces. */
#include "json/json_reader.h"

#include <errno.h>
#include <stdio.h>

#include "base/text.h"
#include "tests/unit.h"

/* A stream of pieces: the first has `first` bytes, the others `size`. Fails with `fault` at its end
 * when there is one. */
struct pieces {
    struct strview left;
    size_t first, size;
    int fault;
    bool is_interrupted;
    int calls_after_end;
};

static ssize_t read_piece(void *ctx, char *buf, size_t cap)
{
    struct pieces *pieces = ctx;
    size_t want = pieces->first ? pieces->first : pieces->size;
    pieces->first = 0;
    pieces->is_interrupted = !pieces->is_interrupted;
    if (pieces->is_interrupted) {
        errno = EINTR;
        return -1;
    }
    if (pieces->left.len == 0 && pieces->fault) {
        errno = pieces->fault;
        return -1;
    }
    pieces->calls_after_end += pieces->left.len == 0;
    struct strview piece = sv_sub(pieces->left, 0, want < cap ? want : cap);
    memcpy(buf, piece.at, piece.len);
    pieces->left = sv_sub(pieces->left, piece.len, pieces->left.len);
    return (ssize_t)piece.len;
}

static struct diag quiet(struct roost_error *err)
{
    return diag_start(NULL, err);
}

/* All events in one line, as `kind'text'`, with their places when they are wanted; a fault is
 * `line:column: message (hint)`. */
static void describe(struct json_reader *reader, bool has_places, struct text *out)
{
    static const char *const marks[] = {"{", "}",    "[",     "]",    "k", "s",
                                        "n", "true", "false", "null", ".", "!"};
    struct roost_error err;
    struct diag diag = quiet(&err);
    assert_non_null(reader);
    out->len = 0;
    for (;;) {
        struct json_event event = json_next(reader, &diag);
        text_puts(out, marks[event.kind]);
        if (event.kind == JSON_KEY || event.kind == JSON_STRING || event.kind == JSON_NUMBER)
            text_printf(out, "'%.*s'", (int)event.text.len, event.text.at);
        if (event.kind == JSON_FAILED)
            text_printf(out, " %s %d:%d: %s (%s)", roost_code_word(err.code), err.line, err.column,
                        err.message, err.hint);
        else if (has_places)
            text_printf(out, "@%d:%d+%d", event.at.line, event.at.column, event.at.length);
        if (event.kind >= JSON_END)
            break;
        text_char(out, ' ');
    }
    assert_int_equal(json_next(reader, &diag).kind,
                     out->bytes[out->len - 1] == '.' || diag.errors == 0 ? JSON_END : JSON_FAILED);
    assert_int_equal(diag.errors, err.code != ROOST_OK);
    json_reader_free(reader);
}

/* Reads the document whole, then in every way of two pieces, then byte by byte. */
static void check_with(struct strview document, const struct json_limits *limits, bool has_places,
                       const char *expected)
{
    struct text got = TEXT_INIT;
    describe(json_reader_from_text("d.json", document, limits), has_places, &got);
    assert_string_equal(text_string(&got), expected);
    for (size_t first = 0; first <= document.len; first++) {
        struct pieces pieces = {.left = document, .first = first, .size = first ? document.len : 1};
        describe(json_reader_new("d.json", read_piece, &pieces, limits), has_places, &got);
        assert_string_equal(text_string(&got), expected);
        assert_in_range(pieces.calls_after_end, 0, 1);
    }
    text_release(&got);
}

static void check(struct strview document, const char *expected)
{
    check_with(document, NULL, false, expected);
}

TEST(values_of_every_kind_become_events)
{
    check(SV("{}"), "{ } .");
    check(SV(" [ ] "), "[ ] .");
    check(SV("true"), "true .");
    check(SV("\r\n\t false\n"), "false .");
    check(SV("null "), "null .");
    check(SV("\"a\""), "s'a' .");
    check(SV("\"\""), "s'' .");
    check(SV("0"), "n'0' .");
    check(SV("[1,2]"), "[ n'1' n'2' ] .");
    check(SV("[[],[[]],{}]"), "[ [ ] [ [ ] ] { } ] .");
    check(SV("{\"a\":{\"b\":[null,{\"a\":1}]},\"\":true}"),
          "{ k'a' { k'b' [ null { k'a' n'1' } ] } k'' true } .");
}

TEST(numbers_keep_their_own_text)
{
    check(SV("[0, -0, 12, -7, 0.50, 1e9, 1E+2, 1.5e-3, 9007199254740993, 1e999]"),
          "[ n'0' n'-0' n'12' n'-7' n'0.50' n'1e9' n'1E+2' n'1.5e-3' n'9007199254740993' n'1e999' "
          "] .");
}

TEST(strings_are_unescaped_to_utf8)
{
    check(SV("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), "s'\"\\/\b\f\n\r\t' .");
    check(SV("\"\\u0041\\u00e9\\u20AC\\ud83e\\udd16\\uFFFF\""),
          "s'A\xc3\xa9\xe2\x82\xac\xf0\x9f\xa4\x96\xef\xbf\xbf' .");
    check(SV("[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\xa4\x96\x7f\", \"plain text of more than a word\"]"),
          "[ s'\xc3\xa9\xe2\x82\xac\xf0\x9f\xa4\x96\x7f' s'plain text of more than a word' ] .");
    check(SV("{\"a\\tb\": \"long enough for words\\\\ and after\"}"),
          "{ k'a\tb' s'long enough for words\\ and after' } .");
}

TEST(places_count_characters_and_lines_as_source_h_does)
{
    check_with(
        SV("{\"\xc3\xa9\xc3\xa9\":1,\n \"b\" : [true,\r\n\"x\\u00e9\"], \r\"c\":\"\xe2\x80\xa8"
           "z\", \"d\":-1.5}\n"),
        NULL, true,
        "{@1:1+1 k'\xc3\xa9\xc3\xa9'@1:2+4 n'1'@1:7+1 k'b'@2:2+3 [@2:8+1 true@2:9+4 "
        "s'x\xc3\xa9'@3:1+9 ]@3:10+1 k'c'@4:1+3 s'\xe2\x80\xa8z'@4:5+4 k'd'@5:5+3 "
        "n'-1.5'@5:9+4 }@5:13+1 .@6:1+1");
}

TEST(a_place_points_into_the_source_text)
{
    struct strview document = SV("[\"\xe2\x80\xa8\xc2\x85\",\r\r\n7, \"\xc3\xa9\", 8]");
    struct json_reader *reader = json_reader_from_text("d.json", document, NULL);
    struct roost_error err;
    struct diag diag = quiet(&err);
    for (struct json_event event; (event = json_next(reader, &diag)).kind != JSON_END;) {
        if (event.kind != JSON_NUMBER)
            continue;
        size_t offset = sv_find(document, event.text.at[0], 0);
        struct place place = source_place(event.at.source, offset, 1);
        assert_int_equal(event.at.line, place.line);
        assert_int_equal(event.at.column, place.column);
    }
    json_reader_free(reader);
}

struct fault {
    struct strview document;
    const char *expected;
};

static void check_faults(const struct fault *faults, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(faults[i].document, faults[i].expected);
}
#define CHECK_FAULTS(faults) check_faults(faults, sizeof(faults) / sizeof *(faults))

TEST(what_stands_in_a_wrong_place_is_refused_with_what_was_expected)
{
    static const struct fault faults[] = {
        {SV(""), "! syntax 1:1: expected a value, but the document is empty (write a value, such "
                 "as {\"key\": \"value\"})"},
        {SV(" \n "), "! syntax 2:2: expected a value, but the document is empty (write a value, "
                     "such as {\"key\": \"value\"})"},
        {SV("]"), "! syntax 1:1: expected a value, found ']' (remove it)"},
        {SV("1 2"), "n'1' ! syntax 1:3: expected the end of the document, found '2' (remove all "
                    "that follows the first value)"},
        {SV("{}\n,"), "{ } ! syntax 2:1: expected the end of the document, found ',' (remove all "
                      "that follows the first value)"},
        {SV("[1\n"), "[ n'1' ! syntax 2:1: expected ',' or ']', but the document ends "
                     "(the array that starts at 1:1 is not closed)"},
        {SV("[[1}"), "[ [ n'1' ! syntax 1:4: expected ',' or ']', found '}' "
                     "(the array that starts at 1:2 is not closed)"},
        {SV("[1 2]"), "[ n'1' ! syntax 1:4: expected ',' or ']', found '2' "
                      "(put ',' between two values)"},
        {SV("[\"a\" \"b\"]"), "[ s'a' ! syntax 1:6: expected ',' or ']', found '\"' "
                              "(put ',' between two values)"},
        {SV("[\"a\":1]"), "[ s'a' ! syntax 1:5: expected ',' or ']', found ':' (put { } around a "
                          "key and its value)"},
        {SV("[1,]"), "[ n'1' ! syntax 1:4: expected a value after ',', found ']' (remove the ',')"},
        {SV("[,1]"), "[ ! syntax 1:2: expected a value or ']', found ',' (remove it)"},
        {SV("[\xc3\xa9]"), "[ ! syntax 1:2: expected a value or ']', found '\xc3\xa9' (strings are "
                           "written in double quotes)"},
        {SV("[\x01]"), "[ ! syntax 1:2: expected a value or ']', found '\\x01' (remove it)"},
        {SV("[\0]"), "[ ! syntax 1:2: expected a value or ']', found '\\x00' (remove it)"},
        {SV("['a']"), "[ ! syntax 1:2: expected a value or ']', found ''' "
                      "(strings are written in double quotes)"},
        {SV("{a: 1}"), "{ ! syntax 1:2: expected a key in double quotes or '}', found 'a' "
                       "(write \"a\")"},
        {SV("{\"a\": 1,}"), "{ k'a' n'1' ! syntax 1:9: expected a key in double quotes after ',', "
                            "found '}' (remove the ',')"},
        {SV("{\"a\" 1}"), "{ k'a' ! syntax 1:6: expected ':' after the key, found '1' (put ':' "
                          "between a key and its value)"},
        {SV("{\"a\":}"), "{ k'a' ! syntax 1:6: expected a value after ':', found '}' (write a "
                         "value behind the ':', such as null)"},
        {SV("{\"a\":1 \"b\":2}"), "{ k'a' n'1' ! syntax 1:8: expected ',' or '}', found '\"' "
                                  "(put ',' between two values)"},
        {SV("{"), "{ ! syntax 1:2: expected a key in double quotes or '}', but the document ends "
                  "(the object that starts at 1:1 is not closed)"},
        {SV("[1, // one"), "[ n'1' ! syntax 1:5: expected a value after ',', found '/' "
                           "(JSON has no comments)"},
        {SV("# one"), "! syntax 1:1: expected a value, found '#' (JSON has no comments)"},
    };
    CHECK_FAULTS(faults);
}

TEST(words_of_other_languages_are_refused_with_the_right_one)
{
    static const struct fault faults[] = {
        {SV("True"), "! syntax 1:1: expected a value, found 'True' (write true)"},
        {SV("[FALSE]"), "[ ! syntax 1:2: expected a value or ']', found 'FALSE' (write false)"},
        {SV("None"), "! syntax 1:1: expected a value, found 'None' (write null)"},
        {SV("truefalse"), "! syntax 1:1: expected a value, found 'truefalse' "
                          "(strings are written in double quotes)"},
        {SV("tru"), "! syntax 1:1: expected a value, found 'tru' "
                    "(strings are written in double quotes)"},
        {SV("NaN"), "! syntax 1:1: expected a value, found 'NaN' "
                    "(JSON has no such number; write null)"},
        {SV("Infinity"), "! syntax 1:1: expected a value, found 'Infinity' "
                         "(JSON has no such number; write null)"},
    };
    CHECK_FAULTS(faults);
}

TEST(numbers_that_json_does_not_have_are_refused)
{
#define LIKE " (numbers look like -12, 0.5 or 1e9)"
    static const struct fault faults[] = {
        {SV("007"), "! syntax 1:1: number '007' has a leading zero" LIKE},
        {SV("-01"), "! syntax 1:1: number '-01' has a leading zero" LIKE},
        {SV("[+1]"), "[ ! syntax 1:2: number '+1' starts with '+'" LIKE},
        {SV(".5"), "! syntax 1:1: number '.5' has no digit before its point" LIKE},
        {SV("1."), "! syntax 1:1: number '1.' has no digit after its point" LIKE},
        {SV("1.e5"), "! syntax 1:1: number '1.e5' has no digit after its point" LIKE},
        {SV("1e"), "! syntax 1:1: number '1e' has no digit in its exponent" LIKE},
        {SV("1E+"), "! syntax 1:1: number '1E+' has no digit in its exponent" LIKE},
        {SV("-"), "! syntax 1:1: number '-' has no digits" LIKE},
        {SV("-Infinity"), "! syntax 1:1: number '-Infinity' has no digits" LIKE},
        {SV("0x10"), "! syntax 1:1: number '0x10' is not written as JSON writes numbers" LIKE},
        {SV("1_000"), "! syntax 1:1: number '1_000' is not written as JSON writes numbers" LIKE},
        {SV("1.2.3"), "! syntax 1:1: number '1.2.3' is not written as JSON writes numbers" LIKE},
    };
    CHECK_FAULTS(faults);
}

TEST(strings_that_are_not_json_are_refused)
{
#define HALVES " (write the character itself, or both halves)"
    static const struct fault faults[] = {
        {SV("[\n \"abc"), "[ ! syntax 2:2: this string is not closed before the document ends "
                          "(close it with '\"')"},
        {SV("\"a\\"), "! syntax 1:1: this string is not closed before the document ends "
                      "(close it with '\"')"},
        {SV("\"a\nb\""), "! syntax 1:3: control character U+000A in a string "
                         "(close the string with '\"', or write '\\n')"},
        {SV("\"a\rb\""), "! syntax 1:3: control character U+000D in a string "
                         "(close the string with '\"', or write '\\r')"},
        {SV("\"\t\""), "! syntax 1:2: control character U+0009 in a string "
                       "(write '\\u0009')"},
        {SV("\"\0\""), "! syntax 1:2: control character U+0000 in a string "
                       "(remove it)"},
        {SV("\"\\x41\""), "! syntax 1:2: '\\x' is not an escape "
                          "(a backslash itself is written '\\\\')"},
        {SV("\"\\\xc3\xa9\""), "! syntax 1:2: '\\\xc3\xa9' is not an escape "
                               "(a backslash itself is written '\\\\')"},
        {SV("\"\\u12G4\""),
         "! syntax 1:2: '\\u12' is not an escape (four hex digits follow '\\u')"},
        {SV("\"\\u12"), "! syntax 1:2: '\\u12' is not an escape (four hex digits follow '\\u')"},
        {SV("\"\\u0000\""), "! syntax 1:2: '\\u0000' stands for NUL, which no text here may have "
                            "(remove it)"},
        {SV("\"\xc3\xa9\\ud83e\""),
         "! syntax 1:3: '\\ud83e' is the first half of a character without the second" HALVES},
        {SV("\"\\ud83e\\u0041\""),
         "! syntax 1:2: '\\ud83e' is the first half of a character without the second" HALVES},
        {SV("\"\\uDC00\""),
         "! syntax 1:2: '\\uDC00' is the second half of a character without the first" HALVES},
    };
    CHECK_FAULTS(faults);
}

TEST(bytes_that_are_not_utf8_are_refused)
{
#define SAVE " (save the document as UTF-8)"
    static const struct fault faults[] = {
        {SV("\"\xff\""), "! syntax 1:2: byte 0xff is not UTF-8" SAVE},
        {SV("\"a\xc3\xa9\xc3\""), "! syntax 1:4: byte 0xc3 is not UTF-8" SAVE},
        {SV("\"\xc0\xaf\""), "! syntax 1:2: byte 0xc0 is not UTF-8" SAVE},
        {SV("\"\xed\xa0\x80\""), "! syntax 1:2: byte 0xed is not UTF-8" SAVE},
        {SV("\"\xf4\x90\x80\x80\""), "! syntax 1:2: byte 0xf4 is not UTF-8" SAVE},
        {SV("\"\\\xff\""), "! syntax 1:3: byte 0xff is not UTF-8" SAVE},
        {SV("[\xe2\x82"), "[ ! syntax 1:2: byte 0xe2 is not UTF-8" SAVE},
        {SV("\xff\xfe{\0}\0"), "! syntax 1:1: byte 0xff is not UTF-8" SAVE},
        {SV("\xef\xbb\xbf{}"), "! syntax 1:1: the document starts with a byte order mark "
                               "(save it as UTF-8 without the mark)"},
    };
    CHECK_FAULTS(faults);
}

TEST(a_key_that_comes_twice_is_refused_with_both_places)
{
    check(SV("{\"a\":1,\n \"b\":2,\n\"\\u0061\":3}"),
          "{ k'a' n'1' k'b' n'2' ! syntax 3:1: key 'a' is already in this object, at 1:2 "
          "(keep one of the two)");
    check(SV("{\"\":{\"\":1},\"x\":{\"\":1},\"\":2}"),
          "{ k'' { k'' n'1' } k'x' { k'' n'1' } ! syntax 1:23: key '' is already in this object, "
          "at 1:2 (keep one of the two)");
}

/* {"k0":0,"k1":{"k0":0,...},...,"LAST":0}: the inner object has as many keys as the outer one. */
static void build_object(struct text *out, int key_count, int inner_count, const char *last)
{
    text_char(out, '{');
    for (int i = 0; i < key_count; i++) {
        text_printf(out, "\"k%d\":", i);
        if (i == 1 && inner_count)
            build_object(out, inner_count, 0, "last");
        else
            text_int(out, i);
        text_char(out, ',');
    }
    text_printf(out, "\"%s\":0}", last);
}

TEST(keys_of_large_objects_are_compared_too)
{
    static const int counts[] = {1, 15, 16, 17, 31, 32, 33, 1000, 20000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int same = -1; same < counts[i]; same += 1 + counts[i] / 7) {
            struct text document = TEXT_INIT, got = TEXT_INIT;
            char last[16], fault[64];
            snprintf(last, sizeof last, "k%d", same);
            snprintf(fault, sizeof fault, "key 'k%d' is already in this object", same);
            build_object(&document, counts[i], counts[i], last);
            struct strview text = {document.bytes, document.len};
            describe(json_reader_from_text("d.json", text, NULL), false, &got);
            assert_int_equal(strstr(text_string(&got), fault) != NULL, same >= 0);
            text_release(&document);
            text_release(&got);
        }
    }
}

TEST(limits_are_met_exactly)
{
    static const struct {
        struct json_limits limits;
        struct strview document;
        const char *expected;
    } cases[] = {
        {{.max_bytes = 3}, SV("[1]"), "[ n'1' ] ."},
        {{.max_bytes = 3},
         SV("[1] "),
         "[ n'1' ] ! limit 1:4: the document is larger than 3 bytes (leave out what its reader "
         "does not need)"},
        {{.max_bytes = 3},
         SV("[11]"),
         "[ ! limit 1:4: the document is larger than 3 bytes (leave out what its reader does not "
         "need)"},
        {{.max_bytes = 3},
         SV("[[]x"),
         "[ [ ] ! limit 1:4: the document is larger than 3 bytes (leave out what its reader does "
         "not need)"},
        {{.max_depth = 2}, SV("[{}]"), "[ { } ] ."},
        {{.max_depth = 2},
         SV("[{\"a\":[]}]"),
         "[ { k'a' ! limit 1:7: more than 2 objects and arrays inside each other (take some of the "
         "levels out)"},
        {{.max_string = 4},
         SV("[\"abcd\", \"\xf0\x9f\xa4\x96\", 1234, \"\\u0061bcd\"]"),
         "[ s'abcd' s'\xf0\x9f\xa4\x96' n'1234' s'abcd' ] ."},
        {{.max_string = 4},
         SV("[\"abcde\"]"),
         "[ ! limit 1:2: this string is longer than 4 bytes (shorten it)"},
        {{.max_string = 4},
         SV("[\"abcde\n"),
         "[ ! limit 1:2: this string is longer than 4 bytes (shorten it)"},
        {{.max_string = 4},
         SV("[\"abc\\u00e9\"]"),
         "[ ! limit 1:2: this string is longer than 4 bytes (shorten it)"},
        {{.max_string = 4},
         SV("{\"\xc3\xa9\xc3\xa9\xc3\xa9\":0}"),
         "{ ! limit 1:2: this string is longer than 4 bytes (shorten it)"},
        {{.max_string = 4},
         SV("[12345]"),
         "[ ! limit 1:2: this number is longer than 4 bytes (shorten it)"},
        {{.max_string = 4},
         SV("False"),
         "! limit 1:1: this word is longer than 4 bytes (shorten it)"},
        {{.max_keys = 4},
         SV("[{\"ab\":{\"cd\":0},\"ef\":0},{\"abcd\":0}]"),
         "[ { k'ab' { k'cd' n'0' } k'ef' n'0' } { k'abcd' n'0' } ] ."},
        {{.max_keys = 4},
         SV("{\"ab\":{\"cde\":0}}"),
         "{ k'ab' { ! limit 1:8: the keys of the objects open here are longer than 4 bytes "
         "together "
         "(use fewer or shorter keys, or an array)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_with(cases[i].document, &cases[i].limits, false, cases[i].expected);
}

TEST(limits_that_are_not_given_are_the_defaults)
{
    struct text document = TEXT_INIT, got = TEXT_INIT;
    text_repeat(&document, '[', 33);
    describe(json_reader_from_text("d.json", (struct strview){document.bytes, document.len}, NULL),
             false, &got);
    assert_string_equal(text_string(&got) + 64, "! limit 1:33: more than 32 objects and arrays "
                                                "inside each other (take some of the levels out)");
    for (int extra = 0; extra < 2; extra++) {
        document.len = 0;
        text_char(&document, '"');
        text_repeat(&document, 'x', 65536 + extra);
        text_char(&document, '"');
        struct strview text = {document.bytes, document.len};
        describe(json_reader_from_text("d.json", text, &(struct json_limits){0}), false, &got);
        if (extra)
            assert_string_equal(text_string(&got),
                                "! limit 1:1: this string is longer than 65536 bytes (shorten it)");
        else
            assert_int_equal(got.len, 65536 + strlen("s'' ."));
    }
    text_release(&document);
    text_release(&got);
}

TEST(a_read_that_fails_is_told_in_words_and_without_a_place)
{
    struct pieces pieces = {.left = SV("[1, "), .size = 2, .fault = EIO};
    struct text got = TEXT_INIT;
    describe(json_reader_new("d.json", read_piece, &pieces, NULL), false, &got);
    assert_string_equal(text_string(&got), "[ n'1' ! io 0:0: cannot read: Input/output error ()");
    text_release(&got);
}

TEST(a_document_larger_than_the_buffer_reads_the_same_in_all_pieces)
{
    struct text document = TEXT_INIT, whole = TEXT_INIT, got = TEXT_INIT;
    text_char(&document, '[');
    for (int i = 0; i < 6000; i++) {
        text_printf(&document, "{\"node_rank\": %d, \"name\": \"h\xc3\xb6st\\n%d\",\r\n", i, i);
        text_repeat(&document, ' ', i % 17);
        text_printf(&document, "\"ok\":\ttrue}%s", i < 5999 ? "," : "]");
    }
    struct strview text = {document.bytes, document.len};
    assert_true(text.len > 5 * 65536);
    describe(json_reader_from_text("d.json", text, NULL), true, &whole);
    assert_null(strchr(text_string(&whole), '!'));
    static const size_t sizes[] = {1, 7, 4096, 65535, 65536, 1 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct pieces pieces = {.left = text, .size = sizes[i]};
        describe(json_reader_new("d.json", read_piece, &pieces, NULL), true, &got);
        assert_string_equal(text_string(&got), text_string(&whole));
    }
    text_release(&document);
    text_release(&whole);
    text_release(&got);
}

TEST(the_report_of_a_document_in_memory_shows_the_line)
{
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct diag diag = diag_start(report, &err);
    struct json_reader *reader = json_reader_from_text("d.json", SV("{\n  \"a\": 0x10\n}"), NULL);
    while (json_next(reader, &diag).kind < JSON_END)
        ;
    json_reader_free(reader);
    const struct roost_diagnostic *entry = roost_report_at(report, 0);
    assert_string_equal(entry->file, "d.json");
    assert_string_equal(entry->source_line, "  \"a\": 0x10");
    assert_int_equal(entry->column, 8);
    assert_int_equal(entry->length, 4);
    roost_report_free(report);
}

TEST(skipping_ends_after_the_value)
{
    struct json_reader *reader = json_reader_from_text(
        "d.json", SV("{\"a\":[1,{\"b\":[]}],\"c\":2,\"d\":{\"e\":{}}} "), NULL);
    struct roost_error err;
    struct diag diag = quiet(&err);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_int_equal(json_next(reader, &diag).kind, JSON_OBJECT);
    assert_int_equal(json_next(reader, &diag).kind, JSON_KEY);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_true(sv_is(json_next(reader, &diag).text, "c"));
    assert_int_equal(json_next(reader, &diag).kind, JSON_NUMBER);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_true(sv_is(json_next(reader, &diag).text, "d"));
    assert_int_equal(json_next(reader, &diag).kind, JSON_OBJECT);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_int_equal(json_next(reader, &diag).kind, JSON_OBJECT_END);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    assert_int_equal(json_next(reader, &diag).kind, JSON_END);
    assert_int_equal(json_skip(reader, &diag), ROOST_OK);
    json_reader_free(reader);
}

TEST(skipping_finds_faults)
{
    struct json_reader *reader = json_reader_from_text("d.json", SV("[[1,{\"a\":01}]]"), NULL);
    struct roost_error err;
    struct diag diag = quiet(&err);
    assert_int_equal(json_next(reader, &diag).kind, JSON_ARRAY);
    assert_int_equal(json_skip(reader, &diag), ROOST_ERR_SYNTAX);
    assert_int_equal(json_skip(reader, &diag), ROOST_ERR_SYNTAX);
    assert_int_equal(json_next(reader, &diag).kind, JSON_FAILED);
    assert_int_equal(diag.errors, 1);
    assert_int_equal(err.column, 10);
    json_reader_free(reader);
}

TEST(integers_are_exact_or_refused)
{
    static const struct {
        const char *text;
        int64_t min, max;
        bool is_taken;
        int64_t value;
    } cases[] = {
        {"0", 0, 9, true, 0},
        {"9", 0, 9, true, 9},
        {"10", 0, 9, false, 0},
        {"-1", 0, 9, false, 0},
        {"-1", -1, 9, true, -1},
        {"-0", -1, 9, false, 0},
        {"1.0", 0, 9, false, 0},
        {"1e2", 0, 999, false, 0},
        {"9007199254740993", 0, INT64_MAX, true, INT64_C(9007199254740993)},
        {"9223372036854775807", 0, INT64_MAX, true, INT64_MAX},
        {"9223372036854775808", 0, INT64_MAX, false, 0},
        {"-9223372036854775808", INT64_MIN, 0, true, INT64_MIN},
        {"-9223372036854775809", INT64_MIN, 0, false, 0},
        {"99999999999999999999999999", 0, INT64_MAX, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct json_event event = {.kind = JSON_NUMBER, .text = sv_from(cases[i].text)};
        int64_t value = 42;
        assert_int_equal(json_int(event, cases[i].min, cases[i].max, &value), cases[i].is_taken);
        assert_int_equal(value, cases[i].is_taken ? cases[i].value : 42);
    }
    struct json_event string = {.kind = JSON_STRING, .text = SV("1")};
    int64_t value;
    assert_false(json_int(string, 0, 9, &value));
}

TEST(kinds_have_words)
{
    static const char *const words[] = {"an object",
                                        "the end of an object",
                                        "an array",
                                        "the end of an array",
                                        "a key",
                                        "a string",
                                        "a number",
                                        "true",
                                        "false",
                                        "null",
                                        "the end of the document",
                                        "nothing"};
    for (int kind = JSON_OBJECT; kind <= JSON_FAILED; kind++)
        assert_string_equal(json_kind_words((enum json_kind)kind), words[kind]);
    json_reader_free(NULL);
}

RUN_TESTS(cmocka_unit_test(values_of_every_kind_become_events),
          cmocka_unit_test(numbers_keep_their_own_text),
          cmocka_unit_test(strings_are_unescaped_to_utf8),
          cmocka_unit_test(places_count_characters_and_lines_as_source_h_does),
          cmocka_unit_test(a_place_points_into_the_source_text),
          cmocka_unit_test(what_stands_in_a_wrong_place_is_refused_with_what_was_expected),
          cmocka_unit_test(words_of_other_languages_are_refused_with_the_right_one),
          cmocka_unit_test(numbers_that_json_does_not_have_are_refused),
          cmocka_unit_test(strings_that_are_not_json_are_refused),
          cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
          cmocka_unit_test(a_key_that_comes_twice_is_refused_with_both_places),
          cmocka_unit_test(keys_of_large_objects_are_compared_too),
          cmocka_unit_test(limits_are_met_exactly),
          cmocka_unit_test(limits_that_are_not_given_are_the_defaults),
          cmocka_unit_test(a_read_that_fails_is_told_in_words_and_without_a_place),
          cmocka_unit_test(a_document_larger_than_the_buffer_reads_the_same_in_all_pieces),
          cmocka_unit_test(the_report_of_a_document_in_memory_shows_the_line),
          cmocka_unit_test(skipping_ends_after_the_value), cmocka_unit_test(skipping_finds_faults),
          cmocka_unit_test(integers_are_exact_or_refused), cmocka_unit_test(kinds_have_words))
