/* json_writer.h - writes a JSON document into a text, value by value.
 *
 * The writer knows what is open and writes every bracket, comma and colon itself:
 *
 *     struct json_writer json = json_writer_on(&text, JSON_SPACED);
 *     json_open_object(&json);
 *     json_put_int(json_key(&json, "roost"), 1);
 *     json_open_array(json_key(&json, "nodes"));
 *     json_put_string(&json, "node0");
 *     json_close(&json);
 *     json_close(&json);                          {"roost": 1, "nodes": ["node0"]}
 *
 * It allocates nothing and needs no release; the text's has_failed tells whether everything was written. A
 * value without its key, a key outside an object and nesting beyond JSON_DEPTH_MAX are bugs of the caller
 * and assert. Values of unknown depth come from a json_reader, which by default allows a depth of 32. */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include "base/text.h"
#include "json/json_reader.h"

enum { JSON_DEPTH_MAX = 64, JSON_INDENT_MAX = 8 };

enum json_layout {
    JSON_COMPACT, /* {"a":1,"b":[2,3]}: records, messages between processes */
    JSON_SPACED,  /* {"a": 1, "b": [2, 3]}: documents that people read, too */
};

struct json_writer {
    struct text *out;
    enum json_layout layout;
    uint64_t is_object; /* bit d: the level at depth d is an object, not an array */
    int depth;
    int indent;     /* of the line that the next member starts; -1 = it stays on this line */
    bool has_value; /* the open object or array has a value, so a comma is due */
    bool has_key;   /* a key waits for its value */
};

/* A writer at the end of `out`, which it borrows. */
struct json_writer json_writer_on(struct text *out, enum json_layout layout);

void json_open_object(struct json_writer *json);
void json_open_array(struct json_writer *json);

/* Ends the object or array that was opened last. */
void json_close(struct json_writer *json);

/* The key of the next value. Returns the writer, so that the value can follow in one expression. */
struct json_writer *json_key(struct json_writer *json, const char *key);
struct json_writer *json_key_view(struct json_writer *json, struct strview key);

/* Starts a line, `indent` blanks deep, with the next key, or with the next value of an array. */
void json_line(struct json_writer *json, int indent);

void json_put_string(struct json_writer *json, const char *string); /* NULL writes null */
void json_put_view(struct json_writer *json, struct strview view);
void json_put_int(struct json_writer *json, int64_t value);
void json_put_count(struct json_writer *json, int32_t count); /* negative writes null */
void json_put_seconds(struct json_writer *json, int64_t ns);  /* nine decimals, from 0 on */
void json_put_bool(struct json_writer *json, bool value);
void json_put_null(struct json_writer *json);

/* A value that is JSON already, such as a kept answer or a decimal number. */
void json_put_raw(struct json_writer *json, struct strview value);

/* Copies a value from the reader in this writer's layout, and reads to its end. `first` is the reader's last
 * event, which begins the value. Numbers stay as they were written. False after reporting a fault. */
bool json_put_value(struct json_writer *json, struct json_reader *reader, struct json_event first,
                    struct diag *diag);

/* Room for a value, or for members of the open object, that the caller writes in place: for millions of
 * rows. The caller writes 1 to `room` bytes at the returned pointer and passes their end to json_raw_end().
 * NULL when there is no room: write nothing then, and do not call json_raw_end(). */
char *json_raw_start(struct json_writer *json, size_t room);
void json_raw_end(struct json_writer *json, const char *end);

/* Appends a JSON string, quotes included, to a text that is not a JSON document. Bytes that are not UTF-8
 * become U+FFFD. */
void text_json(struct text *text, struct strview view);

#endif
