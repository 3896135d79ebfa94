/* output.h - standard output and error, the terminal, and the exit status of a report. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdarg.h>

#include "cli/command.h"

/* roost_write_fn for a descriptor: ctx is an int *. Handles short writes. */
bool output_write(void *ctx, const char *bytes, size_t len);
extern int output_stdout, output_stderr;

/* How text looks on a descriptor: width, and colours by --color, NO_COLOR and TERM. */
struct roost_text_style output_style(const struct invocation *invocation, int fd);

/* What a message of one line takes at most: a path and some words. */
enum { OUTPUT_MESSAGE_MAX = 5120, OUTPUT_LINE_MAX = 4 * OUTPUT_MESSAGE_MAX + 32 };

/* "roost: " and a message, safe for a terminal, whatever paths and words of others are in it. */
void output_line(char line[OUTPUT_LINE_MAX], const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* One line on standard error that starts with "roost: ". */
void output_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Wrong usage: says it in one line and returns EXIT_USAGE. */
int output_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, but under --json as one object on standard error, like any other error. */
int output_refuse(const struct invocation *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* An error that has no place in a file, and its cure, on standard error. */
void output_error(const struct roost_error *err);

/* Turns the result of writing data to standard output into an exit status: `status` when all is
 * well, otherwise says what failed. */
int output_status(enum roost_code code, int status);

/* Prints a report on standard error: as text, or as one JSON object under --json. */
void output_report(const struct invocation *invocation, const struct roost_report *report);

#endif
