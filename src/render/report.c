/* report.c - faults for people (line, caret, cure) and for programs (JSON). */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "render/stream.h"

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

/* The part of a long source line that is shown: `room` characters with the fault among them. */
struct window {
    int32_t first, last; /* characters of the line, from 1 */
    bool is_cut_left, is_cut_right;
};

static struct window window_around(const char *line, int32_t column, int room)
{
    int32_t count = 0;
    for (const char *at = line; *at; at++)
        count += ((unsigned char)*at & 0xc0) != 0x80;
    if (count <= room)
        return (struct window){1, count, false, false};
    int32_t first = column - room / 2 > 1 ? column - room / 2 : 1;
    if (first > count - room + 1)
        first = count - room + 1;
    return (struct window){first, first + room - 1, first > 1, first + room - 1 < count};
}

/* The source line as it can be shown: tabs become one blank, control characters a mark. Returns the
 * columns before character `column`. */
static int put_source(struct text *out, const char *line, int32_t column, struct window window)
{
    const char *end = line + strlen(line);
    int before = window.is_cut_left ? 3 : 0;
    text_puts(out, window.is_cut_left ? "..." : "");
    for (int32_t at = 1; line < end && at <= window.last; at++) {
        uint32_t code = 0;
        size_t len = utf8_next(line, end, &code);
        bool is_shown = len > 0 && code >= 0x20 && code != 0x7f && !(code >= 0x80 && code < 0xa0);
        if (at >= window.first && is_shown)
            text_append(out, line, len);
        else if (at >= window.first)
            text_puts(out, len && code == '\t' ? " " : "\xef\xbf\xbd");
        if (at >= window.first && at < column)
            before += is_shown ? utf8_width(code) : 1;
        line += len ? len : 1;
    }
    text_puts(out, window.is_cut_right ? "..." : "");
    return before;
}

static void put_excerpt(struct text *out, const struct roost_diagnostic *it,
                        const struct paint *paint, int width)
{
    enum { MARGINS = 12, NARROWEST = 40 };
    char number[16];
    int digits = snprintf(number, sizeof number, "%d", (int)it->line);
    int room = width - digits - MARGINS > NARROWEST ? width - digits - MARGINS : NARROWEST;
    struct window window = window_around(it->source_line, it->column, room);
    text_printf(out, "  %s%s |%s ", paint->blue, number, paint->off);
    int before = put_source(out, it->source_line, it->column, window);
    text_printf(out, "\n  %s%*s |%s ", paint->blue, digits, "", paint->off);
    text_repeat(out, ' ', before);
    text_puts(out, it->warning ? paint->yellow : paint->red);
    text_char(out, '^');
    int32_t left = window.last - it->column;
    text_repeat(out, '~', it->length - 1 < left ? it->length - 1 : left);
    text_printf(out, "%s\n", paint->off);
}

static void put_diagnostic(struct text *out, const struct roost_diagnostic *it,
                           const struct paint *paint, int width)
{
    text_puts(out, paint->bold);
    if (it->file[0])
        text_puts(out, it->file);
    if (it->line > 0)
        text_printf(out, ":%d:%d", (int)it->line, (int)it->column);
    text_puts(out, it->file[0] ? ": " : "roost: ");
    text_puts(out, paint->off);
    text_puts(out, it->warning ? paint->yellow : paint->red);
    text_puts(out, it->warning ? "warning: " : "error: ");
    text_printf(out, "%s%s\n", paint->off, it->message);
    if (it->source_line)
        put_excerpt(out, it, paint, width);
    if (it->hint[0])
        text_printf(out, "  %s=%s %s\n", paint->blue, paint->off, it->hint);
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

static void put_list(struct text *out, const struct roost_report *report, bool wants_warnings)
{
    bool is_first = true;
    for (size_t i = 0; i < roost_report_count(report); i++) {
        const struct roost_diagnostic *it = roost_report_at(report, i);
        if ((it->warning != ROOST_WARN_NONE) != wants_warnings)
            continue;
        text_puts(out, is_first ? "\n  {\"code\": " : ",\n  {\"code\": ");
        text_json(out, sv_from(wants_warnings ? roost_warning_word(it->warning)
                                              : roost_code_word(it->code)));
        text_puts(out, ", \"file\": ");
        text_json(out, sv_from(it->file));
        text_printf(out, ", \"line\": %d, \"column\": %d, \"message\": ", (int)it->line,
                    (int)it->column);
        text_json(out, sv_from(it->message));
        text_puts(out, ", \"hint\": ");
        text_json(out, sv_from(it->hint));
        text_char(out, '}');
        is_first = false;
    }
}

enum roost_code roost_render_report_json(const struct roost_report *report, roost_write_fn write,
                                         void *ctx)
{
    struct stream stream;
    stream_start(&stream, write, ctx);
    struct text *out = &stream.text;
    text_printf(out, "{\"roost\": 1, \"ok\": %s,\n \"errors\": [",
                roost_report_errors(report) ? "false" : "true");
    put_list(out, report, false);
    text_puts(out, "],\n \"warnings\": [");
    put_list(out, report, true);
    text_puts(out, "]}\n");
    return stream_end(&stream);
}
