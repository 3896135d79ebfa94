/* report.c - faults for people (line, caret, cure) and for programs (JSON). */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "render/stream.h"
#include "json/json_writer.h"

/* Colours, all empty when there are none. */
struct paint {
    const char *red, *yellow, *blue, *bold, *off;
};

static struct paint paint_for(const struct roost_text_style *style)
{
    if (style && style->has_color)
        return (struct paint){"\033[1;31m", "\033[1;33m", "\033[34m", "\033[1m", "\033[0m"};
    return (struct paint){"", "", "", "", ""};
}

/* The part of a source line that is shown: what fits the screen, with the fault in it. */
struct window {
    const char *from, *caret, *to;
    bool is_cut_left, is_cut_right;
};

/* The character at `at`: its length, and the columns it takes on the screen. */
static size_t measure(const char *at, const char *end, int *out_width)
{
    uint32_t code = 0;
    size_t len = utf8_next(at, end, &code);
    *out_width = len > 0 && utf8_is_safe(code) ? utf8_width(code) : 1;
    return len ? len : 1;
}

static size_t measure_before(const char *start, const char *at, int *out_width)
{
    size_t len = 1;
    while (len < 4 && at - len > start && ((unsigned char)at[-(ptrdiff_t)len] & 0xc0) == 0x80)
        len++;
    if (measure(at - len, at, out_width) == len)
        return len;
    *out_width = 1; /* a byte that belongs to no character */
    return 1;
}

/* Grows from the fault: to the left as far as half the room goes, to the right, and to the left
 * again with what is left over. */
static struct window window_around(const struct roost_diagnostic *it, int room)
{
    const char *line = it->source_line, *end = line + strlen(line);
    const char *caret = line;
    int width = 0, used = 0;
    for (int32_t column = it->source_column; column < it->column && caret < end; column++)
        caret += measure(caret, end, &width);
    struct window window = {.from = caret, .caret = caret, .to = caret};
    for (int side = 0; side < 3; side++) {
        int limit = side == 0 ? room / 2 : room;
        bool is_left = side != 1;
        while (is_left ? window.from > line : window.to < end) {
            size_t len = is_left ? measure_before(line, window.from, &width)
                                 : measure(window.to, end, &width);
            if (used + width > limit)
                break;
            used += width;
            *(is_left ? &window.from : &window.to) += is_left ? -(ptrdiff_t)len : (ptrdiff_t)len;
        }
    }
    window.is_cut_left = window.from > line || it->source_column > 1;
    window.is_cut_right = window.to < end || it->source_goes_on;
    return window;
}

/* The window as it can be shown: tabs become one blank, control characters a mark. Returns the
 * columns before the fault. */
static int put_source(struct text *out, const struct window *window)
{
    int before = window->is_cut_left ? 3 : 0;
    text_puts(out, window->is_cut_left ? "..." : "");
    for (const char *at = window->from; at < window->to;) {
        uint32_t code = 0;
        int width = 0;
        size_t len = measure(at, window->to, &width);
        bool is_valid = utf8_next(at, window->to, &code) > 0;
        if (is_valid && utf8_is_safe(code))
            text_append(out, at, len);
        else
            text_puts(out, is_valid && code == '\t' ? " " : "\xef\xbf\xbd");
        before += at < window->caret ? width : 0;
        at += len;
    }
    text_puts(out, window->is_cut_right ? "..." : "");
    return before;
}

/* Columns that the fault takes in the window, at least one. */
static int fault_width(const struct window *window, int32_t length)
{
    int total = 0;
    const char *at = window->caret;
    for (int32_t i = 0; i < length && at < window->to; i++) {
        int width = 0;
        at += measure(at, window->to, &width);
        total += width;
    }
    return total > 0 ? total : 1;
}

static void put_excerpt(struct text *out, const struct roost_diagnostic *it,
                        const struct paint *paint, int width)
{
    enum { MARGINS = 12, NARROWEST = 40 };
    char number[16];
    int digits = snprintf(number, sizeof number, "%d", (int)it->line);
    int room = width - digits - MARGINS > NARROWEST ? width - digits - MARGINS : NARROWEST;
    struct window window = window_around(it, room);
    text_printf(out, "  %s%s |%s ", paint->blue, number, paint->off);
    int before = put_source(out, &window);
    text_printf(out, "\n  %s%*s |%s ", paint->blue, digits, "", paint->off);
    text_repeat(out, ' ', before);
    text_puts(out, it->warning ? paint->yellow : paint->red);
    text_char(out, '^');
    text_repeat(out, '~', fault_width(&window, it->length) - 1);
    text_printf(out, "%s\n", paint->off);
}

static void put_diagnostic(struct text *out, const struct roost_diagnostic *it,
                           const struct paint *paint, int width)
{
    text_puts(out, paint->bold);
    text_safe(out, sv_from(it->file));
    if (it->line > 0)
        text_printf(out, ":%d:%d", (int)it->line, (int)it->column);
    text_puts(out, it->file[0] ? ": " : "roost: ");
    text_puts(out, paint->off);
    text_puts(out, it->warning ? paint->yellow : paint->red);
    text_puts(out, it->warning ? "warning: " : "error: ");
    text_puts(out, paint->off);
    text_safe(out, sv_from(it->message));
    text_char(out, '\n');
    if (it->source_line)
        put_excerpt(out, it, paint, width);
    if (it->hint[0]) {
        text_printf(out, "  %s=%s ", paint->blue, paint->off);
        text_safe(out, sv_from(it->hint));
        text_char(out, '\n');
    }
}

enum roost_code roost_render_report_text(const struct roost_report *report,
                                         const struct roost_text_style *style, roost_write_fn write,
                                         void *ctx)
{
    struct stream stream;
    struct paint paint = paint_for(style);
    int width = style && style->width ? style->width : 80;
    stream_start(&stream, write, ctx);
    for (size_t i = 0; i < roost_report_count(report); i++)
        put_diagnostic(&stream.text, roost_report_at(report, i), &paint, width);
    size_t total = roost_report_errors(report) + roost_report_warnings(report);
    if (total > roost_report_count(report))
        text_printf(&stream.text, "... and %zu more\n", total - roost_report_count(report));
    return stream_end(&stream);
}

static void put_list(struct json_writer *json, const struct roost_report *report,
                     bool wants_warnings)
{
    json_line(json, 1);
    json_open_array(json_key(json, wants_warnings ? "warnings" : "errors"));
    for (size_t i = 0; i < roost_report_count(report); i++) {
        const struct roost_diagnostic *it = roost_report_at(report, i);
        if ((it->warning != ROOST_WARN_NONE) != wants_warnings)
            continue;
        json_line(json, 2);
        json_open_object(json);
        json_put_string(json_key(json, "code"), wants_warnings ? roost_warning_word(it->warning)
                                                               : roost_code_word(it->code));
        json_put_string(json_key(json, "file"), it->file);
        json_put_int(json_key(json, "line"), it->line);
        json_put_int(json_key(json, "column"), it->column);
        json_put_string(json_key(json, "message"), it->message);
        json_put_string(json_key(json, "hint"), it->hint);
        json_close(json);
    }
    json_close(json);
}

enum roost_code roost_render_report_json(const struct roost_report *report, roost_write_fn write,
                                         void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct json_writer json = json_writer_on(&stream.text, JSON_SPACED);
    json_open_object(&json);
    json_put_int(json_key(&json, "roost"), 1);
    json_put_bool(json_key(&json, "ok"), roost_report_errors(report) == 0);
    put_list(&json, report, false);
    put_list(&json, report, true);
    json_close(&json);
    text_char(&stream.text, '\n');
    return stream_end(&stream);
}
