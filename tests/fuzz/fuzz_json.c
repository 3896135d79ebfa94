/* fuzz_json.c - any bytes, as a JSON document.
 * Read whole and in pieces they give the same events, places and error, under the default limits and
 * under tiny ones; skipping accepts what reading accepts; a place points at what its event says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/check.h"
#include "json/json_reader.h"

/* Pieces of 1 to 7 bytes, decided by the document so that a crash can be replayed. */
struct pieces {
    struct strview left;
    unsigned state;
};

static ssize_t read_piece(void *ctx, char *buf, size_t cap)
{
    struct pieces *pieces = ctx;
    pieces->state = pieces->state * 1103515245u + 12345u;
    size_t want = 1 + (pieces->state >> 16) % 7;
    struct strview piece = sv_sub(pieces->left, 0, want < cap ? want : cap);
    if (piece.len)
        memcpy(buf, piece.at, piece.len);
    pieces->left = sv_sub(pieces->left, piece.len, pieces->left.len);
    return (ssize_t)piece.len;
}

static void check_text(struct strview text)
{
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_next(text.at + i, text.at + text.len, NULL);
        CHECK(len > 0 && text.at[i] != '\0');
        i += len;
    }
}

/* The byte that the place points at, -1 past the end of its line. */
static int byte_at(struct place at)
{
    struct strview line = source_line(at.source, at.line);
    size_t byte = 0;
    for (int32_t column = 1; column < at.column && byte < line.len; column++)
        byte += utf8_next(line.at + byte, line.at + line.len, NULL);
    return byte < line.len ? (unsigned char)line.at[byte] : -1;
}

static void check_place(struct json_event event)
{
    static const char starts[] = "{}[]\"\"0tfn";
    if (event.kind == JSON_FAILED)
        return;
    int c = byte_at(event.at);
    if (event.kind == JSON_END)
        CHECK(c == -1);
    else if (event.kind == JSON_NUMBER)
        CHECK(c == event.text.at[0]);
    else
        CHECK(c == starts[event.kind]);
}

static void check_same(struct json_event a, struct json_event b)
{
    CHECK(a.kind == b.kind && sv_equal(a.text, b.text));
    CHECK(a.at.line == b.at.line && a.at.column == b.at.column && a.at.length == b.at.length);
}

/* Whether the document is accepted. */
static bool read_both_ways(struct strview document, const struct json_limits *limits)
{
    enum { SMALL = 2000 }; /* looking a place up costs the whole document */
    struct pieces pieces = {document, (unsigned)document.len};
    struct json_reader *whole = json_reader_from_text("whole", document, limits);
    struct json_reader *parts = json_reader_new("parts", read_piece, &pieces, limits);
    struct roost_error whole_err, parts_err;
    struct diag whole_diag = diag_start(NULL, &whole_err);
    struct diag parts_diag = diag_start(NULL, &parts_err);
    struct json_event event;
    CHECK(whole && parts);
    do {
        event = json_next(whole, &whole_diag);
        check_same(event, json_next(parts, &parts_diag));
        check_text(event.text);
        if (document.len <= SMALL)
            check_place(event);
    } while (event.kind < JSON_END);
    CHECK(whole_err.code == parts_err.code && whole_err.line == parts_err.line);
    CHECK(whole_err.column == parts_err.column);
    CHECK(strcmp(whole_err.message, parts_err.message) == 0);
    CHECK(strcmp(whole_err.hint, parts_err.hint) == 0);
    CHECK((event.kind == JSON_FAILED) == (whole_err.code != ROOST_OK));
    CHECK(json_next(whole, &whole_diag).kind == event.kind);
    json_reader_free(whole);
    json_reader_free(parts);
    return event.kind == JSON_END;
}

static bool is_skipped(struct strview document)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct json_reader *reader = json_reader_from_text("skipped", document, NULL);
    CHECK(reader);
    json_next(reader, &diag);
    bool is_good =
        json_skip(reader, &diag) == ROOST_OK && json_next(reader, &diag).kind == JSON_END;
    json_reader_free(reader);
    return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct json_limits tiny = {
        .max_bytes = 100, .max_depth = 3, .max_string = 8, .max_keys = 12};
    struct strview document = {(const char *)data, size};
    CHECK(read_both_ways(document, NULL) == is_skipped(document));
    read_both_ways(document, &tiny);
    return 0;
}
