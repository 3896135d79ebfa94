/* json_reader.c - the grammar of JSON as a machine that stops after every event.
 * Its state is the stack of open objects and arrays and the next step; bytes come from json_input.c. The
 * text of an event may lie in the buffer, so nothing may be read between finding and returning it. That is
 * why the ':' after a key is read only by the next call. */
#include "json/json_reader.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_reader_internal.h"

struct json_level *json_innermost(const struct json_reader *reader)
{
    return reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
}

/* Events are made in one go and handed straight up: pieces that are put together in memory and
 * copied afterwards cost a fifth of the reader's speed. */
static struct json_event give(struct json_reader *reader, enum json_kind kind, struct strview text,
                              struct place at)
{
    reader->last = kind;
    return (struct json_event){kind, text, at};
}

static struct json_event give_up(struct json_reader *reader)
{
    return give(reader, JSON_FAILED, SV(""), NOWHERE);
}

static struct json_event refuse(struct json_reader *reader, struct diag *diag)
{
    json_refuse_next(reader, diag);
    return give_up(reader);
}

static struct json_event open_level(struct json_reader *reader, struct diag *diag)
{
    struct place at = json_place(reader);
    if (reader->depth == reader->limits.max_depth) {
        diag_error(diag, ROOST_ERR_LIMIT, at, "more than %d objects and arrays inside each other",
                   reader->limits.max_depth);
        diag_hint(diag, "take some of the levels out");
        json_fail(reader, ROOST_ERR_LIMIT);
        return give_up(reader);
    }
    bool is_object = *reader->at++ == '{';
    assert(reader->levels); /* room for max_depth was taken at the start */
    reader->levels[reader->depth++] = (struct json_level){
        .is_object = is_object,
        .at = at,
        .first_key = reader->key_count,
        .first_byte = reader->key_bytes.len,
    };
    reader->step = is_object ? JSON_STEP_FIRST_KEY : JSON_STEP_FIRST_ITEM;
    return give(reader, is_object ? JSON_OBJECT : JSON_ARRAY, SV(""), at);
}

static struct json_event close_level(struct json_reader *reader)
{
    struct json_level *level = json_innermost(reader);
    struct place at = json_place(reader);
    json_keys_close(reader, level);
    reader->depth--;
    reader->at++;
    reader->step = JSON_STEP_AFTER_VALUE;
    return give(reader, level->is_object ? JSON_OBJECT_END : JSON_ARRAY_END, SV(""), at);
}

static struct json_event read_key(struct json_reader *reader, struct diag *diag)
{
    struct place at = json_place(reader);
    size_t start = json_chars(reader);
    if (json_peek(reader) != '"')
        return refuse(reader, diag);
    struct strview key = json_string(reader, diag);
    at.length = json_length(reader, start);
    if (!key.at || !json_keys_add(reader, key, at, diag))
        return give_up(reader);
    reader->step = JSON_STEP_COLON;
    return give(reader, JSON_KEY, key, at);
}

static struct json_event read_string(struct json_reader *reader, struct diag *diag)
{
    struct place at = json_place(reader);
    size_t start = json_chars(reader);
    struct strview text = json_string(reader, diag);
    if (!text.at)
        return give_up(reader);
    at.length = json_length(reader, start);
    reader->step = JSON_STEP_AFTER_VALUE;
    return give(reader, JSON_STRING, text, at);
}

static struct json_event read_word(struct json_reader *reader, struct diag *diag)
{
    struct place at = json_place(reader);
    struct strview word = json_word(reader, diag);
    if (!word.at)
        return give_up(reader);
    at.length = json_clamp(word.len);
    enum json_kind kind = json_word_kind(word);
    if (kind == JSON_FAILED) {
        json_refuse_word(reader, word, at, diag);
        return give_up(reader);
    }
    reader->step = JSON_STEP_AFTER_VALUE;
    return give(reader, kind, word, at);
}

static struct json_event read_value(struct json_reader *reader, struct diag *diag)
{
    int c = json_peek(reader);
    if (c == '"')
        return read_string(reader, diag);
    if (c == '{' || c == '[')
        return open_level(reader, diag);
    return json_is_word(c) ? read_word(reader, diag) : refuse(reader, diag);
}

/* Steps over the ':' or ',' that must or may come before the next event. */
static bool read_separator(struct json_reader *reader, struct diag *diag)
{
    const struct json_level *level = json_innermost(reader);
    int c = json_peek(reader);
    if (reader->step == JSON_STEP_COLON) {
        if (c != ':')
            return json_refuse_next(reader, diag);
        reader->step = JSON_STEP_VALUE;
    } else if (reader->step == JSON_STEP_AFTER_VALUE && level && c == ',') {
        reader->step = level->is_object ? JSON_STEP_NEXT_KEY : JSON_STEP_NEXT_ITEM;
    } else {
        return true;
    }
    reader->at++;
    return json_skip_blanks(reader, diag);
}

static bool check_start(struct json_reader *reader, struct diag *diag)
{
    if (!json_fill(reader, 3, diag))
        return false;
    if (reader->end - reader->at < 3 || memcmp(reader->at, "\xef\xbb\xbf", 3) != 0)
        return true;
    enum roost_code code = diag_error(diag, ROOST_ERR_SYNTAX, json_place(reader),
                                      "the document starts with a byte order mark");
    diag_hint(diag, "save it as UTF-8 without the mark");
    return json_fail(reader, code);
}

struct json_event json_next(struct json_reader *reader, struct diag *diag)
{
    if (reader->code != ROOST_OK || (reader->step == JSON_STEP_START && !check_start(reader, diag)))
        return give_up(reader);
    if (!json_skip_blanks(reader, diag) || !read_separator(reader, diag))
        return give_up(reader);
    const struct json_level *level = json_innermost(reader);
    int c = json_peek(reader);
    bool is_close = level && c == (level->is_object ? '}' : ']');
    switch (reader->step) {
    case JSON_STEP_FIRST_KEY: return is_close ? close_level(reader) : read_key(reader, diag);
    case JSON_STEP_FIRST_ITEM: return is_close ? close_level(reader) : read_value(reader, diag);
    case JSON_STEP_AFTER_VALUE:
        if (!level && c < 0)
            return give(reader, JSON_END, SV(""), json_place(reader));
        return is_close ? close_level(reader) : refuse(reader, diag);
    case JSON_STEP_NEXT_KEY: return read_key(reader, diag);
    default: return read_value(reader, diag);
    }
}

enum roost_code json_skip(struct json_reader *reader, struct diag *diag)
{
    if (reader->last == JSON_KEY)
        json_next(reader, diag);
    int outside = reader->depth - (reader->last == JSON_OBJECT || reader->last == JSON_ARRAY);
    while (reader->code == ROOST_OK && reader->depth > outside)
        json_next(reader, diag);
    return reader->code;
}

static struct json_limits fill_in(const struct json_limits *wanted)
{
    struct json_limits limits = wanted ? *wanted : (struct json_limits){0};
    if (limits.max_bytes == 0)
        limits.max_bytes = (size_t)1 << 30;
    if (limits.max_depth <= 0)
        limits.max_depth = 32;
    if (limits.max_string == 0)
        limits.max_string = 64 * 1024;
    if (limits.max_keys == 0)
        limits.max_keys = 4 * 1024 * 1024;
    return limits;
}

struct json_reader *json_reader_new(const char *name, json_read_fn read, void *ctx,
                                    const struct json_limits *limits)
{
    struct json_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->limits = fill_in(limits);
    reader->source.name = strdup(name);
    reader->levels = calloc((size_t)reader->limits.max_depth, sizeof *reader->levels);
    if (!reader->source.name || !reader->levels) {
        json_reader_free(reader);
        return NULL;
    }
    reader->read = read;
    reader->ctx = ctx;
    reader->at = reader->end = reader->buffer;
    reader->line = 1;
    reader->last = JSON_FAILED; /* nothing was handed out that could be skipped */
    reader->seed = (uintptr_t)reader;
    return reader;
}

void json_reader_set_peek(struct json_reader *reader, source_peek_fn peek)
{
    reader->source.peek = peek;
    reader->source.peek_ctx = reader->ctx;
}

static ssize_t read_left(void *ctx, char *buf, size_t cap)
{
    struct strview *left = ctx;
    struct strview piece = sv_sub(*left, 0, cap);
    if (piece.len)
        memcpy(buf, piece.at, piece.len);
    *left = sv_sub(*left, piece.len, left->len);
    return (ssize_t)piece.len;
}

struct json_reader *json_reader_from_text(const char *name, struct strview text,
                                          const struct json_limits *limits)
{
    struct json_reader *reader = json_reader_new(name, read_left, NULL, limits);
    if (!reader)
        return NULL;
    reader->source.text = reader->left = text;
    reader->ctx = &reader->left;
    return reader;
}

void json_reader_free(struct json_reader *reader)
{
    if (!reader)
        return;
    for (int i = 0; i < reader->depth; i++)
        free(reader->levels[i].slots);
    free(reader->levels);
    free(reader->keys);
    text_release(&reader->key_bytes);
    text_release(&reader->scratch);
    free((char *)reader->source.name);
    free(reader);
}

const char *json_kind_words(enum json_kind kind)
{
    switch (kind) {
    case JSON_OBJECT: return "an object";
    case JSON_OBJECT_END: return "the end of an object";
    case JSON_ARRAY: return "an array";
    case JSON_ARRAY_END: return "the end of an array";
    case JSON_KEY: return "a key";
    case JSON_STRING: return "a string";
    case JSON_NUMBER: return "a number";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    case JSON_END: return "the end of the document";
    case JSON_FAILED: break;
    }
    return "nothing";
}
