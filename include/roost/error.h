/* error.h - how roost reports errors and warnings.
 *
 * A failing call fills a struct roost_error on the caller's stack. Nothing in it is allocated, and it
 * outlives the objects that it is about. Calls that read what a user wrote can report every fault of a
 * file at once: pass them a struct roost_report as well, and read it when they return. */
#ifndef ROOST_ERROR_H
#define ROOST_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <roost/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, word in JSON, exit status of the program */
#define ROOST_ERROR_MAP(X)                                                                         \
    X(USAGE, "usage", 2)                                                                           \
    X(SYNTAX, "syntax", 3)                                                                         \
    X(SCHEMA, "schema", 3)                                                                         \
    X(REFERENCE, "reference", 3)                                                                   \
    X(RANK, "rank", 3)                                                                             \
    X(NAME, "name", 3)                                                                             \
    X(LIMIT, "limit", 3)                                                                           \
    X(FIT, "fit", 4)                                                                               \
    X(HARDWARE, "hardware", 4)                                                                     \
    X(IO, "io", 5)                                                                                 \
    X(MEMORY, "memory", 5)                                                                         \
    X(ENGINE, "engine", 5)                                                                         \
    X(LEASE, "lease", 5)                                                                           \
    X(ACCESS, "access", 5)                                                                         \
    X(TIMEOUT, "timeout", 5)                                                                       \
    X(BUG, "bug", 5)                                                                               \
    X(WORKER, "worker", 1)

enum roost_code {
    ROOST_OK = 0,
#define X(name, word, status) ROOST_ERR_##name,
    ROOST_ERROR_MAP(X)
#undef X
};

/* What a warning is about: name, word in JSON. A warning never fails a call. */
#define ROOST_WARNING_MAP(X)                                                                       \
    X(READING, "reading")         /* another YAML reader sees another value here */                \
    X(REFERENCE_REFUSES, "rlinf") /* valid here, refused by RLinf itself */                        \
    X(IDLE, "idle")               /* accelerators that no component uses */                        \
    X(OTHER_LABEL, "other-label") /* env_configs that do not reach a process */                    \
    X(OVERRIDDEN, "overridden")   /* a variable that roost sets anyway */                          \
    X(EXTRA_NODES, "extra-nodes") /* more nodes than num_nodes */                                  \
    X(NOT_COMPOSED, "defaults")   /* what --hydra did not compose */                               \
    X(NODE_ORDER, "node-order")   /* node groups over nodes that are ordered by address */         \
    X(MIXED, "mixed")             /* node groups that count different things */                    \
    X(NOT_BOUND, "bind")          /* `bind` that this version does not apply */                    \
    X(PORTS, "ports")             /* ports that others may take first */                           \
    X(INTERFACES, "interfaces") /* a network interface that differs from RLINF_COMM_NET_DEVICES */ \
    X(COUNTS, "counts")         /* accelerators of a node that Ray counts otherwise */             \
    X(NO_SHELL, "no-shell")     /* $NAME in a command that no shell reads */                       \
    X(SWITCH, "switch")         /* a variable that changes which devices Ray shows */              \
    X(MODE, "mode")             /* sizes of a model that only model-parallel placement reads */

enum roost_warning {
    ROOST_WARN_NONE = 0,
#define X(name, word) ROOST_WARN_##name,
    ROOST_WARNING_MAP(X)
#undef X
};

enum {
    ROOST_ERROR_FILE_MAX = 256,
    ROOST_ERROR_MESSAGE_MAX = 512,
    ROOST_ERROR_HINT_MAX = 256,
};

/* One fault. Line 0 = it has no place in a file. Columns count characters from 1. */
struct roost_error {
    enum roost_code code;
    char file[ROOST_ERROR_FILE_MAX];
    int32_t line;
    int32_t column;
    char message[ROOST_ERROR_MESSAGE_MAX];
    char hint[ROOST_ERROR_HINT_MAX]; /* how to fix it; may be empty */
};

/* One entry of a report. Its texts are borrowed from the report. */
struct roost_diagnostic {
    enum roost_code code;       /* ROOST_OK for a warning */
    enum roost_warning warning; /* ROOST_WARN_NONE for an error */
    const char *file;           /* "" = no file */
    int32_t line;               /* 0 = no place */
    int32_t column;
    int32_t length;      /* characters to underline, at least 1 */
    const char *message; /* one line, lower case, no full stop */
    const char *hint;    /* "" = none */
    /* The source line, or the piece of a long line around the fault. NULL = not known. */
    const char *source_line;
    int32_t source_column; /* column of the first character of source_line */
    bool source_goes_on;   /* the line continues after source_line */
};

/* All errors and warnings of one input. */
struct roost_report;

/* An empty report, or NULL without memory. */
ROOST_API struct roost_report *roost_report_new(void);
ROOST_API void roost_report_free(struct roost_report *report);

/* How many errors and warnings were reported. Beyond a few hundred, the report counts them without keeping
 * them. */
ROOST_API size_t roost_report_errors(const struct roost_report *report);
ROOST_API size_t roost_report_warnings(const struct roost_report *report);

/* The kept entries: errors and warnings together, in the order of their places. */
ROOST_API size_t roost_report_count(const struct roost_report *report);
ROOST_API const struct roost_diagnostic *roost_report_at(const struct roost_report *report,
                                                         size_t index);

/* The word of a code ("rank"), "ok" for ROOST_OK. */
ROOST_API const char *roost_code_word(enum roost_code code);

/* The word of a warning ("idle"). */
ROOST_API const char *roost_warning_word(enum roost_warning warning);

/* The exit status that a program ends with after this code. */
ROOST_API int roost_code_exit(enum roost_code code);

/* The exit status of a whole report: 0 without errors. Among several codes, an invalid config (3) wins over
 * one that does not fit (4), and a failure of the system (5) wins over both. */
ROOST_API int roost_report_exit(const struct roost_report *report);

#ifdef __cplusplus
}
#endif
#endif
