/* screen.c - turns chunks of logs into lines.
 *
 * The speed of the loop in show_lines is promised (bench/screen_speed.c): a line costs a label, one
 * pass that copies and escapes, and no system call. What a chunk ends with that is not a whole line is
 * not taken and comes again, so a screen keeps no line of a worker, progress bars of the footer aside. */
#include "cli/screen/screen.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/screen/moment.h"
#include "cli/screen/screen_internal.h"

/* --- making one --- */

static bool is_same_file(int a, int b)
{
    struct stat first, second;
    return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static bool is_pipe(int fd)
{
    struct stat info;
    return fstat(fd, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

struct screen *screen_new(const struct screen_options *options)
{
    struct screen *screen = calloc(1, sizeof *screen);
    if (!screen)
        return NULL;
    screen->options = *options;
    int *fds = screen->options.fds;
    if (fds[0] == 0 && fds[1] == 0) {
        fds[0] = STDOUT_FILENO;
        fds[1] = STDERR_FILENO;
    }
    if (screen->options.width <= 0)
        screen->options.width = 80;
    bool is_one = is_same_file(fds[0], fds[1]);
    screen->plain = options->picks ? malloc(LOG_LINE_ROOM + 1) : NULL;
    if ((options->picks && !screen->plain) || !out_init(&screen->outs[0], fds[0]) ||
        (!is_one && !out_init(&screen->outs[1], fds[1]))) {
        screen_free(screen);
        return NULL;
    }
    screen->out_of[0] = &screen->outs[0];
    screen->out_of[1] = &screen->outs[is_one ? 0 : 1];
    screen->has_footer = screen->out_of[1]->is_terminal && !is_pipe(fds[0]);
    return screen;
}

void screen_free(struct screen *screen)
{
    if (!screen)
        return;
    for (int i = 0; i < SCREEN_FDS; i++)
        out_release(&screen->outs[i]);
    free(screen->plain);
    free(screen);
}

/* --- asking --- */

bool screen_shows(const struct screen *screen, int32_t rank)
{
    const struct rankset *ranks = screen->options.ranks;
    return !screen->options.is_quiet && (!ranks || ranks->is_all || rankset_has(ranks, rank));
}

bool screen_is_full(const struct screen *screen)
{
    for (int i = 0; i < SCREEN_FDS; i++) {
        const struct screen_out *out = screen->out_of[i];
        if (!out->error && out->used - out->sent > WRITE_AT)
            return true;
    }
    return false;
}

int screen_error(const struct screen *screen, int which)
{
    return screen->out_of[which]->error;
}

uint64_t screen_shown(const struct screen *screen)
{
    return screen->shown;
}

/* --- which lines --- */

void screen_set_time(struct screen *screen, int64_t ms)
{
    screen->time = ms;
}

void screen_count(struct screen *screen)
{
    screen->is_counting = true;
    screen->counted = 0;
}

int64_t screen_counted(struct screen *screen)
{
    screen->is_counting = false;
    return screen->counted;
}

void screen_skip(struct screen *screen, int64_t lines)
{
    screen->skipped = lines;
}

/* Whether lines have to be looked at one by one. */
static bool is_choosy(const struct screen *screen)
{
    return screen->plain || screen->is_counting || screen->skipped > 0;
}

/* Whether the line that `reader` stands at is one that was asked for. */
static bool is_picked(const struct screen *screen, struct line_reader reader)
{
    char *to = screen->plain;
    if (!screen->plain)
        return true;
    reader.has_color = false;
    (void)line_read(&reader, &to);
    *to = '\0';
    return screen->options.picks(screen->options.pick_ctx, screen->plain);
}

/* Whether a line that was asked for is shown now. */
static bool is_its_turn(struct screen *screen)
{
    if (screen->is_counting) {
        screen->counted++;
        return false;
    }
    if (screen->skipped > 0) {
        screen->skipped--;
        return false;
    }
    return true;
}

/* --- lines --- */

static size_t put_time(const struct screen *screen, bool has_color, char *label)
{
    size_t len = 0;
    if (has_color)
        len += (size_t)(stpcpy(label, "\x1b[2m") - label);
    len += moment_put(label + len, screen->time);
    if (has_color)
        len += (size_t)(stpcpy(label + len, FILTER_RESET) - (label + len));
    label[len++] = ' ';
    return len;
}

static size_t make_label(const struct screen *screen, const struct log_chunk *chunk, char *label)
{
    int32_t index = chunk->component_index;
    bool is_known = index >= 0 && index < screen->options.component_count;
    bool has_color = screen->options.has_color[chunk->stream];
    size_t len = screen->options.has_times ? put_time(screen, has_color, label) : 0;
    return len + line_label(label + len, is_known ? screen->options.components[index] : "?",
                            chunk->rank, has_color);
}

/* A chunk on its way to the screen. */
struct showing {
    struct screen *screen;
    struct screen_out *out;
    const struct log_chunk *chunk;
    struct line_reader reader;
    char label[LABEL_MAX];
    size_t label_len;
};

static inline char *put_label(char *to, const struct showing *it)
{
    /* Most labels are short: a copy of a fixed size needs no call. The line's room covers it. */
    memcpy(to, it->label, 32);
    if (it->label_len > 32)
        memcpy(to + 32, it->label + 32, it->label_len - 32);
    return to + it->label_len;
}

/* One line into the buffer, which has room for it. False when none is whole. */
static bool show_line(struct showing *it)
{
    struct line_reader before = it->reader;
    char *start = it->out->bytes + it->out->used, *to = put_label(start, it);
    bool was_open = line_is_open(it->reader.memo);
    enum line_kind kind = line_read(&it->reader, &to);
    if (kind == LINE_OPEN && !it->screen->is_counting && is_picked(it->screen, before))
        footer_put_bar(it->screen, it->chunk, start, (size_t)(to - start));
    if (kind != LINE_WHOLE)
        return false;
    if (was_open)
        footer_drop_bar(it->screen, it->chunk);
    if (is_choosy(it->screen) && (!is_picked(it->screen, before) || !is_its_turn(it->screen)))
        return true;
    *to++ = '\n';
    it->out->used += (size_t)(to - start);
    return true;
}

/* Whole lines with nothing special in them: nearly all there are. Stops at any other, or where there is
 * no room for one more; show_lines knows what to do then. */
static void show_plain_lines(struct showing *it)
{
    const char *at = it->reader.at, *end = it->reader.end;
    char *to = it->out->bytes + it->out->used, *full = it->out->bytes + (OUT_SIZE - LINE_ROOM);
    while (at < end && to <= full) {
        const char *limit = end - at > LOG_LINE_MAX ? at + LOG_LINE_MAX : end;
        char *behind = put_label(to, it);
        const char *stop = escape_copy_plain(at, limit, &behind);
        if (stop == limit || *stop != '\n')
            break;
        *behind++ = '\n';
        to = behind;
        at = stop + 1;
    }
    it->reader.at = at;
    it->out->used = (size_t)(to - it->out->bytes);
}

/* False when the reader lags. */
static bool show_lines(struct showing *it)
{
    for (;;) {
        if (it->reader.memo == 0 && !is_choosy(it->screen))
            show_plain_lines(it);
        if (it->reader.at == it->reader.end)
            return true;
        if (!out_has_room(it->out))
            return false;
        if (!show_line(it))
            return true;
    }
}

/* With its newline; of a very long line, a piece. */
static size_t raw_line_length(const char *at, const char *end)
{
    size_t len = (size_t)(end - at);
    len = len < LOG_LINE_MAX ? len : LOG_LINE_MAX;
    const char *newline = memchr(at, '\n', len);
    return newline ? (size_t)(newline + 1 - at) : len;
}

/* Bytes as they are, in whole lines as far as they come; false when the reader lags. */
static bool show_raw(struct showing *it)
{
    struct line_reader *left = &it->reader;
    const char *stop = left->end;
    if (!it->chunk->is_end && left->end > left->at) {
        const char *last = memrchr(left->at, '\n', (size_t)(left->end - left->at));
        if (last)
            stop = last + 1;
        else if (left->end - left->at < LOG_LINE_MAX)
            stop = left->at;
    }
    while (left->at < stop) {
        if (!out_has_room(it->out))
            return false;
        size_t len = (size_t)(stop - left->at);
        bool is_shown = true;
        if (is_choosy(it->screen)) {
            len = raw_line_length(left->at, stop);
            struct line_reader line = {.at = left->at, .end = left->at + len, .is_end = true};
            is_shown = is_picked(it->screen, line) && is_its_turn(it->screen);
        }
        len = len < LINE_ROOM ? len : LINE_ROOM;
        if (is_shown)
            out_add(it->out, left->at, len);
        left->at += len;
    }
    return true;
}

static bool show(struct showing *it)
{
    const struct screen_options *options = &it->screen->options;
    if (options->has_no_label && !it->out->is_terminal)
        return show_raw(it);
    if (!options->has_no_label)
        it->label_len = make_label(it->screen, it->chunk, it->label);
    return show_lines(it);
}

/* The footer goes away for lines, and stays where it is when there are none. */
static bool show_above_footer(struct showing *it)
{
    struct screen *screen = it->screen;
    size_t before = it->out->used;
    int rows = it->out == screen->out_of[1] ? screen->rows : 0;
    if (rows == 0)
        return show(it);
    bool was_stale = screen->is_stale;
    footer_hide(screen);
    screen->is_stale = was_stale;
    size_t start = it->out->used;
    bool goes_on = show(it);
    if (it->out->used == start && it->out->sent <= before) {
        it->out->used = before;
        screen->rows = rows;
    } else {
        screen->is_stale = true;
    }
    return goes_on;
}

bool screen_put(void *ctx, const struct log_chunk *chunk, size_t *taken)
{
    struct screen *screen = ctx;
    struct screen_out *out = screen->out_of[chunk->stream];
    *taken = chunk->len;
    if (out->error || screen->options.hides[chunk->stream] || !screen_shows(screen, chunk->rank))
        return true;
    if (!out_has_room(out)) {
        *taken = 0;
        return false;
    }
    struct showing it = {.screen = screen,
                         .out = out,
                         .chunk = chunk,
                         .reader = {.at = chunk->bytes,
                                    .end = chunk->bytes + chunk->len,
                                    .memo = *chunk->memo,
                                    .is_end = chunk->is_end,
                                    .has_color = screen->options.has_color[chunk->stream]}};
    bool goes_on = show_above_footer(&it);
    bool is_done = chunk->is_end && it.reader.at == it.reader.end;
    if (is_done)
        footer_drop_bar(screen, chunk);
    *chunk->memo = is_done ? 0 : it.reader.memo;
    *taken = (size_t)(it.reader.at - chunk->bytes);
    return goes_on;
}

/* --- getting it out --- */

bool screen_flush(struct screen *screen)
{
    footer_draw(screen);
    bool is_out = out_flush(screen->out_of[0]);
    if (screen->out_of[1] != screen->out_of[0])
        is_out = out_flush(screen->out_of[1]) && is_out;
    return is_out;
}

nfds_t screen_poll(const struct screen *screen, struct pollfd out[SCREEN_FDS])
{
    nfds_t count = 0;
    for (int i = 0; i < SCREEN_FDS; i++) {
        const struct screen_out *it = screen->out_of[i];
        if (it->used > it->sent && !it->error && (i == 0 || it != screen->out_of[0]))
            out[count++] = (struct pollfd){.fd = it->fd, .events = POLLOUT};
    }
    return count;
}

bool screen_drain(struct screen *screen, int stop_fd, int patience)
{
    int64_t until = screen_now() + patience;
    while (!screen_flush(screen)) {
        struct pollfd polled[SCREEN_FDS + 1];
        nfds_t count = screen_poll(screen, polled);
        polled[count] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
        int64_t left = until - screen_now();
        int ready = poll(polled, count + 1, patience < 0 ? -1 : left > 0 ? (int)left : 0);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return false;
        if (ready > 0 && polled[count].revents)
            return false;
    }
    return true;
}

void own_line(char line[OWN_LINE_MAX], const char *format, va_list args)
{
    static const char name[] = "roost: ";
    static_assert(OWN_LINE_MAX >= sizeof name + ESCAPE_GROWTH * OWN_MESSAGE_MAX + ESCAPE_SLACK);
    char message[OWN_MESSAGE_MAX];
    vsnprintf(message, sizeof message, format, args);
    memcpy(line, name, sizeof name);
    escape_text(message, line + sizeof name - 1);
}

void screen_say(struct screen *screen, const char *line)
{
    struct screen_out *out = screen->out_of[1];
    footer_hide(screen);
    out_has_room(out);
    out_add(out, line, strlen(line));
    out_add(out, "\n", 1);
    screen_flush(screen);
}
