/* defaults.c - a small part of Hydra: entries that name files in the config's own folder.
 *
 * Words: an entry is `name`, `group/name` or `group: name`, with `@package` saying where its content
 * goes (default: the group, with dots), below the package of the file that names it; `_self_` is the
 * file the list stands in, last when it is not named. Groups are relative to that of the file, unless
 * they start with "/". A choice is an override `group=name`: it replaces the name of that group's entry,
 * wherever the entry stands. `override`, interpolated and missing entries are not composed, and that is
 * said. */
#include "config/defaults.h"

#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "config/yaml_load.h"

enum { FILES_MAX = 64, NESTED_MAX = 8, FILE_BYTES_MAX = 1024 * 1024 };

/* A group choice of the command line. */
struct choice {
    struct place at;
    struct strview group, package; /* package.at == NULL when none was written */
    struct strview name;
    bool is_added; /* "+group=name" */
    bool is_used;
};

struct composer {
    struct arena *arena;
    struct diag *diag;
    struct strview folder; /* of the primary config, with its last "/" */
    int files;
    int depth;
    struct choice *choices;
    int choice_count;
};

/* One entry of a defaults list, taken apart. */
struct entry {
    struct place at;
    struct strview group; /* as written, without a slash at its ends; may be empty */
    bool is_absolute;     /* the group starts at the folder, not at the file's own group */
    struct strview name;
    struct strview package; /* what stood behind "@"; at == NULL when nothing did */
    bool is_self;
    bool is_optional;
    bool is_chosen;      /* by a choice */
    const char *refusal; /* why it is not composed, or NULL */
};

static struct node *compose(struct composer *composer, struct node *root, struct strview group,
                            struct strview package);

static bool is_inside(struct strview path)
{
    for (size_t from = 0; from <= path.len;) {
        size_t slash = sv_find(path, '/', from);
        struct strview name = sv_sub(path, from, slash);
        if (!is_name(name))
            return false;
        from = slash + 1;
    }
    return true;
}

/* Splits "group/name" or "group" + "name" and "@package". */
static struct entry take_apart(struct strview key, struct strview value, struct place at)
{
    struct entry entry = {.at = at};
    static const char *const prefixes[] = {"override ", "optional "};
    if (sv_starts(key, prefixes[0]))
        entry.refusal = "it overrides another entry";
    entry.is_optional = sv_starts(key, prefixes[1]);
    if (entry.is_optional)
        key = sv_trim(sv_sub(key, strlen(prefixes[1]), key.len));
    size_t sign = sv_find(key, '@', 0);
    if (sign < key.len)
        entry.package = sv_sub(key, sign + 1, key.len);
    key = sv_sub(key, 0, sign);
    entry.is_absolute = sv_starts(key, "/");
    if (entry.is_absolute)
        key = sv_sub(key, 1, key.len);
    if (value.at) {
        entry.group = key;
        entry.name = value;
    } else {
        size_t slash = key.len;
        while (slash > 0 && key.at[slash - 1] != '/')
            slash--;
        entry.group = sv_sub(key, 0, slash ? slash - 1 : 0);
        entry.name = sv_sub(key, slash, key.len);
    }
    entry.is_self = sv_is(entry.name, "_self_");
    if (!entry.refusal && memchr(entry.name.at, '$', entry.name.len))
        entry.refusal = "its name is an interpolation";
    if (!entry.refusal && !entry.is_self &&
        (!is_inside(entry.name) || (entry.group.len && !is_inside(entry.group))))
        entry.refusal = "it does not name a file below the config's folder";
    return entry;
}

static struct entry read_entry(const struct node *item)
{
    if (item->kind == NODE_SCALAR)
        return take_apart(item->text, (struct strview){0}, node_place(item));
    if (item->kind == NODE_MAPPING && item->count == 1 &&
        item->pairs[0].value->kind == NODE_SCALAR) {
        const struct pair *pair = &item->pairs[0];
        return take_apart(pair->key->text, pair->value->text, node_place(pair->key));
    }
    return (struct entry){.at = node_place(item), .refusal = "it is not one name"};
}

/* A "# @package x" line at the top of a file; another comment before it hides it, as in Hydra. */
static struct strview header_package(struct strview text)
{
    for (text = sv_trim(text); text.len && text.at[0] == '#'; text = sv_trim(text)) {
        size_t end = sv_find(text, '\n', 0);
        struct strview line = sv_trim(sv_sub(text, 1, end));
        if (sv_starts(line, "@package"))
            return sv_trim(sv_sub(line, strlen("@package"), line.len));
        if (!sv_starts(line, "@"))
            break;
        text = sv_sub(text, end + 1, text.len);
    }
    return (struct strview){0};
}

/* `content` put below the dotted (or slashed) path. */
static struct node *wrap(struct composer *composer, struct node *content, struct strview path)
{
    for (size_t end = path.len; end > 0;) {
        size_t start = end;
        while (start > 0 && path.at[start - 1] != '.' && path.at[start - 1] != '/')
            start--;
        struct node *key = node_new_scalar(composer->arena, content, sv_sub(path, start, end));
        struct node *outer = key ? node_new_mapping(composer->arena, content, 1) : NULL;
        if (!outer) {
            diag_nomem(composer->diag);
            return NULL;
        }
        content->parent = outer;
        node_put(outer, key, content);
        content = outer;
        end = start ? start - 1 : 0;
    }
    return content;
}

/* `inner` below `outer`, either of which may be empty; .at == NULL without memory. */
static struct strview join(struct composer *composer, struct strview outer, char sign,
                           struct strview inner)
{
    struct text text = TEXT_INIT;
    text_put(&text, outer);
    if (outer.len && inner.len)
        text_char(&text, sign);
    text_put(&text, inner);
    const char *string = text_string(&text);
    char *copy = string ? arena_copy(composer->arena, sv_from(string)) : NULL;
    text_release(&text);
    if (!copy) {
        diag_nomem(composer->diag);
        return (struct strview){0};
    }
    for (char *c = copy; sign == '.' && *c; c++)
        if (*c == '/')
            *c = '.';
    return sv_from(copy);
}

/* Where the content of an entry goes: below the package of the file that names it, unless the entry's
 * own file says a place of its own. */
static struct strview package_of(struct composer *composer, const struct entry *entry,
                                 struct strview text, struct strview outer)
{
    struct strview header = header_package(text);
    struct strview own = entry->package.at ? entry->package : header.at ? header : entry->group;
    if (sv_is(own, "_global_"))
        return SV("");
    if (sv_is(own, "_group_"))
        own = entry->group;
    else if (!entry->package.at && header.at)
        outer = SV("");
    return join(composer, outer, '.', own);
}

/* The mapping of a file beside the config; NULL after it reported why not. */
static struct node *load_file(struct composer *composer, const char *path, struct place at,
                              struct strview *out_text)
{
    struct source *source = arena_zeroed(composer->arena, struct source, 1);
    if (!source) {
        diag_nomem(composer->diag);
        return NULL;
    }
    source->name = path;
    static const char cure[] = "write 'key: value' lines in it, or take it out of 'defaults'";
    struct node *root =
        yaml_load_named(composer->arena, source, at, FILE_BYTES_MAX, cure, composer->diag);
    *out_text = source->text;
    return root;
}

/* The path of an entry's file in `group`; NULL without memory. */
static const char *path_of(struct composer *composer, const struct entry *entry,
                           struct strview group)
{
    struct text name = TEXT_INIT;
    text_put(&name, composer->folder);
    text_put(&name, group);
    text_puts(&name, group.len ? "/" : "");
    text_put(&name, entry->name);
    if (!(entry->name.len > 5 &&
          sv_is(sv_sub(entry->name, entry->name.len - 5, entry->name.len), ".yaml")))
        text_puts(&name, ".yaml");
    const char *path = text_string(&name);
    path = path ? arena_copy(composer->arena, sv_from(path)) : NULL;
    text_release(&name);
    if (!path)
        diag_nomem(composer->diag);
    return path;
}

/* What an entry of a file in `here` contributes to the whole; NULL with nothing said when it is not
 * composed. */
static struct node *load_entry(struct composer *composer, const struct entry *entry,
                               struct strview here, struct strview outer)
{
    struct strview group =
        entry->is_absolute ? entry->group : join(composer, here, '/', entry->group);
    const char *path = group.at ? path_of(composer, entry, group) : NULL;
    if (!path)
        return NULL;
    if (access(path, R_OK) != 0 && entry->is_chosen) {
        diag_error(composer->diag, ROOST_ERR_REFERENCE, entry->at, "there is no file '%s'",
                   quote(sv_from(path)).text);
        diag_hint(composer->diag, "choose a file of that folder, without its '.yaml'");
        return NULL;
    }
    if (access(path, R_OK) != 0) {
        if (!entry->is_optional)
            diag_warn(composer->diag, ROOST_WARN_NOT_COMPOSED, entry->at,
                      "'%s' is not composed: there is no file '%s'", quote(entry->name).text, path);
        return NULL;
    }
    if (++composer->files > FILES_MAX) {
        diag_error(composer->diag, ROOST_ERR_LIMIT, entry->at, "defaults name more than %d files",
                   FILES_MAX);
        diag_hint(composer->diag, "join some of the files, or pass the config that Hydra composed");
        return NULL;
    }
    struct strview text;
    struct node *root = load_file(composer, path, entry->at, &text);
    struct strview package = root ? package_of(composer, entry, text, outer) : (struct strview){0};
    /* Said is only what was not composed: the rest is what was asked for. */
    return package.at ? compose(composer, root, group, package) : NULL;
}

/* The file's own content in its place: what `defaults` said is done, and not part of it. */
static struct node *place_self(struct composer *composer, struct node *root, struct strview package)
{
    struct node *copy = node_copy_mapping(composer->arena, root, 0);
    if (!copy) {
        diag_nomem(composer->diag);
        return NULL;
    }
    copy->count = 0;
    for (int32_t i = 0; i < root->count; i++)
        if (!sv_is(root->pairs[i].key->text, "defaults"))
            copy->pairs[copy->count++] = root->pairs[i];
    return wrap(composer, copy, package);
}

/* The file `root` of `group` with all that its defaults name, put together below `package`. */
/* --- choices --- */

/* The choice that stands in an override; false when it is none: its key is no folder beside the config. */
static bool read_choice(struct composer *composer, const struct override_word *word,
                        struct choice *out)
{
    struct strview text = word->text;
    bool is_added = sv_starts(text, "+");
    size_t equals = sv_find(text, '=', 0);
    struct strview key = sv_sub(text, is_added ? 1 : 0, equals);
    size_t sign = sv_find(key, '@', 0);
    *out = (struct choice){.at = word->at, .group = sv_sub(key, 0, sign), .is_added = is_added};
    if (equals == text.len || !is_inside(out->group))
        return false;
    if (sign < key.len)
        out->package = sv_sub(key, sign + 1, key.len);
    out->name = sv_trim(sv_sub(text, equals + 1, text.len));
    out->at.length = (int32_t)text.len;
    struct strview folder = join(composer, composer->folder, '/', out->group);
    return folder.at && file_is_directory(folder.at);
}

/* Takes the overrides that are choices. */
static void take_choices(struct composer *composer, struct overrides *overrides)
{
    composer->choices = arena_array(composer->arena, struct choice, overrides->count);
    if (!composer->choices) {
        diag_nomem(composer->diag);
        return;
    }
    for (size_t i = 0; i < overrides->count; i++) {
        struct choice choice;
        if (!read_choice(composer, &overrides->words[i], &choice))
            continue;
        overrides->words[i].is_taken = true;
        if (!is_inside(choice.name)) {
            diag_error(composer->diag, ROOST_ERR_REFERENCE, choice.at,
                       "'%s' is a group of files, and '%s' is not the name of one",
                       quote(choice.group).text, quote(choice.name).text);
            diag_hint(composer->diag, "choose a file of that folder, without its '.yaml'");
        } else {
            composer->choices[composer->choice_count++] = choice;
        }
    }
}

/* Puts the last choice for the entry's group in the entry's place. */
static void choose(struct composer *composer, struct entry *entry, struct strview here)
{
    if (entry->is_self || entry->group.len == 0)
        return;
    struct strview group =
        entry->is_absolute ? entry->group : join(composer, here, '/', entry->group);
    for (int i = 0; group.at && i < composer->choice_count; i++) {
        struct choice *choice = &composer->choices[i];
        if (choice->is_added || !sv_equal(choice->group, group) ||
            (choice->package.at && !sv_equal(choice->package, entry->package)))
            continue;
        choice->is_used = entry->is_chosen = true;
        entry->name = choice->name;
        entry->at = choice->at;
        entry->refusal = NULL;
    }
}

/* An entry that "+group=name" adds behind those of the config. */
static struct entry added_entry(struct choice *choice)
{
    choice->is_used = true;
    return (struct entry){.at = choice->at,
                          .group = choice->group,
                          .is_absolute = true,
                          .name = choice->name,
                          .package = choice->package,
                          .is_chosen = true};
}

static void refuse_unused(struct composer *composer)
{
    for (int i = 0; i < composer->choice_count; i++) {
        const struct choice *choice = &composer->choices[i];
        if (choice->is_used)
            continue;
        diag_error(composer->diag, ROOST_ERR_REFERENCE, choice->at,
                   "no entry of 'defaults' is of the group '%s'", quote(choice->group).text);
        diag_hint(composer->diag, "write '+' before it to add one");
    }
}

static struct node *compose(struct composer *composer, struct node *root, struct strview group,
                            struct strview package)
{
    struct node *defaults = node_get(root, SV("defaults"));
    if (!defaults || defaults->kind != NODE_SEQUENCE)
        return wrap(composer, root, package);
    if (composer->depth == NESTED_MAX) {
        diag_error(composer->diag, ROOST_ERR_LIMIT, node_place(defaults),
                   "defaults are nested more than %d deep, or name each other", NESTED_MAX);
        diag_hint(composer->diag, "take out the entry that leads back, or join some of the files");
        return NULL;
    }
    composer->depth++;
    struct node *all = NULL;
    bool has_self = false;
    size_t said = composer->diag->errors;
    for (int32_t i = 0; i <= defaults->count; i++) {
        struct entry entry = {.is_self = true};
        if (i < defaults->count) {
            entry = read_entry(defaults->items[i]);
            choose(composer, &entry, group);
        } else if (has_self) {
            break;
        }
        if (entry.is_chosen && sv_is(entry.name, "null"))
            continue;
        if (entry.refusal) {
            diag_warn(composer->diag, ROOST_WARN_NOT_COMPOSED, entry.at,
                      "this entry is not composed: %s", entry.refusal);
            continue;
        }
        has_self |= entry.is_self;
        struct node *content = entry.is_self ? place_self(composer, root, package)
                                             : load_entry(composer, &entry, group, package);
        if (!content)
            continue;
        all = all ? node_merge(composer->arena, all, content) : content;
        if (!all) {
            diag_nomem(composer->diag);
            break;
        }
    }
    composer->depth--;
    return composer->diag->errors > said ? NULL : all;
}

struct node *defaults_compose(struct arena *arena, const char *path, struct node *root,
                              struct overrides *overrides, struct diag *diag)
{
    struct strview folder = sv_from(path);
    while (folder.len && folder.at[folder.len - 1] != '/')
        folder.len--;
    struct composer composer = {.arena = arena, .diag = diag, .folder = folder};
    size_t said = diag->errors;
    if (overrides && overrides->count)
        take_choices(&composer, overrides);
    struct node *all = compose(&composer, root, SV(""), SV(""));
    for (int i = 0; all && i < composer.choice_count; i++) {
        if (!composer.choices[i].is_added)
            continue;
        struct entry entry = added_entry(&composer.choices[i]);
        struct node *content = load_entry(&composer, &entry, SV(""), SV(""));
        all = content ? node_merge(arena, all, content) : all;
        if (!all)
            diag_nomem(diag);
    }
    if (all)
        refuse_unused(&composer);
    return diag->errors > said ? NULL : all;
}
