/* commands_view.c - what both views need: shell words, a walk that forgets; and JSON. */
#include "render/commands_view.h"

#include <string.h>

#include "base/utf8.h"
#include "config/variables.h"

/* How a shell takes the character at the front of a word. */
enum shell_kind { SHELL_BARE, SHELL_QUOTED, SHELL_ESCAPED };

static enum shell_kind shell_kind(const char *at, const char *end, size_t *len)
{
    uint32_t code = 0;
    *len = utf8_next(at, end, &code);
    bool is_good = *len > 0;
    *len = is_good ? *len : 1;
    /* Control characters, C1 ones among them, must not reach a terminal. */
    if (!is_good || code < 0x20 || (code >= 0x7f && code < 0xa0))
        return SHELL_ESCAPED;
    bool is_bare = code >= 0x80 || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') ||
                   (code >= '0' && code <= '9') || strchr("_-./:=,+@%", (int)code);
    return is_bare ? SHELL_BARE : SHELL_QUOTED;
}

static void put_quoted(struct text *out, struct strview character, bool is_escaped,
                       bool has_escapes)
{
    if (is_escaped)
        for (size_t i = 0; i < character.len; i++)
            text_printf(out, "\\x%02x", (unsigned)(unsigned char)character.at[i]);
    else if (character.at[0] == '\'')
        text_puts(out, has_escapes ? "\\'" : "'\\''");
    else if (character.at[0] == '\\' && has_escapes)
        text_puts(out, "\\\\");
    else
        text_put(out, character);
}

void put_shell_word(struct text *out, struct strview word)
{
    const char *end = word.at + word.len;
    enum shell_kind worst = word.len > 0 ? SHELL_BARE : SHELL_QUOTED;
    size_t len;
    for (const char *at = word.at; at < end; at += len) {
        enum shell_kind kind = shell_kind(at, end, &len);
        worst = kind > worst ? kind : worst;
    }
    if (worst == SHELL_BARE || sv_is(word, SECRET_SHOWN)) {
        text_put(out, word);
        return;
    }
    text_puts(out, worst == SHELL_ESCAPED ? "$'" : "'");
    for (const char *at = word.at; at < end; at += len) {
        bool is_escaped = shell_kind(at, end, &len) == SHELL_ESCAPED;
        put_quoted(out, (struct strview){at, len}, is_escaped, worst == SHELL_ESCAPED);
    }
    text_char(out, '\'');
}

bool command_walk_to(struct command_walk *walk, int32_t component, int32_t rank,
                     struct process_command *out)
{
    enum { KEPT = 256 };
    if (walk->maker && (walk->component != component || walk->made == KEPT))
        command_walk_release(walk);
    if (!walk->maker) {
        walk->maker =
            command_maker_new(walk->commands, component, walk->values, WORDS_SHOWN, &walk->arena);
        walk->component = component;
        walk->made = 0;
    }
    walk->made++;
    return walk->maker && command_maker_make(walk->maker, rank, out);
}

void command_walk_release(struct command_walk *walk)
{
    command_maker_free(walk->maker);
    walk->maker = NULL;
    arena_release(&walk->arena);
}

static void put_variable(struct json_writer *json, struct strview entry)
{
    size_t equals = sv_find(entry, '=', 0);
    struct strview name = sv_sub(entry, 0, equals);
    json_put_view(json_key_view(json, name),
                  is_secret_name(name) ? SV(SECRET_SHOWN) : sv_sub(entry, equals + 1, entry.len));
}

void command_put_json(struct json_writer *json, const struct process_command *process)
{
    json_key(json, "command");
    if (process->argv) {
        json_open_array(json);
        for (const char *const *word = process->argv; *word; word++)
            json_put_string(json, *word);
        json_close(json);
    } else {
        json_put_null(json);
    }
    json_open_object(json_key(json, "env"));
    for (int32_t i = 0; i < process->own_count; i++)
        put_variable(json, sv_from(process->env[i]));
    json_close(json);
    json_put_string(json_key(json, "cwd"), process->cwd);
}
