/* json_fault.c - messages about syntax errors: what was expected, what was found, and how to fix a common
 * mistake. Reads the reader's step and level. */
#include "json/json_reader_internal.h"

static const char *expected(const struct json_reader *reader)
{
    const struct json_level *level = json_innermost(reader);
    switch (reader->step) {
    case JSON_STEP_START: return "a value";
    case JSON_STEP_FIRST_KEY: return "a key in double quotes or '}'";
    case JSON_STEP_NEXT_KEY: return "a key in double quotes after ','";
    case JSON_STEP_COLON: return "':' after the key";
    case JSON_STEP_VALUE: return "a value after ':'";
    case JSON_STEP_FIRST_ITEM: return "a value or ']'";
    case JSON_STEP_NEXT_ITEM: return "a value after ','";
    case JSON_STEP_AFTER_VALUE: break;
    }
    return !level ? "the end of the document" : level->is_object ? "',' or '}'" : "',' or ']'";
}

/* Words of other languages. */
static void hint_at_word(struct strview word, struct diag *diag)
{
    static const struct {
        const char *lower, *hint;
    } slips[] = {
        {"true", "write true"},
        {"false", "write false"},
        {"null", "write null"},
        {"none", "write null"},
        {"nil", "write null"},
        {"undefined", "write null"},
        {"nan", "JSON has no such number; write null"},
        {"inf", "JSON has no such number; write null"},
        {"infinity", "JSON has no such number; write null"},
    };
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        if (sv_is_nocase(word, slips[i].lower)) {
            diag_hint(diag, "%s", slips[i].hint);
            return;
        }
    }
    diag_hint(diag, "strings are written in double quotes");
}

/* `found` is empty at the end of the document. */
static void hint_at(const struct json_reader *reader, struct strview found, struct diag *diag)
{
    const struct json_level *level = json_innermost(reader);
    enum json_step step = reader->step;
    int c = found.len ? (unsigned char)found.at[0] : -1;
    bool is_word = json_is_word(c), is_close = c == '}' || c == ']';
    bool is_key = step == JSON_STEP_FIRST_KEY || step == JSON_STEP_NEXT_KEY;
    bool is_next = step == JSON_STEP_NEXT_KEY || step == JSON_STEP_NEXT_ITEM;
    bool is_after = step == JSON_STEP_AFTER_VALUE;

    if (level && (c < 0 || (is_close && is_after)))
        diag_hint(diag, "the %s that starts at %d:%d is not closed",
                  level->is_object ? "object" : "array", level->at.line, level->at.column);
    else if (c == '/' || c == '#')
        diag_hint(diag, "JSON has no comments");
    else if (c == '\'')
        diag_hint(diag, "strings are written in double quotes");
    else if (is_close && is_next)
        diag_hint(diag, "remove the ','");
    else if (level && is_after && (is_word || c == '"' || c == '{' || c == '['))
        diag_hint(diag, "put ',' between two values");
    else if (is_word && is_key)
        diag_hint(diag, "write \"%s\"", quote(found).text);
    else if (is_word && !is_after && step != JSON_STEP_COLON)
        hint_at_word(found, diag);
    else if (c >= 0x80 && !is_after && step != JSON_STEP_COLON)
        diag_hint(diag, "strings are written in double quotes");
    else if (c == ':' && is_after && level && !level->is_object)
        diag_hint(diag, "put { } around a key and its value");
    else if (c < 0)
        diag_hint(diag, "write a value, such as {\"key\": \"value\"}");
    else if (!level && is_after)
        diag_hint(diag, "remove all that follows the first value");
    else if (step == JSON_STEP_COLON)
        diag_hint(diag, "put ':' between a key and its value");
    else if (step == JSON_STEP_VALUE)
        diag_hint(diag, "write a value behind the ':', such as null");
    else if (is_after)
        diag_hint(diag, "put ',' between two values");
    else
        diag_hint(diag, "remove it");
}

bool json_refuse(struct json_reader *reader, struct strview found, struct place at,
                 struct diag *diag)
{
    enum roost_code code;
    if (found.len)
        code = diag_error(diag, ROOST_ERR_SYNTAX, at, "expected %s, found '%s'", expected(reader),
                          quote(found).text);
    else
        code = diag_error(diag, ROOST_ERR_SYNTAX, at, "expected %s, but the document %s",
                          expected(reader), reader->step == JSON_STEP_START ? "is empty" : "ends");
    hint_at(reader, found, diag);
    return json_fail(reader, code);
}

bool json_refuse_next(struct json_reader *reader, struct diag *diag)
{
    struct place at = json_place(reader);
    struct strview found = SV("");
    int c = json_peek(reader);
    if (json_is_word(c)) {
        found = json_word(reader, diag);
        if (!found.at)
            return false;
        at.length = json_clamp(found.len);
    } else if (c >= 0) {
        size_t len;
        if (!json_character(reader, &len, diag))
            return false;
        found = (struct strview){reader->at, len};
    }
    return json_refuse(reader, found, at, diag);
}
