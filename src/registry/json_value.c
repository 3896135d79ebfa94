/* json_value.c - tokens in, the same tokens out, without blanks. */
#include "registry/json_value.h"

static void put_scalar(struct json_token token, struct text *out)
{
    switch (token.kind) {
    case JSON_STRING:
    case JSON_KEY: text_json(out, token.text); break;
    case JSON_NUMBER: text_put(out, token.text); break;
    case JSON_TRUE: text_puts(out, "true"); break;
    case JSON_FALSE: text_puts(out, "false"); break;
    default: text_puts(out, "null"); break;
    }
}

bool json_value_copy(struct json_reader *reader, struct json_token first, struct text *out,
                     struct diag *diag)
{
    int depth = 0;
    bool wants_comma = false;
    for (struct json_token token = first;; token = json_next(reader, diag)) {
        bool is_end = token.kind == JSON_OBJECT_END || token.kind == JSON_ARRAY_END;
        if (token.kind == JSON_FAILED || token.kind == JSON_END)
            return false;
        if (wants_comma && !is_end)
            text_char(out, ',');
        wants_comma = true;
        if (token.kind == JSON_OBJECT || token.kind == JSON_ARRAY) {
            text_char(out, token.kind == JSON_OBJECT ? '{' : '[');
            wants_comma = false;
            depth++;
        } else if (is_end) {
            text_char(out, token.kind == JSON_OBJECT_END ? '}' : ']');
            depth--;
        } else {
            put_scalar(token, out);
        }
        if (token.kind == JSON_KEY) {
            text_char(out, ':');
            wants_comma = false;
        }
        if (depth == 0)
            return true;
    }
}
