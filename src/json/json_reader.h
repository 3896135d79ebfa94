/* json_reader.h - reads JSON (RFC 8259) one event at a time, however large the document is.
 *
 * The reader pulls bytes when it needs them and returns events. It never builds a tree: its memory is a
 * buffer, the longest string and the keys of the open objects. It is strict: the texts it returns are UTF-8
 * without NUL, no object has a key twice, and the first fault ends the reading.
 *
 *     struct json_event event = json_next(reader, diag);
 *     while ((event = json_next(reader, diag)).kind == JSON_KEY) {
 *         if (sv_is(event.text, "node_rank"))
 *             ... json_next(), json_int() ...
 *         else if (json_skip(reader, diag) != ROOST_OK)
 *             break;
 *     }
 *
 * Faults are reported through the diag with their place. Lines end where source.h says they do, which is
 * also at a lone CR and at U+0085, U+2028 and U+2029 inside strings. */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/diag.h"
#include "base/source.h"
#include "base/strview.h"

/* Limits of a document; 0 takes the default. A document beyond a limit is ROOST_ERR_LIMIT. With the defaults
 * a reader needs 70 KB for a snapshot, and 100 MB for the worst possible document. */
struct json_limits {
    size_t max_bytes;  /* of the document: 1 GiB */
    int max_depth;     /* objects and arrays inside each other: 32; room for all is taken at once */
    size_t max_string; /* bytes of a key, a string (unescaped) or a number: 64 KiB */
    size_t max_keys;   /* bytes of the keys of all objects open at one time: 4 MiB */
};

/* Reads the next bytes: puts at most `cap` into `buf` and returns how many, 0 at the end, or -1 with errno.
 * After EINTR the reader calls it again; after the end or another failure it does not. */
typedef ssize_t (*json_read_fn)(void *ctx, char *buf, size_t cap);

enum json_kind {
    JSON_OBJECT, /* "{" */
    JSON_OBJECT_END,
    JSON_ARRAY, /* "[" */
    JSON_ARRAY_END,
    JSON_KEY, /* the next event starts its value */
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_END, /* the document is complete and nothing follows it */
    JSON_FAILED,
};

struct json_event {
    enum json_kind kind;
    struct strview
        text;        /* key or string (unescaped), number as written; good until the next call */
    struct place at; /* as written, quotes included; NOWHERE for JSON_FAILED */
};

struct json_reader;

/* A reader of the stream behind `read`. Copies the name, which errors show, and the limits, which may
 * be NULL; `ctx` must outlive the reader. Its source has no text: errors have a line and a column, and
 * show the line when the stream can be read again. NULL without memory. */
struct json_reader *json_reader_new(const char *name, json_read_fn read, void *ctx,
                                    const struct json_limits *limits);

/* Lets errors show their lines: `peek` reads the stream again and gets the reader's `ctx`. */
void json_reader_set_peek(struct json_reader *reader, source_peek_fn peek);

/* The same for a document in memory, which must outlive the reader; errors show the line. */
struct json_reader *json_reader_from_text(const char *name, struct strview text,
                                          const struct json_limits *limits);

/* Places that came from this reader become invalid: their source belongs to it. */
void json_reader_free(struct json_reader *reader);

/* The next event. A fault is reported through `diag` once, with ROOST_ERR_SYNTAX, _LIMIT, _IO or _MEMORY.
 * After JSON_FAILED or JSON_END every call returns the same event again. */
struct json_event json_next(struct json_reader *reader, struct diag *diag);

/* Reads to the end of the value that the last event began, or whose key it was. After a scalar or a closing
 * bracket it does nothing. Skipped values are still checked. Returns the code of a fault. */
enum roost_code json_skip(struct json_reader *reader, struct diag *diag) ROOST_MUST_USE;

/* The value of a number from `min` to `max` that is written as an integer; 1.0, 1e2 and -0 are not. False
 * for everything else; *out_value is untouched then. */
bool json_int(struct json_event event, int64_t min, int64_t max, int64_t *out_value);

/* What an event is, for messages: "an object", "a string", "the end of an array". */
const char *json_kind_words(enum json_kind kind);

#endif
