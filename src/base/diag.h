/* diag.h - how every part of roost reports errors and warnings.
 *
 * A public call passes one struct diag down to everything it calls. The diag stores the first error in the
 * caller's struct roost_error, and all errors and warnings in the caller's report. Either may be missing.
 * Reporting an error stops nothing: a reader continues with the next key, so that the user sees all
 * mistakes at once. */
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
    const struct secrets *secrets; /* no message may show them: see config_diag; may be NULL */
    const struct secret *about;    /* the secret that the last fault is about, or NULL */
};

/* Starts a call: clears `err`. */
struct diag diag_start(struct roost_report *report, struct roost_error *err);

/* Reports an error; returns its code. */
enum roost_code diag_error(struct diag *diag, enum roost_code code, struct place at,
                           const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds a hint (how to fix it) to the last report. */
void diag_hint(struct diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the last report is kept. If not, the caller can skip an expensive search for a hint. */
bool diag_wants_hint(const struct diag *diag);

/* Reports a warning. */
void diag_warn(struct diag *diag, enum roost_warning warning, struct place at, const char *format,
               ...) __attribute__((format(printf, 4, 5)));

/* Reports the error that another call has filled in. */
enum roost_code diag_again(struct diag *diag, const struct roost_error *err);

/* Reports that memory ran out; returns ROOST_ERR_MEMORY. */
enum roost_code diag_nomem(struct diag *diag);

#endif
