/* json_reader_internal.h - the state that the files of the JSON reader share: json_reader.c (the
 * grammar), json_input.c (bytes and places), json_string.c, json_word.c (numbers and literals),
 * json_keys.c (keys seen so far) and json_fault.c (messages about syntax errors).
 *
 * Functions that return bool report faults themselves; after false the reader must not be used. */
#ifndef JSON_READER_INTERNAL_H
#define JSON_READER_INTERNAL_H

#include "base/text.h"
#include "json/json_reader.h"

enum { JSON_BUFFER = 64 * 1024 };

/* What the grammar expects next. */
enum json_step {
    JSON_STEP_START,
    JSON_STEP_FIRST_KEY,
    JSON_STEP_NEXT_KEY,
    JSON_STEP_COLON,
    JSON_STEP_VALUE,
    JSON_STEP_FIRST_ITEM,
    JSON_STEP_NEXT_ITEM,
    JSON_STEP_AFTER_VALUE,
};

struct json_key {
    size_t start, len; /* in key_bytes */
    int32_t line, column;
};

/* An open object or array. Its keys are those of the reader from first_key on. Levels close in reverse
 * order, so one list serves all of them. */
struct json_level {
    bool is_object;
    struct place at;
    size_t first_key, first_byte;
    size_t *slots; /* [slot_count]: 1 + index of a key, 0 = free; NULL while the keys are few */
    size_t slot_count;
};

struct json_reader {
    struct source source; /* owns its name */
    struct json_limits limits;
    json_read_fn read;
    void *ctx;
    struct strview left; /* of a document in memory: the part not copied to the buffer yet */

    const char *at, *end; /* unread bytes in the buffer */
    size_t taken;         /* bytes of the document up to `end` */
    bool is_drained;      /* nothing comes after `end` */
    size_t line;
    size_t line_start;   /* characters before this line */
    size_t continuation; /* bytes before `at` that continue a character */

    enum json_step step;
    enum json_kind last;
    enum roost_code code; /* of the fault that ended it */
    struct json_level *levels;
    int depth;

    struct text scratch; /* a string or number that could not be used where it lies */
    struct json_key *keys;
    size_t key_count, key_room;
    struct text key_bytes;
    uint64_t seed;

    char buffer[JSON_BUFFER];
};

/* json_reader.c: the innermost open object or array, NULL outside of all. */
struct json_level *json_innermost(const struct json_reader *reader);

/* json_input.c */

/* Records the code and returns false. */
bool json_fail(struct json_reader *reader, enum roost_code code);

/* Makes the next `count` bytes (at most a dozen) available in the buffer; fewer only at the end. */
bool json_fill(struct json_reader *reader, size_t count, struct diag *diag);

/* The next byte, -1 at the end. Looks no further than the buffer: fill first. */
static inline int json_peek(const struct json_reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at : -1;
}

/* Leaves the reader at a byte that is not blank, or at the end. json_skip_blanks is a fast path for the
 * usual case: at most one blank before an event. */
bool json_skip_all_blanks(struct json_reader *reader, struct diag *diag);

static inline bool json_skip_blanks(struct json_reader *reader, struct diag *diag)
{
    if (json_peek(reader) == ' ')
        reader->at++;
    return json_peek(reader) > ' ' || json_skip_all_blanks(reader, diag);
}

/* Puts the length of the next character into *out_len; invalid UTF-8 is an error. */
bool json_character(struct json_reader *reader, size_t *out_len, struct diag *diag);

/* Steps over the character of `len` bytes, not a CR or LF. */
void json_step_over(struct json_reader *reader, size_t len);

/* How many characters of the document come before the next byte. */
static inline size_t json_chars(const struct json_reader *reader)
{
    return reader->taken - (size_t)(reader->end - reader->at) - reader->continuation;
}

static inline int32_t json_clamp(size_t count)
{
    return count < INT32_MAX ? (int32_t)count : INT32_MAX;
}

/* How many characters lie between the first `start` and the next byte. */
static inline int32_t json_length(const struct json_reader *reader, size_t start)
{
    return json_clamp(json_chars(reader) - start);
}

/* Where the next byte is. */
static inline struct place json_place(const struct json_reader *reader)
{
    return (struct place){
        .source = &reader->source,
        .line = json_clamp(reader->line),
        .column = json_clamp(json_chars(reader) - reader->line_start + 1),
        .length = 1,
        .offset = reader->taken - (size_t)(reader->end - reader->at),
    };
}

/* Adds a piece to the scratch text, which holds the first part of a `noun` that starts at `start`. */
bool json_keep(struct json_reader *reader, struct strview piece, const char *noun,
               struct place start, struct diag *diag);

/* The result of json_string and json_word after a fault. */
#define JSON_NO_TEXT ((struct strview){NULL, 0})

/* json_string.c: reads the string whose opening quote comes next. */
struct strview json_string(struct json_reader *reader, struct diag *diag);

/* json_word.c */

/* Whether a byte (-1 = none) belongs to words. */
bool json_is_word(int c);

/* Reads the word that comes next. */
struct strview json_word(struct json_reader *reader, struct diag *diag);

/* The event that a word makes; JSON_FAILED when it makes none. */
enum json_kind json_word_kind(struct strview word);

/* Reports what is wrong with such a word; returns false. */
bool json_refuse_word(struct json_reader *reader, struct strview word, struct place at,
                      struct diag *diag);

/* json_keys.c */

/* Remembers a key of the innermost object; a second one of that name is an error. */
bool json_keys_add(struct json_reader *reader, struct strview key, struct place at,
                   struct diag *diag);

/* Forgets the keys of a level that is closed. */
void json_keys_close(struct json_reader *reader, struct json_level *level);

/* json_fault.c */

/* Reports that `found` (empty = the end) stands at `at` instead of what the step expects; returns false. */
bool json_refuse(struct json_reader *reader, struct strview found, struct place at,
                 struct diag *diag);

/* The same for the next word or character. */
bool json_refuse_next(struct json_reader *reader, struct diag *diag);

#endif
