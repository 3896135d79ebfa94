/* secrets.h - texts that must not be shown, and how they are removed from messages.
 *
 * A config owns two lists: the secrets themselves, by the variables they come from, and every value that
 * contains a secret. Processes get a value's `text`; everything that roost prints or records uses `shown`. */
#ifndef BASE_SECRETS_H
#define BASE_SECRETS_H

#include "base/arena.h"
#include "base/source.h"

#define SECRET_SHOWN "***"

/* What a secret variable holds. */
struct secret_variable {
    struct secret_variable *next;
    const char *name;
    struct strview text;
    struct strview escaped; /* the text as quote() writes it, but never shortened */
};

/* A value with a secret in it. */
struct secret {
    struct secret *next;
    const struct secret_variable *variable; /* the first variable it contains */
    struct strview text;                    /* the whole value */
    struct strview shown;                   /* the same with *** for every secret in it */
    struct strview escaped;
    const struct source *source; /* the place of the value */
    int32_t line, column;
};

/* Starts zeroed; its memory is the arena's. */
struct secrets {
    struct secret_variable *variables;
    struct secret *first;
};

/* Adds a variable, once, and copies both texts. NULL without memory. */
const struct secret_variable *secrets_add_variable(struct secrets *secrets, struct arena *arena,
                                                   struct strview name, struct strview text);

/* Adds a value at a place; `text` is borrowed, `shown` is copied. NULL without memory. */
const struct secret *secrets_add(struct secrets *secrets, struct arena *arena,
                                 const struct secret_variable *variable, struct strview text,
                                 struct strview shown, struct place at);

/* The newest value at this place, or NULL. `secrets` may be NULL. */
const struct secret *secrets_at(const struct secrets *secrets, struct place at);

/* Whether the text contains a secret that is too long to appear in it by chance. */
bool secrets_hold(const struct secrets *secrets, struct strview text);

/* Copies a message without its secrets into `out`, NUL-terminated. Returns, as snprintf does, the length
 * that the whole message would have. It replaces whole secrets (short ones only where they stand as a
 * word). It also replaces quotes of a value that contains a secret: quotes of more than a few characters of
 * any such value, and every quote of `own`, the value that the message is about (may be NULL). */
size_t secrets_redact(const struct secrets *secrets, const struct secret *own, const char *message,
                      char *out, size_t size);

#endif
