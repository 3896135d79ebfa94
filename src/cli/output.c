/* output.c - the only place that knows standard output, standard error and terminals. */
#include "cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/escape.h"
#include "base/palette.h"
#include "base/text.h"
#include "cli/screen/screen.h"

int output_stdout = STDOUT_FILENO, output_stderr = STDERR_FILENO;

static int write_errno; /* why the last write failed */

bool output_write(void *ctx, const char *bytes, size_t len)
{
    int fd = *(const int *)ctx;
    while (len > 0) {
        ssize_t done = write(fd, bytes, len);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            write_errno = errno;
            return false;
        }
        bytes += done;
        len -= (size_t)done;
    }
    return true;
}

static int terminal_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    /* Only people have columns: what goes to a file or a pipe is the same everywhere. */
    const char *columns = isatty(fd) ? getenv("COLUMNS") : NULL;
    int width = columns ? (int)strtol(columns, NULL, 10) : 0;
    return width >= 20 && width <= 1000 ? width : 80;
}

int output_height(int fd)
{
    enum { USUAL = 24 }; /* a terminal that does not know its size */
    struct winsize size;
    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : USUAL;
}

struct roost_text_style output_style(const struct invocation *invocation, int fd)
{
    const char *when = option_value(invocation, "color");
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    struct roost_text_style style = {.width = terminal_width(fd)};
    if (when && strcmp(when, "auto") != 0)
        style.has_color = strcmp(when, "always") == 0;
    else
        style.has_color = palette_is_on(isatty(fd), no_color, term);
    return style;
}

static void __attribute__((format(printf, 1, 0))) say(const char *format, va_list args)
{
    char line[OWN_LINE_MAX + 1];
    own_line(line, format, args);
    memcpy(line + strlen(line), "\n", 2);
    output_write(&output_stderr, line, strlen(line));
}

void output_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int output_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return EXIT_USAGE;
}

int output_refuse(const struct invocation *invocation, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (!option_is_on(invocation, "json"))
        return output_usage("%s", message);
    struct roost_report *report = roost_report_new();
    struct roost_error err;
    struct diag diag = diag_start(report, &err);
    diag_error(&diag, ROOST_ERR_USAGE, NOWHERE, "%s", message);
    if (report)
        (void)!roost_render_report_json(report, output_write, &output_stderr);
    roost_report_free(report);
    return EXIT_USAGE;
}

int output_status(enum roost_code code, int status)
{
    if (code == ROOST_OK)
        return status;
    if (code == ROOST_ERR_IO && write_errno != EPIPE)
        output_say("cannot write: %s", strerrordesc_np(write_errno));
    else if (code != ROOST_ERR_IO)
        output_say("out of memory");
    return roost_code_exit(code);
}

void output_report(const struct invocation *invocation, const struct roost_report *report)
{
    struct roost_text_style style = output_style(invocation, output_stderr);
    enum roost_code code =
        option_is_on(invocation, "json")
            ? roost_render_report_json(report, output_write, &output_stderr)
            : roost_render_report_text(report, &style, output_write, &output_stderr);
    (void)code; /* where errors cannot be shown there is nobody to tell */
}

void output_error(const struct roost_error *err)
{
    char hint[ESCAPE_GROWTH * ROOST_ERROR_HINT_MAX + ESCAPE_SLACK + 8] = "  = ";
    output_say("error: %s", err->message);
    escape_text(err->hint, hint + strlen(hint));
    memcpy(hint + strlen(hint), "\n", 2);
    if (err->hint[0])
        (void)output_write(&output_stderr, hint, strlen(hint));
}
