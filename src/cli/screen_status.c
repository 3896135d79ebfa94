/* screen_status.c - the line at the bottom of a terminal: drawn at most ten times a second, taken away
 * before anything else is written there. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/strview.h"
#include "base/utf8.h"
#include "cli/screen_internal.h"

int64_t status_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void status_hide(struct screen *screen)
{
    if (!screen->is_status_drawn)
        return;
    out_add(screen->out_of[1], "\r\x1b[K", 4);
    screen->is_status_drawn = false;
    screen->is_status_stale = screen->status[0] != '\0';
}

void status_draw(struct screen *screen)
{
    int64_t now = status_now();
    if (!screen->is_status_stale || now - screen->status_at < STATUS_MS)
        return;
    screen->is_status_stale = false;
    screen->status_at = now;
    out_add(screen->out_of[1], "\r", 1);
    out_add(screen->out_of[1], screen->status, strlen(screen->status));
    out_add(screen->out_of[1], "\x1b[K", 3);
    screen->is_status_drawn = screen->status[0] != '\0';
}

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
    if (!screen->has_status)
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
        status_hide(screen);
    screen->is_status_stale = wanted.len > 0;
    screen_flush(screen);
}

int screen_timeout(const struct screen *screen)
{
    if (!screen->is_status_stale)
        return -1;
    int64_t left = screen->status_at + STATUS_MS - status_now();
    return left < 0 ? 0 : (int)left;
}
