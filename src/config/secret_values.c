/* secret_values.c - marks scalars that hold the value of a secret variable, and finds those that a program
 * wrote out. Which names are secret is decided by is_secret_name alone. */
#include "config/secret_values.h"

#include <string.h>

#include "base/text.h"
#include "config/variables.h"

static bool nomem(struct resolver *resolver)
{
    diag_nomem(resolver->diag);
    return false;
}

bool secret_mark(struct resolver *resolver, struct node *node, struct strview shown,
                 const struct secret_variable *variable)
{
    node->secret = secrets_add(resolver->secrets, resolver->arena, variable, node->text, shown,
                               node_place(node));
    return node->secret || nomem(resolver);
}

static struct strview name_of(const char *entry)
{
    return (struct strview){entry, strcspn(entry, "=")};
}

bool secret_look_for(struct resolver *resolver)
{
    enum { VALUE_MIN = 8 }; /* a short one is too often there by chance */
    size_t count = 0;
    for (const char *const *env = resolver->env; env && *env; env++)
        count++;
    resolver->hidden = arena_zeroed(resolver->arena, const char *, count + 1);
    if (!resolver->hidden)
        return nomem(resolver);
    count = 0;
    for (const char *const *env = resolver->env; env && *env; env++) {
        struct strview name = name_of(*env);
        if (is_secret_name(name) && strlen(*env) >= name.len + 1 + VALUE_MIN)
            resolver->hidden[count++] = *env;
    }
    return true;
}

/* The secret variable with the longest value that starts at the front of `text`; NULL = none. */
static const char *find_secret(const struct resolver *resolver, struct strview text,
                               size_t *out_len)
{
    const char *found = NULL;
    *out_len = 0;
    for (const char **it = resolver->hidden; *it; it++) {
        struct strview value = sv_from(*it + name_of(*it).len + 1);
        bool is_there = value.len <= text.len && memcmp(text.at, value.at, value.len) == 0;
        if (!is_there || value.len <= *out_len)
            continue;
        *out_len = value.len;
        found = *it;
    }
    return found;
}

bool secret_mark_found(struct resolver *resolver, struct node *node)
{
    struct text shown = TEXT_INIT;
    const struct secret_variable *first = NULL;
    bool is_good = true;
    for (size_t at = 0, len; is_good && at < node->text.len; at += len) {
        struct strview rest = sv_sub(node->text, at, node->text.len);
        const char *found = find_secret(resolver, rest, &len);
        const struct secret_variable *variable = NULL;
        if (found) {
            variable = secrets_add_variable(resolver->secrets, resolver->arena, name_of(found),
                                            sv_sub(rest, 0, len));
            is_good = variable || nomem(resolver);
        }
        text_put(&shown, found ? SV(SECRET_SHOWN) : sv_sub(rest, 0, 1));
        first = first ? first : variable;
        len = found ? len : 1;
    }
    if (is_good && shown.has_failed)
        is_good = nomem(resolver);
    if (is_good && first)
        is_good = secret_mark(resolver, node, (struct strview){shown.bytes, shown.len}, first);
    text_release(&shown);
    return is_good;
}
