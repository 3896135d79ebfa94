/* screen_footer.c - the rows at the bottom of a terminal: progress bars of workers, and the status of
 * roost. Drawn a few times a second at most, taken away before anything else is written there. Each row
 * is narrower than the terminal, so that it never wraps and going up one row reaches the one before. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/strview.h"
#include "base/utf8.h"
#include "cli/screen/screen_internal.h"

int64_t screen_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- drawing --- */

static bool has_content(const struct screen *screen)
{
    return screen->status[0] != '\0' || screen->bar_count > 0;
}

void footer_hide(struct screen *screen)
{
    struct screen_out *out = screen->out_of[1];
    if (screen->rows == 0)
        return;
    out_add(out, "\r\x1b[K", 4);
    for (; screen->rows > 1; screen->rows--)
        out_add(out, "\x1b[A\x1b[K", 6);
    screen->rows = 0;
    screen->is_stale = has_content(screen);
}

static void draw_row(struct screen *screen, const char *text, size_t len)
{
    struct screen_out *out = screen->out_of[1];
    out_add(out, screen->rows > 0 ? "\n\r" : "\r", screen->rows > 0 ? 2 : 1);
    out_add(out, text, len);
    out_add(out, "\x1b[K", 3);
    screen->rows++;
}

static int64_t time_left(const struct screen *screen)
{
    int pause = screen->bar_count > 0 ? BARS_MS : STATUS_MS;
    return screen->drawn_at + pause - screen_now();
}

void footer_draw(struct screen *screen)
{
    struct screen_out *out = screen->out_of[1];
    /* A terminal that takes nothing would get every drawing at once, later. */
    if (!screen->is_stale || out->is_blocked || time_left(screen) > 0 || !out_has_room(out))
        return;
    footer_hide(screen);
    screen->is_stale = false;
    screen->drawn_at = screen_now();
    for (int i = 0; i < screen->bar_count; i++)
        draw_row(screen, screen->bars[i].text, screen->bars[i].len);
    if (screen->status[0])
        draw_row(screen, screen->status, strlen(screen->status));
}

int screen_timeout(const struct screen *screen)
{
    if (!screen->is_stale || screen->out_of[1]->is_blocked)
        return -1;
    int64_t left = time_left(screen);
    return left < 0 ? 0 : (int)left;
}

void screen_end_footer(struct screen *screen)
{
    footer_hide(screen);
    screen->status[0] = '\0';
    screen->bar_count = 0;
    screen->is_stale = screen->has_footer = false;
    screen_flush(screen);
}

/* --- the status --- */

/* Bytes of `text` that fit into `columns`. */
static size_t fit(struct strview text, int columns)
{
    size_t at = 0;
    while (at < text.len) {
        uint32_t code = 0;
        size_t len = utf8_next(text.at + at, text.at + text.len, &code);
        columns -= len ? utf8_width(code) : 1;
        if (columns < 0 || len == 0)
            break;
        at += len;
    }
    return at;
}

void screen_status(struct screen *screen, const char *text)
{
    if (!screen->has_footer)
        return;
    struct strview wanted = sv_from(text);
    if (wanted.len >= STATUS_MAX)
        wanted.len = STATUS_MAX - 1;
    /* One column less: in the last one some terminals wrap. */
    wanted.len = fit(wanted, screen->options.width - 1);
    if (wanted.len == strlen(screen->status) && memcmp(screen->status, wanted.at, wanted.len) == 0)
        return;
    memcpy(screen->status, wanted.at, wanted.len);
    screen->status[wanted.len] = '\0';
    if (wanted.len == 0)
        footer_hide(screen);
    screen->is_stale = has_content(screen);
    screen_flush(screen);
}

/* --- bars --- */

static int compare(const struct screen_bar *bar, const struct log_chunk *chunk)
{
    if (bar->component_index != chunk->component_index)
        return bar->component_index < chunk->component_index ? -1 : 1;
    if (bar->rank != chunk->rank)
        return bar->rank < chunk->rank ? -1 : 1;
    return (int)bar->stream - (int)chunk->stream;
}

/* The place of the chunk's bar, or where it would stand. */
static int find(const struct screen *screen, const struct log_chunk *chunk, bool *out_is_there)
{
    int at = 0;
    while (at < screen->bar_count && compare(&screen->bars[at], chunk) < 0)
        at++;
    *out_is_there = at < screen->bar_count && compare(&screen->bars[at], chunk) == 0;
    return at;
}

void footer_put_bar(struct screen *screen, const struct log_chunk *chunk, const char *text,
                    size_t len)
{
    if (!screen->has_footer || screen->out_of[chunk->stream] != screen->out_of[1])
        return;
    bool is_there;
    int at = find(screen, chunk, &is_there);
    int most = screen->options.height / 2 < BARS_MAX ? screen->options.height / 2 : BARS_MAX;
    if (!is_there && screen->bar_count >= most)
        return;
    struct screen_bar *bar = &screen->bars[at];
    if (!is_there) {
        memmove(bar + 1, bar, (size_t)(screen->bar_count - at) * sizeof *bar);
        screen->bar_count++;
        *bar = (struct screen_bar){chunk->component_index, chunk->rank, chunk->stream, 0, {0}};
    }
    bar->len = filter_fit(bar->text, sizeof bar->text, (struct strview){text, len},
                          screen->options.width - 1);
    screen->is_stale = true;
}

void footer_drop_bar(struct screen *screen, const struct log_chunk *chunk)
{
    bool is_there;
    int at = find(screen, chunk, &is_there);
    if (!is_there)
        return;
    struct screen_bar *bar = &screen->bars[at];
    screen->bar_count--;
    memmove(bar, bar + 1, (size_t)(screen->bar_count - at) * sizeof *bar);
    screen->is_stale = true;
}
