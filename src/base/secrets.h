/* secrets.h - texts that must not be shown, and messages without them.
 *
 * A config owns two lists: the secrets themselves, by the variables they come from, and every value that
 * holds some of them. Processes get a value's `text`; all that roost prints or records has `shown`. */
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
    struct strview escaped; /* the text as quote() writes it, but never cut */
};

/* A value with a secret in it. */
struct secret {
    struct secret *next;
    const struct secret_variable *variable; /* where it comes from; the first of several */
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

/* Whether the text holds a secret that is long enough not to be there by chance. */
bool secrets_hold(const struct secrets *secrets, struct strview text);

/* Copies a message without secrets into `out`, NUL-terminated, and returns the length it would have with
 * room for all, as snprintf does. Replaced are: secrets as a whole (short ones only where they stand as a
 * word), and what the message quotes of a value that holds one: more than a few characters of any, and all
 * of `own`, the value that the message is about (may be NULL). */
size_t secrets_redact(const struct secrets *secrets, const struct secret *own, const char *message,
                      char *out, size_t size);

#endif
