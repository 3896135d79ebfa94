/* strview.h - text to read: a pointer and a length, never owned, not NUL-terminated. */
#ifndef BASE_STRVIEW_H
#define BASE_STRVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct strview {
    const char *at;
    size_t len;
};

/* A view of a string literal. */
#define SV(literal) ((struct strview){(literal), sizeof(literal) - 1})

struct strview sv_from(const char *text); /* NULL gives an empty view */

/* These two are most of what reading a config is; literals are measured by the compiler. */
static inline bool sv_equal(struct strview a, struct strview b)
{
    /* Names of one length mostly differ in their last character: worker0, worker1. */
    return a.len == b.len &&
           (a.len == 0 || (a.at[a.len - 1] == b.at[a.len - 1] && memcmp(a.at, b.at, a.len) == 0));
}

static inline bool sv_is(struct strview a, const char *text)
{
    if (a.len == 0 || a.at[0] != text[0])
        return a.len == 0 && text[0] == '\0'; /* most words differ at once */
    return sv_equal(a, (struct strview){text, strlen(text)});
}

bool sv_is_nocase(struct strview a, const char *lower); /* ASCII; lower must be lower case */
bool sv_starts(struct strview a, const char *prefix);
bool sv_matches(struct strview a, const char *pattern); /* "AB*" matches what starts with AB */
struct strview sv_trim(struct strview a);               /* blanks and tabs, both ends */
struct strview sv_sub(struct strview a, size_t from, size_t to);
size_t sv_find(struct strview a, char c, size_t from); /* a.len when it is not there */
int sv_compare(struct strview a, struct strview b);    /* by bytes, shorter first */

/* User text made safe for a message: control bytes escaped, long text cut with "...".
 * Used as quote(view).text inside one expression. */
struct quote {
    char text[96];
};
struct quote quote(struct strview view);

/* The entry of `words` (NULL-terminated) nearest to `text`, or NULL when none is near enough to be
 * worth suggesting. */
const char *nearest_word(struct strview text, const char *const *words);

/* Whether a list "a,b,c" has this name. */
bool list_has(const char *list, const char *name);

/* Names of components, labels, groups and workers: [A-Za-z0-9_][A-Za-z0-9_.-]{0,62} */
bool is_name(struct strview text);

/* Names of roost's own files in the folder of a run. Each component or worker group has a folder of its name
 * there, so it cannot have one of these names. (roost's other files start with a dot, which no name does.) */
#define RUN_PAGE "run.json"
#define RUN_RECORDS "records.jsonl"
bool is_run_file(struct strview text);

/* Names of environment variables: [A-Za-z_][A-Za-z0-9_]* */
bool is_variable_name(struct strview text);

#endif
