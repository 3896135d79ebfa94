/* resolve.c - OmegaConf's interpolation: paths, and oc.env as the only resolver.
 *
 * Words: an interpolation is "${" body "}"; a body with a ":" calls a resolver, any other is a path;
 * a path with k leading dots starts k-1 containers above the one the scalar stands in. */
#include "config/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"
#include "config/secret_values.h"
#include "config/variables.h"

static const struct node *fail(struct node *node)
{
    node->state = RESOLVE_FAILED;
    return NULL;
}

/* The end of the interpolation that starts at `from` ("${"), one past its "}"; 0 = never closed. */
static size_t find_close(struct strview text, size_t from)
{
    int open = 0;
    for (size_t i = from; i < text.len; i++) {
        if (text.at[i] == '$' && i + 1 < text.len && text.at[i + 1] == '{') {
            open++;
            i++;
        } else if (text.at[i] == '}' && --open == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* The first interpolation at or behind `from`; text.len when there is none. */
static size_t find_open(struct strview text, size_t from)
{
    for (size_t i = from; i + 1 < text.len; i++)
        if (text.at[i] == '$' && text.at[i + 1] == '{')
            return i;
    return text.len;
}

static bool nomem(struct resolver *resolver)
{
    diag_nomem(resolver->diag);
    return false;
}

/* A new scalar in the place of `node`; NULL after it reported why there is none. */
static struct node *make(struct resolver *resolver, const struct node *node, struct strview text)
{
    resolver->made += text.len;
    if (resolver->made > RESOLVE_BYTES_MAX) {
        diag_error(resolver->diag, ROOST_ERR_LIMIT, node_place(node),
                   "interpolations make more than %d bytes of text", RESOLVE_BYTES_MAX);
        diag_hint(resolver->diag, "interpolate shorter texts, or fewer of them");
        resolver->is_exhausted = true;
        return NULL;
    }
    const char *copy = arena_copy(resolver->arena, text);
    struct node *made = NULL;
    if (copy)
        made = node_new_scalar(resolver->arena, node, (struct strview){copy, text.len});
    if (!made)
        nomem(resolver);
    return made;
}

static bool remember_name(struct resolver *resolver, struct strview name, struct place at)
{
    struct env_names *read = resolver->read;
    for (size_t i = 0; i < read->count; i++)
        if (sv_is(name, read->names[i]))
            return true;
    if (read->count == RESOLVE_NAMES_MAX) {
        diag_error(resolver->diag, ROOST_ERR_LIMIT, at, "more than %d environment variables",
                   RESOLVE_NAMES_MAX);
        diag_hint(resolver->diag, "write some of the values in the config itself");
        resolver->is_exhausted = true;
        return false;
    }
    if (read->count == read->room) {
        size_t room = read->room ? read->room * 2 : 8;
        const char **names = arena_array(resolver->arena, const char *, room);
        if (!names)
            return nomem(resolver);
        if (read->count)
            memcpy(names, read->names, read->count * sizeof *names);
        read->names = names;
        read->room = room;
    }
    const char *copy = arena_copy(resolver->arena, name);
    if (!copy)
        return nomem(resolver);
    read->names[read->count++] = copy;
    return true;
}

static const char *find_variable(const char *const *env, struct strview name)
{
    for (; env && *env; env++)
        if (strncmp(*env, name.at, name.len) == 0 && (*env)[name.len] == '=')
            return *env + name.len + 1;
    return NULL;
}

static struct strview unquote(struct strview text)
{
    bool is_quoted = text.len > 1 && (text.at[0] == '"' || text.at[0] == '\'') &&
                     text.at[text.len - 1] == text.at[0];
    return is_quoted ? sv_sub(text, 1, text.len - 1) : text;
}

/* The scalar is the value of a secret variable. */
static bool mark_variable(struct resolver *resolver, struct node *made, struct strview name)
{
    const struct secret_variable *variable =
        secrets_add_variable(resolver->secrets, resolver->arena, name, made->text);
    return variable ? secret_mark(resolver, made, SV(SECRET_SHOWN), variable) : nomem(resolver);
}

/* oc.env:NAME or oc.env:NAME,default; the default may hold interpolations of its own. */
static const struct node *call_env(struct resolver *resolver, struct node *node,
                                   struct strview args, struct place at)
{
    size_t comma = sv_find(args, ',', 0);
    struct strview name = sv_trim(sv_sub(args, 0, comma));
    if (!is_variable_name(name)) {
        diag_error(resolver->diag, ROOST_ERR_REFERENCE, at,
                   "'%s' is not the name of an environment variable", quote(name).text);
        diag_hint(resolver->diag, "a name is letters, digits and _, as in ${oc.env:NUM_NODES}");
        return fail(node);
    }
    if (!remember_name(resolver, name, at))
        return fail(node);
    const char *value = find_variable(resolver->env, name);
    struct strview text = value ? sv_from(value) : SV("");
    if (!value && comma == args.len) {
        diag_error(resolver->diag, ROOST_ERR_REFERENCE, at, "environment variable '%s' is not set",
                   quote(name).text);
        diag_hint(resolver->diag, "set it, or give a default: ${oc.env:%s,value}",
                  quote(name).text);
        return fail(node);
    }
    if (!value)
        text = unquote(sv_trim(sv_sub(args, comma + 1, args.len)));
    if (text.len > TREE_SCALAR_MAX) {
        diag_error(resolver->diag, ROOST_ERR_LIMIT, at, "environment variable '%s' is too long",
                   quote(name).text);
        diag_hint(resolver->diag, "make it at most %d bytes", TREE_SCALAR_MAX);
        return fail(node);
    }
    struct node *made = make(resolver, node, text);
    if (!made)
        return fail(node);
    if (value && resolver->secrets && is_secret_name(name) && !mark_variable(resolver, made, name))
        return fail(node);
    if (value) {
        made->state = RESOLVE_DONE; /* what is in the environment is never interpolated again */
        made->resolved = made;
    }
    return resolve(resolver, made);
}

/* One step down: a key of a mapping or an index of a sequence. */
static struct node *step(const struct node *at, struct strview segment)
{
    if (at->kind == NODE_SEQUENCE) {
        int64_t index;
        if (number_parse(segment, at->count - 1, &index) != NUMBER_OK)
            return NULL;
        return at->items[index];
    }
    return node_get(at, segment);
}

/* Takes the next segment off a path: up to "." or "[", or between brackets. */
static struct strview next_segment(struct strview *path)
{
    size_t from = path->at[0] == '[' ? 1 : 0, to = from;
    while (to < path->len && path->at[to] != '.' && path->at[to] != '[' && path->at[to] != ']')
        to++;
    struct strview segment = sv_sub(*path, from, to);
    while (to < path->len && (path->at[to] == ']' || path->at[to] == '.')) {
        bool was_dot = path->at[to] == '.';
        to++;
        if (was_dot)
            break;
    }
    *path = sv_sub(*path, to, path->len);
    return segment;
}

/* NULL when there is no such value, or when it is in error; then something was reported. */
static const struct node *walk(struct resolver *resolver, const struct node *at,
                               struct strview path, bool *out_was_said)
{
    while (at && path.len > 0) {
        struct strview segment = next_segment(&path);
        struct node *child = segment.len ? step(at, segment) : NULL;
        at = child ? resolve(resolver, child) : NULL;
        *out_was_said = child && !at;
    }
    return at;
}

static const struct node *follow_path(struct resolver *resolver, struct node *node,
                                      struct strview path, struct place at)
{
    const struct node *from = resolver->root;
    size_t dots = 0;
    while (dots < path.len && path.at[dots] == '.')
        dots++;
    if (dots > 0) {
        from = node->parent;
        for (size_t i = 1; i < dots && from; i++)
            from = from->parent;
    }
    struct strview rest = sv_sub(path, dots, path.len);
    bool was_said = false;
    const struct node *found = from && rest.len ? walk(resolver, from, rest, &was_said) : NULL;
    if (!found && !was_said) {
        diag_error(resolver->diag, ROOST_ERR_REFERENCE, at,
                   "'${%s}' names a value that is not there", quote(path).text);
        if (dots == 0)
            diag_hint(resolver->diag, "a path starts at the top of the file; '${.name}' is a "
                                      "neighbour");
        else
            diag_hint(resolver->diag, "one dot is the mapping around this key, and each dot more "
                                      "is one further out; without dots a path starts at the top");
    }
    return found ? found : fail(node);
}

/* One "${...}" of `node`, its body given. */
static const struct node *interpolate(struct resolver *resolver, struct node *node,
                                      struct strview body)
{
    struct place at = place_piece(node_place(node), node->text, body);
    body = sv_trim(body);
    size_t colon = sv_find(body, ':', 0);
    if (colon == body.len && find_open(body, 0) == body.len)
        return follow_path(resolver, node, body, at);
    struct strview name = sv_trim(sv_sub(body, 0, colon));
    if (sv_is(name, "oc.env"))
        return call_env(resolver, node, sv_sub(body, colon + 1, body.len), at);
    diag_error(resolver->diag, ROOST_ERR_REFERENCE, at,
               "'${%s}' is not an interpolation that roost follows", quote(body).text);
    diag_hint(resolver->diag, "${a.b}, ${.a}, ${..a} and ${oc.env:NAME,default} are; write the "
                              "value itself here, or \\${ for a shell's own");
    return fail(node);
}

/* A text that is put together: as it is, and as it is shown. */
struct joined {
    struct text text, shown;
    const struct secret *secret; /* the first in it, or NULL */
};

static void put(struct joined *joined, struct strview text)
{
    text_put(&joined->text, text);
    text_put(&joined->shown, text);
}

static void put_piece(struct joined *joined, const struct node *piece)
{
    text_put(&joined->text, piece->text);
    text_put(&joined->shown, piece->secret ? piece->secret->shown : piece->text);
    joined->secret = joined->secret ? joined->secret : piece->secret;
}

static const struct node *make_joined(struct resolver *resolver, const struct node *node,
                                      const struct joined *joined)
{
    if (joined->text.has_failed || joined->shown.has_failed) {
        diag_nomem(resolver->diag);
        return NULL;
    }
    struct node *made =
        make(resolver, node, (struct strview){joined->text.bytes, joined->text.len});
    struct strview shown = {joined->shown.bytes, joined->shown.len};
    bool is_good = true;
    if (made && joined->secret)
        is_good = secret_mark(resolver, made, shown, joined->secret->variable);
    else if (made && resolver->hidden)
        is_good = secret_mark_found(resolver, made);
    return is_good ? made : NULL;
}

/* Text with interpolations inside: every piece must be a scalar. */
static const struct node *join(struct resolver *resolver, struct node *node)
{
    struct joined out = {TEXT_INIT, TEXT_INIT, NULL};
    const struct node *made = NULL;
    for (size_t at = 0; at < node->text.len;) {
        size_t open = find_open(node->text, at);
        bool is_escaped = open < node->text.len && open > at && node->text.at[open - 1] == '\\';
        put(&out, sv_sub(node->text, at, is_escaped ? open - 1 : open));
        if (is_escaped) {
            put(&out, SV("${"));
            at = open + 2;
            continue;
        }
        if (open == node->text.len)
            break;
        size_t close = find_close(node->text, open);
        if (close == 0) {
            diag_error(resolver->diag, ROOST_ERR_SYNTAX, node_place(node),
                       "'%s' has a '${' without its '}'", quote(node->text).text);
            diag_hint(resolver->diag, "close it with '}', or write '\\${' for the text itself");
            goto done;
        }
        const struct node *piece =
            interpolate(resolver, node, sv_sub(node->text, open + 2, close - 1));
        if (!piece)
            goto done;
        if (open == 0 && close == node->text.len) {
            made = piece;
            goto done;
        }
        if (piece->kind != NODE_SCALAR || out.text.len + piece->text.len > TREE_SCALAR_MAX) {
            diag_error(resolver->diag, ROOST_ERR_REFERENCE, node_place(node),
                       piece->kind != NODE_SCALAR ? "'%s' puts a list or mapping inside a text"
                                                  : "'%s' becomes too long a text",
                       quote(node->text).text);
            if (piece->kind != NODE_SCALAR)
                diag_hint(resolver->diag, "let the interpolation be the whole value, or name one "
                                          "value inside that list or mapping");
            else
                diag_hint(resolver->diag, "keep it within %d bytes", TREE_SCALAR_MAX);
            goto done;
        }
        put_piece(&out, piece);
        at = close;
    }
    made = make_joined(resolver, node, &out);
done:
    text_release(&out.text);
    text_release(&out.shown);
    return made;
}

const struct node *resolve(struct resolver *resolver, struct node *node)
{
    if (node->state == RESOLVE_DONE)
        return node->resolved;
    if (node->state == RESOLVE_FAILED)
        return NULL;
    if (node->kind != NODE_SCALAR || find_open(node->text, 0) == node->text.len) {
        if (resolver->hidden && node->kind == NODE_SCALAR && !secret_mark_found(resolver, node))
            return fail(node);
        node->state = RESOLVE_DONE;
        return node->resolved = node;
    }
    if (node->state == RESOLVE_UNDER_WAY || resolver->depth == RESOLVE_DEPTH_MAX) {
        bool is_loop = node->state == RESOLVE_UNDER_WAY;
        diag_error(resolver->diag, is_loop ? ROOST_ERR_REFERENCE : ROOST_ERR_LIMIT,
                   node_place(node),
                   is_loop ? "'%s' leads back to itself" : "'%s' is the end of too long a chain",
                   quote(node->text).text);
        if (is_loop)
            diag_hint(resolver->diag, "write the value itself in one place of this circle");
        else
            diag_hint(resolver->diag, "write the value itself here: at most %d steps are followed",
                      RESOLVE_DEPTH_MAX);
        return fail(node);
    }
    node->state = RESOLVE_UNDER_WAY;
    resolver->depth++;
    const struct node *found = join(resolver, node);
    resolver->depth--;
    if (!found)
        return fail(node);
    node->state = RESOLVE_DONE;
    return node->resolved = found;
}

const struct node *resolve_path(struct resolver *resolver, const char *path)
{
    bool was_said;
    return resolver->root ? walk(resolver, resolver->root, sv_from(path), &was_said) : NULL;
}
