/* screen_internal.h - what a screen is made of: screen.c turns chunks into lines, screen_out.c gets
 * bytes out of the program. */
#ifndef CLI_SCREEN_INTERNAL_H
#define CLI_SCREEN_INTERNAL_H

#include "base/escape.h"
#include "cli/screen.h"

enum {
    LABEL_MAX = 128,
    /* A line is started only where a whole one fits, however much it grows. */
    LINE_ROOM = SCREEN_LINE_MAX * ESCAPE_GROWTH + ESCAPE_SLACK + LABEL_MAX + 128,
    WRITE_AT = 128 * 1024, /* enough to be worth a write */
    OUT_SIZE = WRITE_AT + LINE_ROOM,
    STATUS_MAX = 256,
    STATUS_MS = 100,
};

/* One way out. */
struct screen_out {
    int fd;
    bool is_own;    /* opened anew: ours to close, and nonblocking */
    bool can_block; /* a pipe or terminal that could not be opened anew: small writes, asked for */
    bool is_terminal; /* so controls are escaped whatever was asked for */
    bool is_blocked;  /* the last write would have waited */
    int error;
    char *bytes;
    size_t sent, used; /* [sent, used) is to be written */
};

struct screen {
    struct screen_options options;
    struct screen_out outs[SCREEN_FDS];
    struct screen_out *out_of[SCREEN_FDS]; /* both the same when both are one terminal or file */
    bool has_status;                       /* there is a terminal to draw one on */
    bool is_status_drawn, is_status_stale;
    int64_t status_at; /* when it was drawn last, monotonic ms */
    char status[STATUS_MAX];
    uint64_t shown;
};

bool out_init(struct screen_out *out, int fd);
void out_release(struct screen_out *out);

/* Writes without waiting. True when the buffer is empty, or what is in it has nowhere to go. */
bool out_flush(struct screen_out *out);

/* Room for a whole line at bytes + used; writes when there is none. */
bool out_has_room(struct screen_out *out);

/* Bytes of our own, at most LINE_ROOM; dropped when there is no room. */
void out_add(struct screen_out *out, const char *bytes, size_t len);

/* screen_status.c */
void status_hide(struct screen *screen);
void status_draw(struct screen *screen);
int64_t status_now(void);

#endif
