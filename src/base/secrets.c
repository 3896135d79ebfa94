/* secrets.c - finds secrets in messages. Code in many places builds messages from pieces of values, shortened
 * and escaped. So every message is searched at the one point that all of them pass. Only errors come here,
 * and only after a config has read a secret, so nothing is indexed. */
#include "base/secrets.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

enum {
    SUBSTRING_MIN = 8, /* a secret this long is hidden inside of words, too */
    PIECE_MIN = 4,     /* a piece of one is hidden when it is this long */
};

/* As quote() escapes. */
static bool is_shown_as_is(const char *at, const char *end, size_t *taken)
{
    uint32_t code = 0;
    *taken = utf8_next(at, end, &code);
    bool is_safe = *taken > 0 && utf8_is_safe(code);
    *taken = *taken ? *taken : 1;
    return is_safe;
}

static bool escape(struct arena *arena, struct strview text, struct strview *out)
{
    const char *end = text.at + text.len;
    size_t taken, len = 0;
    for (const char *at = text.at; at < end; at += taken)
        len += is_shown_as_is(at, end, &taken) ? taken : 4 * taken;
    *out = text;
    if (len == text.len)
        return true;
    char *escaped = arena_array(arena, char, len + 1);
    if (!escaped)
        return false;
    *out = (struct strview){escaped, len};
    for (const char *at = text.at; at < end; at += taken) {
        bool is_plain = is_shown_as_is(at, end, &taken);
        for (size_t i = 0; i < taken; i++)
            if (is_plain)
                *escaped++ = at[i];
            else
                escaped += snprintf(escaped, 5, "\\x%02x", (unsigned char)at[i]);
    }
    return true;
}

const struct secret_variable *secrets_add_variable(struct secrets *secrets, struct arena *arena,
                                                   struct strview name, struct strview text)
{
    for (const struct secret_variable *it = secrets->variables; it; it = it->next)
        if (sv_is(name, it->name))
            return it;
    struct secret_variable *variable = arena_zeroed(arena, struct secret_variable, 1);
    const char *copy = variable ? arena_copy(arena, text) : NULL;
    if (!copy || !(variable->name = arena_copy(arena, name)))
        return NULL;
    variable->text = (struct strview){copy, text.len};
    if (!escape(arena, variable->text, &variable->escaped))
        return NULL;
    variable->next = secrets->variables;
    return secrets->variables = variable;
}

const struct secret *secrets_add(struct secrets *secrets, struct arena *arena,
                                 const struct secret_variable *variable, struct strview text,
                                 struct strview shown, struct place at)
{
    struct secret *secret = arena_zeroed(arena, struct secret, 1);
    const char *copy = secret ? arena_copy(arena, shown) : NULL;
    if (!copy || !escape(arena, text, &secret->escaped))
        return NULL;
    secret->variable = variable;
    secret->text = text;
    secret->shown = (struct strview){copy, shown.len};
    secret->source = at.source;
    secret->line = at.line;
    secret->column = at.column;
    secret->next = secrets->first;
    return secrets->first = secret;
}

const struct secret *secrets_at(const struct secrets *secrets, struct place at)
{
    const struct secret *it = secrets && at.source ? secrets->first : NULL;
    while (it && (it->source != at.source || it->line != at.line || it->column != at.column))
        it = it->next;
    return it;
}

static bool has(struct strview text, struct strview piece)
{
    return piece.len <= text.len && memmem(text.at, text.len, piece.at, piece.len) != NULL;
}

bool secrets_hold(const struct secrets *secrets, struct strview text)
{
    const struct secret_variable *it = secrets ? secrets->variables : NULL;
    for (; it; it = it->next)
        if (it->text.len >= SUBSTRING_MIN && has(text, it->text))
            return true;
    return false;
}

/* --- redaction --- */

static bool is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool starts(const char *at, struct strview form)
{
    return strncmp(at, form.at, form.len) == 0;
}

/* Bytes of the longest secret that stands at `at` as a whole; 0 = none. */
static size_t whole_at(const struct secrets *secrets, const char *message, const char *at)
{
    size_t longest = 0;
    for (const struct secret_variable *it = secrets->variables; it; it = it->next) {
        struct strview forms[] = {it->text, it->escaped};
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            size_t len = forms[f].len;
            if (len <= longest || !starts(at, forms[f]))
                continue;
            bool is_apart = (at == message || !is_word(at[-1])) && !is_word(at[len]);
            if (len >= SUBSTRING_MIN || is_apart)
                longest = len;
        }
    }
    return longest;
}

static bool ends_quote(const char *at, char mark)
{
    return *at == mark || *at == '\0' || strncmp(at, "...", 3) == 0;
}

/* The longest beginning of `at` that is a piece of the value and ends as a quoted text (`mark`), or as a
 * word (mark 0). Pieces that `shown` has too are no secret. */
static size_t piece_of(const struct secret *secret, const char *at, char mark)
{
    const char *from = secret->escaped.at, *end = from + secret->escaped.len;
    size_t longest = 0;
    for (; from < end && (from = memchr(from, *at, (size_t)(end - from))); from++) {
        size_t same = 0, room = (size_t)(end - from);
        while (same < room && at[same] && at[same] == from[same])
            same++;
        for (; same > longest; same--)
            if (mark ? ends_quote(at + same, mark) : !is_word(at[same]))
                longest = same;
    }
    return longest && has(secret->shown, (struct strview){at, longest}) ? 0 : longest;
}

/* Bytes of the longest piece at `at`; a value that is quoted whole is shown as it can be. */
static size_t piece_at(const struct secrets *secrets, const struct secret *own, const char *message,
                       const char *at, struct strview *out_shown)
{
    char before = ' ';
    if (at != message)
        before = at[-1];
    bool is_quoted = before == '\'' || before == '"';
    size_t longest = 0;
    for (const struct secret *it = is_quoted ? secrets->first : NULL; it; it = it->next) {
        size_t len = piece_of(it, at, before);
        if (len <= longest || (it != own && len < PIECE_MIN))
            continue;
        longest = len;
        *out_shown = len == it->escaped.len ? it->shown : SV(SECRET_SHOWN);
    }
    /* What a value was read as is not quoted: numbers, names. */
    size_t len = own && !is_word(before) ? piece_of(own, at, 0) : 0;
    return len > longest && len >= PIECE_MIN ? len : longest;
}

size_t secrets_redact(const struct secrets *secrets, const struct secret *own, const char *message,
                      char *out, size_t size)
{
    size_t made = 0;
    for (const char *at = message; *at;) {
        struct strview shown = SV(SECRET_SHOWN);
        size_t hidden = whole_at(secrets, message, at);
        if (!hidden)
            hidden = piece_at(secrets, own, message, at, &shown);
        if (!hidden)
            shown = (struct strview){at, 1};
        for (size_t i = 0; i < shown.len; i++, made++)
            if (made + 1 < size)
                out[made] = shown.at[i];
        at += hidden ? hidden : 1;
    }
    out[made < size ? made : size - 1] = '\0';
    return made;
}
