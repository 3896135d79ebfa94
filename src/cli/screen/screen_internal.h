/* screen_internal.h - what a screen is made of: screen.c turns chunks into lines, screen_footer.c draws
 * what stands below them, screen_out.c gets bytes out of the program. */
#ifndef CLI_SCREEN_INTERNAL_H
#define CLI_SCREEN_INTERNAL_H

#include "base/escape.h"
#include "cli/screen/screen.h"

enum {
    /* A line is started only where a whole one fits, however much it grows. */
    LINE_ROOM = LOG_LINE_ROOM + LINE_LABEL_MAX + 128,
    WRITE_AT = 128 * 1024, /* enough to be worth a write */
    OUT_SIZE = WRITE_AT + LINE_ROOM,
    STATUS_MAX = 256,
    STATUS_MS = 100, /* between two drawings of the footer */
    BARS_MS = 200,   /* the same, with bars */
    BARS_MAX = 32,
    BAR_MAX = 1024,                  /* bytes of one */
    LABEL_MAX = LINE_LABEL_MAX + 64, /* with a time and its colour */
};

/* One way out. */
struct screen_out {
    int fd;
    bool is_own;      /* reopened: ours to close, and nonblocking */
    bool can_block;   /* a pipe or terminal that could not be reopened: small writes, asked for */
    bool is_terminal; /* so controls are escaped whatever was asked for */
    bool is_blocked;  /* the last write would have waited */
    int error;
    char *bytes;
    size_t sent, used; /* [sent, used) is to be written */
};

/* A progress bar whose line goes on. */
struct screen_bar {
    int32_t component_index, rank;
    enum log_stream stream;
    size_t len;
    char text[BAR_MAX]; /* safe, and not wider than the terminal */
};

struct screen {
    struct screen_options options;
    struct screen_out outs[SCREEN_FDS];
    struct screen_out *out_of[SCREEN_FDS]; /* both the same when both are one terminal or file */
    bool has_footer;                       /* there is a terminal to draw one on */
    bool is_stale;                         /* the footer is not what it should be */
    int rows;                              /* of the footer that is drawn */
    int64_t drawn_at;                      /* when, monotonic ms */
    char status[STATUS_MAX];
    struct screen_bar bars[BARS_MAX]; /* by component, rank and stream */
    int bar_count;
    uint64_t shown;
    int64_t time; /* of the lines that come */
    bool is_counting;
    int64_t counted, skipped; /* lines: counted so far, and still to be left out */
    char *plain; /* [LOG_LINE_ROOM + 1]: a line without its colours; NULL = picks all */
};

bool out_init(struct screen_out *out, int fd);
void out_release(struct screen_out *out);

/* Writes without waiting. True when the buffer is empty, or what is in it has nowhere to go. */
bool out_flush(struct screen_out *out);

/* Room for a whole line at bytes + used; writes when there is none. */
bool out_has_room(struct screen_out *out);

/* Bytes of our own, at most LINE_ROOM; dropped when there is no room. */
void out_add(struct screen_out *out, const char *bytes, size_t len);

/* Takes the footer away until it is drawn again. */
void footer_hide(struct screen *screen);

/* Draws the footer when that is due. */
void footer_draw(struct screen *screen);

/* The newest state of a bar, with its label: filtered, cut here at the width. Dropped where bars are not
 * shown, or too many are. */
void footer_put_bar(struct screen *screen, const struct log_chunk *chunk, const char *text,
                    size_t len);

/* The line of a bar is complete. Nothing when there is none. */
void footer_drop_bar(struct screen *screen, const struct log_chunk *chunk);

int64_t screen_now(void);

#endif
