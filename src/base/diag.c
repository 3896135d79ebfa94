/* diag.c - turns a place and a sentence into an error and a report entry. */
#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/report_internal.h"

enum { LINE_MAX_SHOWN = 8192 };

struct diag diag_start(struct roost_report *report, struct roost_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
    return (struct diag){.report = report, .err = err};
}

/* Cuts at a character, not inside one, when the buffer was too short. */
static void mend_cut(char *text, int wanted, size_t size)
{
    if (wanted < 0 || (size_t)wanted < size)
        return;
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, "...", 4);
}

/* Writes the sentence without secrets. They are taken out before it is cut: a cut one is not found. */
static void put_words(const struct diag *diag, char *out, size_t size, const char *format,
                      va_list args) __attribute__((format(printf, 4, 0)));
static void put_words(const struct diag *diag, char *out, size_t size, const char *format,
                      va_list args)
{
    enum { WORDS_MAX = 4096 };
    char words[WORDS_MAX];
    if (!diag->secrets || !diag->secrets->first) {
        mend_cut(out, vsnprintf(out, size, format, args), size);
        return;
    }
    mend_cut(words, vsnprintf(words, sizeof words, format, args), sizeof words);
    size_t wanted = secrets_redact(diag->secrets, diag->about, words, out, size);
    mend_cut(out, (int)wanted, size);
}

static void fill_error(struct roost_error *err, enum roost_code code, struct place at,
                       const char *message)
{
    at = place_settle(at);
    err->code = code;
    err->line = at.line;
    err->column = at.column;
    int wanted = snprintf(err->file, sizeof err->file, "%s", at.source ? at.source->name : "");
    mend_cut(err->file, wanted, sizeof err->file);
    snprintf(err->message, sizeof err->message, "%s", message);
    err->hint[0] = '\0';
}

static void add_to_report(struct diag *diag, enum roost_code code, enum roost_warning warning,
                          struct place at, const char *message)
{
    char line[LINE_MAX_SHOWN];
    /* Finding a place costs a walk through the source: not for what is only counted. */
    bool is_kept = diag->report->count < REPORT_KEPT;
    if (is_kept)
        at = place_settle(at);
    struct roost_diagnostic entry = {
        .code = code,
        .warning = warning,
        .file = at.source ? at.source->name : "",
        .line = at.line,
        .column = at.column,
        .length = at.length > 0 ? at.length : 1,
        .message = message,
        .hint = "",
    };
    struct excerpt excerpt;
    if (is_kept && source_excerpt(at, line, sizeof line, &excerpt) &&
        !secrets_hold(diag->secrets, sv_from(excerpt.text))) {
        entry.source_line = excerpt.text;
        entry.source_column = excerpt.first;
        entry.source_goes_on = excerpt.goes_on;
    }
    struct roost_diagnostic *kept = report_add(diag->report, &entry);
    diag->report->newest = kept ? (size_t)(kept - diag->report->entries) : REPORT_KEPT;
}

enum roost_code diag_error(struct diag *diag, enum roost_code code, struct place at,
                           const char *format, ...)
{
    char message[ROOST_ERROR_MESSAGE_MAX] = "";
    va_list args;
    bool is_kept = diag->errors == 0 || (diag->report && diag->report->count < REPORT_KEPT);
    diag->about = is_kept ? secrets_at(diag->secrets, at) : NULL;
    va_start(args, format);
    if (is_kept) /* what is only counted costs nothing */
        put_words(diag, message, sizeof message, format, args);
    va_end(args);

    if (diag->errors++ == 0) {
        diag->first = code;
        if (diag->err)
            fill_error(diag->err, code, at, message);
    }
    if (diag->report)
        add_to_report(diag, code, ROOST_WARN_NONE, at, message);
    diag->is_hint_wanted = true;
    return code;
}

void diag_warn(struct diag *diag, enum roost_warning warning, struct place at, const char *format,
               ...)
{
    diag->is_hint_wanted = false;
    if (!diag->report)
        return;
    char message[ROOST_ERROR_MESSAGE_MAX] = "";
    va_list args;
    bool is_kept = diag->report->count < REPORT_KEPT;
    diag->about = is_kept ? secrets_at(diag->secrets, at) : NULL;
    va_start(args, format);
    if (is_kept)
        put_words(diag, message, sizeof message, format, args);
    va_end(args);
    add_to_report(diag, ROOST_OK, warning, at, message);
}

bool diag_wants_hint(const struct diag *diag)
{
    return (diag->err && diag->is_hint_wanted && diag->errors == 1) ||
           (diag->report && diag->report->newest < diag->report->count);
}

void diag_hint(struct diag *diag, const char *format, ...)
{
    if (!diag_wants_hint(diag))
        return;
    char hint[ROOST_ERROR_HINT_MAX];
    va_list args;
    va_start(args, format);
    put_words(diag, hint, sizeof hint, format, args);
    va_end(args);

    if (diag->err && diag->is_hint_wanted && diag->errors == 1)
        memcpy(diag->err->hint, hint, strlen(hint) + 1);
    if (diag->report && diag->report->newest < diag->report->count)
        report_set_hint(diag->report, &diag->report->entries[diag->report->newest], hint);
}

enum roost_code diag_nomem(struct diag *diag)
{
    return diag_error(diag, ROOST_ERR_MEMORY, NOWHERE, "out of memory");
}

enum roost_code diag_again(struct diag *diag, const struct roost_error *err)
{
    diag_error(diag, err->code, (struct place){0}, "%s", err->message);
    if (err->hint[0])
        diag_hint(diag, "%s", err->hint);
    return err->code;
}
