/* diag.h - how all of roost reports what is wrong.
 *
 * A struct diag is handed down through one call: it keeps the first error for the caller's
 * struct roost_error and everything for the caller's report. Either may be missing. Saying an error
 * does not stop anything: a reader goes on to the next key, so that a user sees all faults at once. */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <roost/error.h>
#include <stdbool.h>

#include "base/secrets.h"
#include "base/source.h"

struct diag {
    struct roost_report *report;   /* may be NULL */
    struct roost_error *err;       /* may be NULL */
    size_t errors;                 /* reported through this diag */
    enum roost_code first;         /* ROOST_OK while errors is 0 */
    bool is_hint_wanted;           /* the last fault can still take a hint */
    const struct secrets *secrets; /* what no message may show: see config_diag; may be NULL */
    const struct secret *about;    /* the secret that the last fault is about, or NULL */
};

/* Starts a call: clears `err`. */
struct diag diag_start(struct roost_report *report, struct roost_error *err);

/* Says an error; returns its code. */
enum roost_code diag_error(struct diag *diag, enum roost_code code, struct place at,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds the cure to what was reported last. */
void diag_hint(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether what was reported last is kept, so that a cure which takes some finding is worth it. */
bool diag_wants_hint(const struct diag *diag);

/* Says something worth knowing that fails nothing. */
void diag_warn(struct diag *diag, enum roost_warning warning, struct place at, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

/* Says again what another call filled its error with. */
enum roost_code diag_again(struct diag *diag, const struct roost_error *err);

/* Out of memory; returns ROOST_ERR_MEMORY. */
enum roost_code diag_nomem(struct diag *diag);

#endif
