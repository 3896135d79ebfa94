/* lines.c - the public interface to labels and to the reader of lines. */
#include <assert.h>
#include <roost/lines.h>
#include <stdlib.h>

#include "base/palette.h"
#include "logs/line_reader.h"

static_assert((int)ROOST_LINES_BYTES >= (int)LOG_LINE_BYTES);

/* One column less: in the last one some terminals wrap. */
static size_t put_bar(struct roost_lines *lines, struct strview text)
{
    return lines->width > 1 ? filter_fit(lines->bar, sizeof lines->bar, text, lines->width - 1) : 0;
}

enum roost_code roost_lines_show(struct roost_lines *lines, const char *bytes, size_t len,
                                 roost_write_fn write, void *ctx, size_t *out_taken)
{
    struct line_reader reader = {.at = bytes,
                                 .end = bytes + len,
                                 .memo = lines->memo,
                                 .is_end = lines->is_end,
                                 .has_color = lines->has_color};
    char *buffer = malloc(LINE_LABEL_MAX + LOG_LINE_ROOM + 1);
    enum roost_code code = buffer ? ROOST_OK : ROOST_ERR_MEMORY;
    if (!buffer)
        return code;
    char *text = buffer;
    if (lines->component)
        text += line_label(buffer, lines->component, lines->rank, lines->has_color);
    size_t bar_len = lines->bar_len;
    char *to = text;
    enum line_kind kind;
    while (code == ROOST_OK && (kind = line_read(&reader, &to)) != LINE_NONE) {
        if (kind == LINE_OPEN) {
            bar_len = put_bar(lines, (struct strview){buffer, (size_t)(to - buffer)});
            break;
        }
        *to++ = '\n';
        code = write(ctx, buffer, (size_t)(to - buffer)) ? ROOST_OK : ROOST_ERR_IO;
        bar_len = 0;
        to = text;
    }
    free(buffer);
    if (code == ROOST_OK) {
        *out_taken = (size_t)(reader.at - bytes);
        lines->memo = reader.memo;
        lines->bar_len = lines->is_end && reader.at == reader.end ? 0 : bar_len;
    }
    return code;
}

bool roost_color_is_on(bool is_terminal, const char *no_color, const char *term)
{
    return palette_is_on(is_terminal, no_color, term);
}
