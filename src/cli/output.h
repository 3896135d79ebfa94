/* output.h - standard output and error, the terminal, and the exit status of a report. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdarg.h>

#include "cli/command.h"

/* roost_write_fn for a descriptor: ctx is an int *. Handles short writes. */
bool output_write(void *ctx, const char *bytes, size_t len);
extern int output_stdout, output_stderr;

/* The width of a terminal, and whether to use colours (--color, NO_COLOR, TERM). */
struct roost_text_style output_style(const struct invocation *invocation, int fd);

/* Lines of the terminal that a descriptor is; 0 when it is none. */
int output_height(int fd);

/* Prints one line on standard error that starts with "roost: ". */
void output_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints one line about wrong usage and returns EXIT_USAGE. */
int output_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same; with --json it prints one object on standard error, like any other error. */
int output_refuse(const struct invocation *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints an error without a place, and its hint, on standard error. */
void output_error(const struct roost_error *err);

/* Turns the result of writing data to standard output into an exit status: `status` after ROOST_OK;
 * otherwise it prints what failed and returns the status of the code. */
int output_status(enum roost_code code, int status);

/* Prints a report on standard error: as text, or with --json as one object. */
void output_report(const struct invocation *invocation, const struct roost_report *report);

#endif
