/* slime_flags.c - slime's command line -> the text of a config. Knows the names of arguments and whether
 * they take values; what the values mean is for the reader of the config. */
#include "cli/slime_flags.h"

#include "config/bundle_settings.h"

/* One argument of the command line. */
struct flag {
    struct strview name; /* with underscores, as a key; borrowed from the command line otherwise */
    size_t first, count; /* its values among the words */
    struct strview inline_value; /* of --name=value; at NULL = none */
    bool is_off;                 /* --no-name */
};

static bool is_flag(const char *word)
{
    return word[0] == '-' && word[1] == '-' && word[2];
}

/* Whether a key is the name that a word of the command line gives: '-' stands for '_'. */
static bool names_key(struct strview name, const char *key)
{
    size_t i = 0;
    for (; i < name.len && key[i]; i++)
        if (name.at[i] != key[i] && !(name.at[i] == '-' && key[i] == '_'))
            return false;
    return i == name.len && !key[i];
}

/* The key that a word means; NULL = one that says nothing of placement groups. */
static const char *find_key(struct strview name, enum bundle_key_kind *out_kind)
{
    const char *key;
    for (size_t i = 0; (key = bundle_key(i, out_kind)); i++)
        if (names_key(name, key))
            return key;
    return NULL;
}

static bool is_number(struct strview value)
{
    size_t digits = 0;
    while (digits < value.len && value.at[digits] >= '0' && value.at[digits] <= '9')
        digits++;
    return digits > 0 && digits == value.len;
}

/* Numbers as they are; other text in quotes that YAML gives back as it is, without interpolation. */
static void put_quoted(struct text *out, struct strview value)
{
    if (is_number(value)) {
        text_put(out, value);
        return;
    }
    text_char(out, '"');
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.at[i];
        if (c == '$' && i + 1 < value.len && value.at[i + 1] == '{')
            text_puts(out, "\\U0000005C$"); /* a backslash, which keeps it from being followed */
        else if (c == '"' || c == '\\')
            text_printf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            text_printf(out, "\\x%02x", c);
        else
            text_char(out, (char)c);
    }
    text_char(out, '"');
}

static void put_value(struct text *out, const char *const *words, const struct flag *flag,
                      enum bundle_key_kind kind)
{
    if (kind == BUNDLE_KEY_FLAG &&
        !flag->inline_value.at) { /* words behind it are not its values */
        text_puts(out, flag->is_off ? "false" : "true");
        return;
    }
    if (kind == BUNDLE_KEY_LIST)
        text_char(out, '[');
    if (flag->inline_value.at)
        put_quoted(out, flag->inline_value);
    for (size_t i = 0; i < flag->count && (i == 0 || kind == BUNDLE_KEY_LIST); i++) {
        if (i > 0)
            text_puts(out, ", ");
        put_quoted(out, sv_from(words[flag->first + i]));
    }
    if (kind == BUNDLE_KEY_LIST)
        text_char(out, ']');
}

/* Reads the argument at `at` and returns where the next one may begin. */
static size_t read_flag(const char *const *words, size_t count, size_t at, struct flag *out)
{
    struct strview word = sv_from(words[at] + 2);
    size_t equals = sv_find(word, '=', 0);
    *out = (struct flag){.name = sv_sub(word, 0, equals), .first = at + 1};
    if (equals < word.len)
        out->inline_value = sv_sub(word, equals + 1, word.len);
    else
        while (out->first + out->count < count && !is_flag(words[out->first + out->count]))
            out->count++;
    return out->first + out->count;
}

/* A later argument with the same key replaces this one. */
static bool comes_again(const char *const *words, size_t count, size_t from, const char *key)
{
    enum bundle_key_kind kind;
    for (size_t i = from; i < count; i++) {
        if (!is_flag(words[i]))
            continue;
        struct strview word = sv_from(words[i] + 2);
        struct strview name = sv_sub(word, 0, sv_find(word, '=', 0));
        const char *found = find_key(name, &kind);
        if (!found && sv_starts(name, "no-"))
            found = find_key(sv_sub(name, 3, name.len), &kind);
        if (found == key)
            return true;
    }
    return false;
}

bool slime_flags_put(const char *const *words, size_t count, struct text *out, struct diag *diag)
{
    text_puts(out, "roost: {groups: {\n");
    for (size_t at = 0; at < count;) {
        struct flag flag;
        enum bundle_key_kind kind = BUNDLE_KEY_VALUE;
        if (!is_flag(words[at])) {
            at++;
            continue;
        }
        const char *word = words[at];
        at = read_flag(words, count, at, &flag);
        const char *key = find_key(flag.name, &kind);
        if (!key && sv_starts(flag.name, "no-") && (flag.is_off = true))
            key = find_key(sv_sub(flag.name, 3, flag.name.len), &kind);
        if (!key || (flag.is_off && kind != BUNDLE_KEY_FLAG) || comes_again(words, count, at, key))
            continue;
        if (sv_is(flag.name, "profile") && !flag.count && !flag.inline_value.at)
            continue; /* Megatron has a flag of that name */
        if (kind != BUNDLE_KEY_FLAG && !flag.count && !flag.inline_value.at) {
            diag_error(diag, ROOST_ERR_USAGE, NOWHERE, "'%s' has no value",
                       quote(sv_from(word)).text);
            diag_hint(diag, "write its value behind it, as in --actor-num-nodes 2");
            return false;
        }
        text_printf(out, "  %s: ", key);
        put_value(out, words, &flag, kind);
        text_puts(out, ",\n");
    }
    text_puts(out, "}}\n");
    if (out->has_failed)
        diag_nomem(diag);
    return !out->has_failed;
}
