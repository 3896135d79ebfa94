/* screen.h - shows what workers write: labelled lines, safe for a terminal, and a footer.
 *
 * A line of a worker becomes "[component/rank] text": standard output on `out`, standard error on
 * `err`. logs/line_reader.h says what a line shows of the bytes. A line is shown when it is complete, or
 * when its stream ends.
 *
 * The footer stands below the lines of a terminal: one row per progress bar whose line goes on, and one
 * row of status. Only where standard error is a terminal and standard output is none or the same one,
 * not a pipe whose reader may be writing to that terminal.
 *
 * Only functions whose name says so wait. What a slow reader does not take stays in two buffers of a fixed
 * size; when they are full, screen_put takes nothing until there is room. The screen reopens descriptors
 * of pipes and terminals, so that only its own are nonblocking.
 *
 * The loop of a caller:
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
#include <stdarg.h>

#include "base/rankset.h"
#include "logs/line_reader.h"
#include "logs/log_tail.h"

enum { SCREEN_FDS = 2 };

/* The longest message of roost itself, a path and some words, and the line that it becomes. */
enum { OWN_MESSAGE_MAX = 5120, OWN_LINE_MAX = 4 * OWN_MESSAGE_MAX + 32 };

/* Writes "roost: " and the message to `line`, escaped for a terminal: messages quote paths and words
 * that other programs chose. */
void own_line(char line[OWN_LINE_MAX], const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* All zero except the names: show everything, without colour. */
struct screen_options {
    /* Names by component_index. Borrowed while the screen lives, as are `ranks`. */
    const char *const *components;
    int32_t component_count;
    int fds[SCREEN_FDS];         /* where the streams go; zeros mean 1 and 2 */
    bool has_color[SCREEN_FDS];  /* by output_style of each */
    bool is_quiet;               /* shows no line of workers */
    bool has_no_label;           /* raw bytes; on a terminal escaped lines without a label */
    const struct rankset *ranks; /* show only these; NULL = all */
    bool hides[SCREEN_FDS];      /* streams that are not shown */
    int width;                   /* of the terminal, for the footer; 0 = 80 */
    int height;                  /* half of it is for bars at most; 0 = no bars */
    bool has_times;              /* each line starts with its time, see screen_set_time */
    /* Shows only lines for which this is true; NULL = all. The line is as it is shown, without its label, its
     * colours and its newline. */
    bool (*picks)(void *ctx, const char *line);
    void *pick_ctx;
};

struct screen;

/* NULL without memory. */
struct screen *screen_new(const struct screen_options *options);

/* Frees the screen. What was not flushed is lost: see screen_drain. */
void screen_free(struct screen *screen);

/* Whether the screen shows lines of this rank. Do not tail others. */
bool screen_shows(const struct screen *screen, int32_t rank);

/* A log_sink; ctx is the screen. Takes whole lines and leaves the rest for later. False when the reader is
 * slow and the buffers are full. */
bool screen_put(void *screen, const struct log_chunk *chunk, size_t *taken);

/* When the lines of the chunks from here on were written, in ms since 1970. */
void screen_set_time(struct screen *screen, int64_t ms);

/* Lines from here on are counted instead of shown, until screen_counted, which returns how many would have
 * been. */
void screen_count(struct screen *screen);
int64_t screen_counted(struct screen *screen);

/* The next so many lines that would be shown are left out. */
void screen_skip(struct screen *screen, int64_t lines);

/* Writes what can be written without waiting, and draws the footer when it is due. True when nothing
 * is left. */
bool screen_flush(struct screen *screen);

/* The same, but waits for readers: until all is written, `stop_fd` (-1 = none) becomes readable, or
 * `patience` ms have passed (-1 = no limit). True when nothing is left. */
bool screen_drain(struct screen *screen, int stop_fd, int patience);

/* Whether the buffers are full, so that screen_put would take nothing. */
bool screen_is_full(const struct screen *screen);

/* Fills the descriptors to wait for (POLLOUT) while something is left to write. Returns how many: 0-2. */
nfds_t screen_poll(const struct screen *screen, struct pollfd out[SCREEN_FDS]);

/* Milliseconds until screen_flush has a footer to draw; -1 = none waits. */
int screen_timeout(const struct screen *screen);

/* Shows one line at the bottom of the terminal, until it is replaced or NULL takes it away. Not more
 * than ten times a second: what comes between is left out, the last one is shown. It is taken away
 * before lines are written. `text` is cut at the width and must be safe; the screen copies it. */
void screen_status(struct screen *screen, const char *text);

/* Takes the footer away and draws none from here: what was not shown as a line by now never will be. */
void screen_end_footer(struct screen *screen);

/* Shows a line of roost itself (own_line) on standard error, among the lines of workers. */
void screen_say(struct screen *screen, const char *line);

/* The errno of the first write that failed on a descriptor (0 standard output, 1 standard error); 0 = none.
 * EPIPE: the reader has gone. The screen then shows nothing more there and drops chunks. */
int screen_error(const struct screen *screen, int which);

/* Bytes of workers shown on both, labels included. */
uint64_t screen_shown(const struct screen *screen);

#endif
