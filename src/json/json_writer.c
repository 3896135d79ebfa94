/* json_writer.c - the one place that writes JSON's brackets, commas, colons and strings.
 *
 * Whether a comma is due depends only on the token before, so one flag serves all levels: a level that
 * contains a closed object or array has a value for certain. */
#include "json/json_writer.h"

#include <assert.h>

#include "base/utf8.h"

/* --- strings --- */

static void put_escaped(struct text *text, unsigned char c)
{
    switch (c) {
    case '"': text_puts(text, "\\\""); break;
    case '\\': text_puts(text, "\\\\"); break;
    case '\n': text_puts(text, "\\n"); break;
    case '\r': text_puts(text, "\\r"); break;
    case '\t': text_puts(text, "\\t"); break;
    default: text_printf(text, "\\u%04x", c);
    }
}

void text_json(struct text *text, struct strview view)
{
    const char *at = view.at, *end = view.at + view.len;
    text_char(text, '"');
    while (at < end) {
        const char *plain = at;
        unsigned char c = 0;
        while (at < end && (c = (unsigned char)*at) >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            at++;
        text_append(text, plain, (size_t)(at - plain));
        if (at == end)
            break;
        size_t len = c < 0x80 ? 0 : utf8_next(at, end, NULL);
        if (len)
            text_append(text, at, len);
        else if (c < 0x80)
            put_escaped(text, c);
        else
            text_puts(text, "\\ufffd");
        at += len ? len : 1;
    }
    text_char(text, '"');
}

/* --- documents --- */

struct json_writer json_writer_on(struct text *out, enum json_layout layout)
{
    return (struct json_writer){.out = out, .layout = layout, .indent = -1};
}

static bool is_in_object(const struct json_writer *json)
{
    return json->depth > 0 && (json->is_object >> (json->depth - 1) & 1);
}

/* Where `more` bytes may be written; NULL when there is no room. Most of the time there is, and then it
 * costs no call: a large plan has millions of values. */
static char *make_room(struct text *text, size_t more)
{
    bool has_room = !text->has_failed && more <= text->cap - text->len;
    return has_room || text_reserve(text, more) ? text->bytes + text->len : NULL;
}

enum { SEPARATOR_MAX = 2 + JSON_INDENT_MAX };

/* The comma, the line and the blank that are due, at `at`, which may be NULL; returns their end. */
static char *separate(struct json_writer *json, char *at)
{
    int indent = json->indent;
    json->indent = -1;
    if (!at)
        return NULL;
    if (json->has_value)
        *at++ = ',';
    if (indent >= 0) {
        *at++ = '\n';
        for (int i = 0; i < indent; i++)
            *at++ = ' ';
    } else if (json->has_value && json->layout == JSON_SPACED) {
        *at++ = ' ';
    }
    return at;
}

/* Room for a value behind what is due in front of it. The value may be given up: the text has failed. */
static char *start_raw(struct json_writer *json, size_t room)
{
    char *at = make_room(json->out, SEPARATOR_MAX + room);
    if (!json->has_key)
        at = separate(json, at);
    json->has_key = false;
    json->has_value = true;
    if (at)
        json->out->len = (size_t)(at - json->out->bytes);
    return at;
}

static char *start_value(struct json_writer *json, size_t room)
{
    assert(json->has_key || !is_in_object(json));
    return start_raw(json, room);
}

static void open(struct json_writer *json, bool is_object)
{
    assert(json->depth < JSON_DEPTH_MAX);
    char *at = start_value(json, 1);
    if (at) {
        *at = is_object ? '{' : '[';
        json->out->len++;
    }
    uint64_t bit = (uint64_t)1 << json->depth++;
    json->is_object = is_object ? json->is_object | bit : json->is_object & ~bit;
    json->has_value = false;
}

void json_open_object(struct json_writer *json)
{
    open(json, true);
}

void json_open_array(struct json_writer *json)
{
    open(json, false);
}

void json_close(struct json_writer *json)
{
    assert(json->depth > 0 && !json->has_key);
    char *at = make_room(json->out, 1);
    if (at) {
        *at = is_in_object(json) ? '}' : ']';
        json->out->len++;
    }
    json->depth--;
    json->indent = -1;
    json->has_value = true;
}

struct json_writer *json_key(struct json_writer *json, const char *key)
{
    return json_key_view(json, sv_from(key));
}

struct json_writer *json_key_view(struct json_writer *json, struct strview key)
{
    assert(is_in_object(json) && !json->has_key);
    char *at = separate(json, make_room(json->out, SEPARATOR_MAX));
    if (at)
        json->out->len = (size_t)(at - json->out->bytes);
    text_json(json->out, key);
    text_append(json->out, ": ", json->layout == JSON_SPACED ? 2 : 1);
    json->has_key = true;
    return json;
}

void json_line(struct json_writer *json, int indent)
{
    assert(indent >= 0 && indent <= JSON_INDENT_MAX && !json->has_key);
    json->indent = indent;
}

void json_put_string(struct json_writer *json, const char *string)
{
    if (string)
        json_put_view(json, sv_from(string));
    else
        json_put_null(json);
}

void json_put_view(struct json_writer *json, struct strview view)
{
    (void)start_value(json, 0);
    text_json(json->out, view);
}

void json_put_int(struct json_writer *json, int64_t value)
{
    enum { DIGITS = 11 };
    bool is_short = value >= INT32_MIN && value <= INT32_MAX;
    char *at = start_value(json, DIGITS);
    if (at && is_short)
        json->out->len += format_int32(at, (int32_t)value);
    else
        text_int(json->out, value);
}

void json_put_count(struct json_writer *json, int32_t count)
{
    if (count < 0)
        json_put_null(json);
    else
        json_put_int(json, count);
}

void json_put_seconds(struct json_writer *json, int64_t ns)
{
    enum { NS_PER_SECOND = 1000000000 };
    (void)start_value(json, 0);
    text_printf(json->out, "%lld.%09lld", (long long)(ns / NS_PER_SECOND),
                (long long)(ns % NS_PER_SECOND));
}

void json_put_bool(struct json_writer *json, bool value)
{
    json_put_raw(json, value ? SV("true") : SV("false"));
}

void json_put_null(struct json_writer *json)
{
    json_put_raw(json, SV("null"));
}

void json_put_raw(struct json_writer *json, struct strview value)
{
    (void)start_value(json, 0);
    text_put(json->out, value);
}

static void put_event(struct json_writer *json, struct json_event event)
{
    switch (event.kind) {
    case JSON_OBJECT: json_open_object(json); break;
    case JSON_ARRAY: json_open_array(json); break;
    case JSON_OBJECT_END:
    case JSON_ARRAY_END: json_close(json); break;
    case JSON_KEY: json_key_view(json, event.text); break;
    case JSON_STRING: json_put_view(json, event.text); break;
    case JSON_NUMBER: json_put_raw(json, event.text); break;
    case JSON_TRUE: json_put_bool(json, true); break;
    case JSON_FALSE: json_put_bool(json, false); break;
    default: json_put_null(json); break;
    }
}

bool json_put_value(struct json_writer *json, struct json_reader *reader, struct json_event first,
                    struct diag *diag)
{
    int depth = json->depth;
    for (struct json_event event = first;; event = json_next(reader, diag)) {
        if (event.kind == JSON_FAILED || event.kind == JSON_END)
            return false;
        put_event(json, event);
        if (json->depth == depth && !json->has_key)
            return true;
    }
}

char *json_raw_start(struct json_writer *json, size_t room)
{
    return start_raw(json, room);
}

void json_raw_end(struct json_writer *json, const char *end)
{
    json->out->len = (size_t)(end - json->out->bytes);
}
