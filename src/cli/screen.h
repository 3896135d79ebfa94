/* screen.h - shows what workers write: labelled lines, safe for a terminal, and one line of status.
 *
 * A line of a worker becomes "[component/rank] text": standard output on `out`, standard error on
 * `err`. Text is escaped (base/escape.h); a carriage return ends a physical line as a newline does, so
 * that nothing can be written over a label; a line longer than SCREEN_LINE_MAX is cut, with a mark.
 * A line is shown when it is complete, or when its stream ends.
 *
 * Nothing here waits, unless its name says so: what a reader does not take stays in two buffers of a
 * fixed size, and when they are full screen_put takes nothing more until there is room. Descriptors
 * of pipes and terminals are opened anew to be nonblocking for us alone.
 *
 * The loop of who uses it:
 *
 *     count = screen_poll(screen, polled);              // what to wait for when the screen lags
 *     poll(..., least of log_tail_timeout and screen_timeout);
 *     if (!screen_is_full(screen))
 *         log_tail_read(tail, screen_put, screen);
 *     screen_flush(screen);
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <poll.h>

#include "base/rankset.h"
#include "logs/log_tail.h"

enum { SCREEN_LINE_MAX = 64 * 1024, SCREEN_FDS = 2 };

/* All zero but the names is a screen that shows everything, without colour. */
struct screen_options {
    const char *const
        *components; /* names by component_index; borrowed as long as the screen lives */
    int32_t component_count;
    int fds[SCREEN_FDS];         /* where the streams go; zeros mean 1 and 2 */
    bool has_color[SCREEN_FDS];  /* by output_style of each */
    bool is_quiet;               /* shows no line of workers */
    bool has_no_label;           /* raw bytes; on a terminal escaped lines without a label */
    const struct rankset *ranks; /* only these; NULL = all; borrowed as long as the screen lives */
    bool hides[SCREEN_FDS];      /* streams that are not shown */
    int width;                   /* of the terminal, for the status; 0 = 80 */
};

struct screen;

/* NULL without memory. */
struct screen *screen_new(const struct screen_options *options);

/* Frees. What was not flushed is lost: see screen_drain. */
void screen_free(struct screen *screen);

/* Whether lines of this rank are shown at all: others need not be tailed. */
bool screen_shows(const struct screen *screen, int32_t rank);

/* log_sink; ctx is the screen. Takes whole lines and keeps the rest for later. False when the reader
 * lags behind and the buffers are full. */
bool screen_put(void *screen, const struct log_chunk *chunk, size_t *taken);

/* Writes what can be written without waiting, and draws the status when it is due. True when nothing
 * is left. */
bool screen_flush(struct screen *screen);

/* The same, but waits for readers: until all is out, or `stop_fd` (-1 = none) becomes readable, or
 * `patience` ms have passed (-1 = however long). True when nothing is left. */
bool screen_drain(struct screen *screen, int stop_fd, int patience);

/* Whether the reader lags so far that screen_put would take nothing. */
bool screen_is_full(const struct screen *screen);

/* Fills what to wait for (POLLOUT) while something is left to write; returns how many, 0-2. */
nfds_t screen_poll(const struct screen *screen, struct pollfd out[SCREEN_FDS]);

/* Milliseconds until screen_flush has a status to draw; -1 = none waits. */
int screen_timeout(const struct screen *screen);

/* Shows one line at the bottom of the terminal, until it is replaced or NULL takes it away. Not more
 * than ten times a second: what comes between is left out, the last one is shown. It is taken away
 * before lines are written. Only where standard error is a terminal and standard output is none or
 * the same one, not a pipe whose reader may be writing to that terminal. `text` is cut at the width
 * and must be safe; the screen copies it. */
void screen_status(struct screen *screen, const char *text);

/* A line of roost itself on standard error, among the lines of workers: "roost: " is the caller's. */
void screen_say(struct screen *screen, const char *line);

/* errno of the first write that failed on a descriptor (0 standard output, 1 standard error), 0 while
 * all is well. EPIPE: the reader has gone. Nothing more is shown there; chunks are taken and dropped. */
int screen_error(const struct screen *screen, int which);

/* Bytes of workers shown on both, labels included. */
uint64_t screen_shown(const struct screen *screen);

#endif
