/* text_json.c - the one place that writes JSON strings. */
#include "base/text.h"
#include "base/utf8.h"

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
