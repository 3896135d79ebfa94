/* reader.c - scalars, mappings and keys, with the words of their errors. */
#include "config/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "config/yaml11.h"

void *read_memory(struct reader *reader, void *memory)
{
    if (!memory)
        diag_nomem(reader->diag);
    return memory;
}

const char *read_copy(struct reader *reader, struct strview text)
{
    return read_memory(reader, arena_copy(reader->arena, text));
}

/* A file without aliases and interpolations cannot cost this much: its limits are lower. */
static bool pay(struct reader *reader, const struct node *value)
{
    enum { COST_MAX = 1000 * 1000 };
    reader->cost += 1 + (value->kind == NODE_SCALAR ? value->text.len / 2 : (size_t)value->count);
    if (reader->cost <= COST_MAX)
        return true;
    diag_error(reader->diag, ROOST_ERR_LIMIT, node_place(value),
               "aliases and interpolations make this file stand for too much");
    diag_hint(reader->diag, "repeat less: what is used many times is read many times");
    reader->resolver.is_exhausted = true;
    return false;
}

const struct node *read_value(struct reader *reader, struct node *node)
{
    if (reader->resolver.is_exhausted)
        return NULL;
    const struct node *value = resolve(&reader->resolver, node);
    if (value && !pay(reader, value))
        return NULL;
    if (value && value->kind == NODE_SCALAR && sv_is(value->text, "???")) {
        diag_error(reader->diag, ROOST_ERR_REFERENCE, node_place(value),
                   "this value is still to be set: it is marked as missing");
        diag_hint(reader->diag, "write it here, or pass it as key=value");
        return NULL;
    }
    return value;
}

const struct node *read_key(struct reader *reader, const struct node *mapping, const char *key)
{
    struct node *node = node_get(mapping, sv_from(key));
    const struct node *value = node ? read_value(reader, node) : NULL;
    return value && !node_is_null(value) ? value : NULL;
}

static const char *kind_word(const struct node *node)
{
    return node->kind == NODE_MAPPING    ? "a mapping"
           : node->kind == NODE_SEQUENCE ? "a list"
                                         : "text";
}

bool want_mapping(struct reader *reader, const struct node *node, const char *what)
{
    if (node->kind == NODE_MAPPING)
        return true;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
               "%s must be a mapping of keys to values, not %s", what, kind_word(node));
    diag_hint(reader->diag, node->kind == NODE_SEQUENCE
                                ? "write 'key: value' lines below it, without '-' before them"
                                : "write 'key: value' lines below it");
    return false;
}

bool want_sequence(struct reader *reader, const struct node *node, const char *what)
{
    if (node->kind == NODE_SEQUENCE)
        return true;
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node), "%s must be a list, not %s", what,
               kind_word(node));
    diag_hint(reader->diag, "a '-' may be missing before its first entry");
    return false;
}

bool is_known_key(const struct node *key, const char *const *known)
{
    while (*known && !sv_is(key->text, *known))
        known++;
    return *known != NULL;
}

void say_unknown(struct reader *reader, const struct node *key, const char *what)
{
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(key),
               "Unknown fields '{'%s'}' detected in %s", quote(key->text).text, what);
}

void hint_known(struct reader *reader, const struct node *mapping, struct strview text,
                const char *const *known)
{
    const char *near = nearest_word(text, known);
    if (near) {
        size_t room = sizeof reader->slips / sizeof *reader->slips;
        reader->slips[reader->slip_count++ % room] = (struct slip){mapping, near};
        diag_hint(reader->diag, "did you mean '%s'?", near);
        return;
    }
    char list[ROOST_ERROR_HINT_MAX] = "";
    size_t len = 0;
    for (; *known && len + strlen(*known) + 8 < sizeof list; known++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", len ? ", " : "", *known);
    diag_hint(reader->diag, "known are %s%s", list, *known ? ", ..." : "");
}

bool want_keys(struct reader *reader, const struct node *mapping, const char *const *known,
               const char *what)
{
    bool is_good = true;
    for (int32_t i = 0; i < mapping->count; i++) {
        const struct node *key = mapping->pairs[i].key;
        if (is_known_key(key, known))
            continue;
        is_good = false;
        say_unknown(reader, key, what);
        hint_known(reader, mapping, key->text, known);
    }
    return is_good;
}

bool want_open(struct reader *reader, const struct node *node, const char *what)
{
    if (!node->secret)
        return true;
    diag_error(reader->diag, ROOST_ERR_REFERENCE, node_place(node),
               "%s comes from the secret variable '%s', but roost shows it in plans and logs", what,
               quote(sv_from(node->secret->variable->name)).text);
    diag_hint(reader->diag, "take it from a variable without KEY, TOKEN, SECRET, PASS, PASSWORD or "
                            "CREDENTIAL in its name");
    return false;
}

bool read_word(struct reader *reader, const struct node *node, const char *what, struct word *out)
{
    return want_open(reader, node, what) && read_process_word(reader, node, what, out);
}

bool read_process_word(struct reader *reader, const struct node *node, const char *what,
                       struct word *out)
{
    if (node->kind != NODE_SCALAR) {
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node), "%s must be text, not %s",
                   what, kind_word(node));
        diag_hint(reader->diag, "write one value; in quotes it may hold [ ] { } and ':'");
        return false;
    }
    if (sv_find(node->text, '\0', 0) < node->text.len) {
        /* "\0" in quotes: no program can be given it, and no file is named so. */
        diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node), "%s holds a NUL character",
                   what);
        diag_hint(reader->diag, "take the \\0 out of it");
        return false;
    }
    *out = (struct word){node->text, node_place(node), node->secret};
    return true;
}

bool read_int(struct reader *reader, const struct node *node, const char *what, int32_t min,
              int32_t max, int32_t *out)
{
    int64_t value = 0;
    if (node->kind == NODE_SCALAR && number_parse(node->text, max, &value) == NUMBER_OK &&
        value >= min) {
        yaml11_warn_number(node, reader->diag);
        *out = (int32_t)value;
        return true;
    }
    const char *mark = node->kind == NODE_SCALAR ? "'" : "";
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
               "%s must be a whole number from %d to %d, not %s%s%s", what, (int)min, (int)max,
               mark, node->kind == NODE_SCALAR ? quote(node->text).text : kind_word(node), mark);
    diag_hint(reader->diag, "write a number such as %d", (int)min);
    return false;
}

bool read_bool(struct reader *reader, const struct node *node, const char *what, bool *out)
{
    static const char *const words[][2] = {{"true", "false"}, {"yes", "no"}, {"on", "off"}};
    for (size_t i = 0; node->kind == NODE_SCALAR && i < sizeof words / sizeof *words; i++) {
        if (sv_is_nocase(node->text, words[i][0]) || sv_is_nocase(node->text, words[i][1])) {
            *out = sv_is_nocase(node->text, words[i][0]);
            return true;
        }
    }
    const char *mark = node->kind == NODE_SCALAR ? "'" : "";
    diag_error(reader->diag, ROOST_ERR_SCHEMA, node_place(node),
               "%s must be true or false, not %s%s%s", what, mark,
               node->kind == NODE_SCALAR ? quote(node->text).text : kind_word(node), mark);
    diag_hint(reader->diag, "write true to switch it on, false to switch it off");
    return false;
}
