/* screen.c - turns chunks of logs into lines.
 *
 * The speed of the loop in show_lines is promised (bench/screen_speed.c): a line costs a label, one
 * pass that copies and escapes, and no system call. What a chunk ends with that is not a whole line is
 * not taken and comes again, so a screen keeps no line of anybody. Between chunks of a stream it only
 * has to know the two bits in the memo. */
#include "cli/screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/screen_internal.h"

enum {
    AFTER_CR =
        1,      /* the line was ended by a carriage return: a newline right behind it is the same */
    IN_CUT = 2, /* the line was cut: the rest of it is not shown */
};

static const char CUT_MARK[] = " [... cut at 64 KiB]";

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
    if (!out_init(&screen->outs[0], fds[0]) || (!is_one && !out_init(&screen->outs[1], fds[1]))) {
        screen_free(screen);
        return NULL;
    }
    screen->out_of[0] = &screen->outs[0];
    screen->out_of[1] = &screen->outs[is_one ? 0 : 1];
    screen->has_status = screen->out_of[1]->is_terminal && !is_pipe(fds[0]);
    return screen;
}

void screen_free(struct screen *screen)
{
    if (!screen)
        return;
    for (int i = 0; i < SCREEN_FDS; i++)
        out_release(&screen->outs[i]);
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

/* --- lines --- */

static const int colors[] = {74, 208, 36, 175, 32, 166, 143, 67, 131, 109};

/* "[actor/0] ", coloured by component; returns its length. */
static size_t make_label(const struct screen *screen, const struct log_chunk *chunk, char *label)
{
    int32_t index = chunk->component_index;
    const char *name = index >= 0 && index < screen->options.component_count
                           ? screen->options.components[index]
                           : "?";
    int color = colors[(size_t)(index < 0 ? 0 : index) % (sizeof colors / sizeof *colors)];
    int len = screen->options.has_color[chunk->stream]
                  ? snprintf(label, LABEL_MAX, "\x1b[38;5;%dm[%.63s/%d]\x1b[0m ", color, name,
                             chunk->rank)
                  : snprintf(label, LABEL_MAX, "[%.63s/%d] ", name, chunk->rank);
    return (size_t)len;
}

/* A chunk on its way to the screen. */
struct showing {
    struct screen_out *out;
    const struct log_chunk *chunk;
    const char *at, *end;
    uint32_t memo;
    char label[LABEL_MAX];
    size_t label_len;
};

static const char *find_end_of_line(const char *at, const char *end)
{
    while (at < end && *at != '\n' && *at != '\r')
        at++;
    return at;
}

/* What comes before a line: the newline that belongs to a carriage return, the rest of a cut line,
 * carriage returns with nothing to end. False when nothing is left. */
static bool skip_to_line(struct showing *it)
{
    while (it->at < it->end) {
        if (it->memo & IN_CUT) {
            it->at = find_end_of_line(it->at, it->end);
            if (it->at == it->end)
                return false;
            it->memo = *it->at++ == '\r' ? AFTER_CR : 0;
        } else if ((it->memo & AFTER_CR) && *it->at == '\n') {
            it->memo = 0;
            it->at++;
        } else if (*it->at == '\r') {
            it->at++;
        } else {
            it->memo = 0;
            return true;
        }
    }
    return false;
}

static inline char *put_label(char *to, const struct showing *it)
{
    /* Most labels are short: a copy of a fixed size needs no call. The line's room covers it. */
    memcpy(to, it->label, 32);
    if (it->label_len > 32)
        memcpy(to + 32, it->label + 32, it->label_len - 32);
    return to + it->label_len;
}

static char *put_mark(char *to)
{
    memcpy(to, CUT_MARK, sizeof CUT_MARK - 1);
    return to + sizeof CUT_MARK - 1;
}

/* One line into the buffer, which has room for it. False when it is not whole yet. */
static bool show_line(struct showing *it)
{
    char *start = it->out->bytes + it->out->used, *to = put_label(start, it);
    size_t left = (size_t)(it->end - it->at);
    const char *limit = left > SCREEN_LINE_MAX ? it->at + SCREEN_LINE_MAX : it->end;
    const char *stop = escape_line(it->at, limit, &to);
    if (stop == it->end && !it->chunk->is_end)
        return false;
    if (stop < it->end && (*stop == '\n' || *stop == '\r')) {
        it->memo = *stop == '\r' ? AFTER_CR : 0;
        it->at = stop + 1;
    } else if (stop < it->end) { /* too long: once more, without a character cut in two */
        to = start + it->label_len;
        escape_line(it->at, escape_whole_characters(it->at, limit), &to);
        to = put_mark(to);
        it->memo = IN_CUT;
        it->at = limit;
    } else {
        it->at = it->end;
    }
    *to++ = '\n';
    it->out->used += (size_t)(to - start);
    return true;
}

/* Whole lines with nothing special in them: nearly all there are. Stops at any other, or where there is
 * no room for one more; show_lines knows what to do then. */
static void show_plain_lines(struct showing *it)
{
    const char *at = it->at, *end = it->end;
    char *to = it->out->bytes + it->out->used, *full = it->out->bytes + (OUT_SIZE - LINE_ROOM);
    while (at < end && to <= full) {
        const char *limit = end - at > SCREEN_LINE_MAX ? at + SCREEN_LINE_MAX : end;
        char *behind = put_label(to, it);
        const char *stop = escape_copy_plain(at, limit, &behind);
        if (stop == limit || *stop != '\n')
            break;
        *behind++ = '\n';
        to = behind;
        at = stop + 1;
    }
    it->at = at;
    it->out->used = (size_t)(to - it->out->bytes);
}

/* False when the reader lags. */
static bool show_lines(struct showing *it)
{
    for (;;) {
        if (it->memo == 0)
            show_plain_lines(it);
        if (!skip_to_line(it))
            return true;
        if (!out_has_room(it->out))
            return false;
        if (!show_line(it))
            return true;
    }
}

/* Bytes as they are, in whole lines as far as they come; false when the reader lags. */
static bool show_raw(struct showing *it)
{
    const char *stop = it->end;
    if (!it->chunk->is_end && it->end > it->at) {
        const char *last = memrchr(it->at, '\n', (size_t)(it->end - it->at));
        if (last)
            stop = last + 1;
        else if (it->end - it->at < SCREEN_LINE_MAX)
            stop = it->at;
    }
    while (it->at < stop) {
        if (!out_has_room(it->out))
            return false;
        size_t len = (size_t)(stop - it->at) < LINE_ROOM ? (size_t)(stop - it->at) : LINE_ROOM;
        out_add(it->out, it->at, len);
        it->at += len;
    }
    return true;
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
    struct showing it = {.out = out,
                         .chunk = chunk,
                         .at = chunk->bytes,
                         .end = chunk->bytes + chunk->len,
                         .memo = *chunk->memo};
    size_t before = out->used;
    bool is_hidden = screen->is_status_drawn && out == screen->out_of[1];
    if (is_hidden)
        status_hide(screen);
    size_t start = out->used;
    bool goes_on;
    if (screen->options.has_no_label && !out->is_terminal) {
        goes_on = show_raw(&it);
    } else {
        if (!screen->options.has_no_label)
            it.label_len = make_label(screen, chunk, it.label);
        goes_on = show_lines(&it);
    }
    if (is_hidden && out->used == start) { /* no line yet: leave the status where it is */
        out->used = before;
        screen->is_status_drawn = true;
        screen->is_status_stale = false;
    }
    *chunk->memo = chunk->is_end && it.at == it.end ? 0 : it.memo;
    *taken = (size_t)(it.at - chunk->bytes);
    return goes_on;
}

/* --- getting it out --- */

bool screen_flush(struct screen *screen)
{
    status_draw(screen);
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
    int64_t until = status_now() + patience;
    while (!screen_flush(screen)) {
        struct pollfd polled[SCREEN_FDS + 1];
        nfds_t count = screen_poll(screen, polled);
        polled[count] = (struct pollfd){.fd = stop_fd, .events = POLLIN};
        int64_t left = until - status_now();
        int ready = poll(polled, count + 1, patience < 0 ? -1 : left > 0 ? (int)left : 0);
        if (ready == 0 || (ready < 0 && errno != EINTR))
            return false;
        if (ready > 0 && polled[count].revents)
            return false;
    }
    return true;
}

void screen_say(struct screen *screen, const char *line)
{
    struct screen_out *out = screen->out_of[1];
    status_hide(screen);
    out_has_room(out);
    out_add(out, line, strlen(line));
    out_add(out, "\n", 1);
    screen_flush(screen);
}
