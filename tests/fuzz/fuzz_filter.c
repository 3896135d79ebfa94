/* fuzz_filter.c - any bytes, as what a worker writes. With colour and without: a terminal that gets the
 * lines does nothing but write text and colour it within each line, and the splits make no difference. */
#include "logs/line_reader.h"
#include "tests/fuzz/check.h"
#include "tests/terminal.h"

/* All lines of the bytes, which come in pieces by `seed`, or (0) in one. */
static struct text read_all(const char *bytes, size_t size, bool has_color, uint32_t seed)
{
    static char line[LOG_LINE_ROOM];
    struct text out = TEXT_INIT;
    uint32_t memo = 0;
    for (size_t from = 0, to = 0; from < size;) {
        seed = seed * 1664525 + (seed ? 1013904223 : 0);
        size_t step = seed ? 1 + (seed >> 27) : size;
        to = size - to < step ? size : to + step;
        struct line_reader it = {bytes + from, bytes + to, memo, to == size, has_color};
        char *at = line;
        while (line_read(&it, &at) == LINE_WHOLE) {
            CHECK(at - line < LOG_LINE_ROOM);
            text_append(&out, line, (size_t)(at - line));
            text_char(&out, '\n');
            at = line;
        }
        CHECK((size_t)(it.end - it.at) < LOG_LINE_BYTES && (to < size || it.at == it.end));
        from = (size_t)(it.at - bytes);
        memo = it.memo;
    }
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int has_color = 0; has_color < 2; has_color++) {
        struct terminal terminal = {0};
        struct text whole = read_all((const char *)data, size, has_color, 0);
        struct text split = read_all((const char *)data, size, has_color, (uint32_t)size + 1);
        CHECK(whole.len == split.len);
        CHECK(whole.len == 0 || memcmp(whole.bytes, split.bytes, whole.len) == 0);
        terminal_write(&terminal, whole.bytes, whole.len);
        CHECK(terminal_is_calm(&terminal));
        CHECK(has_color || whole.len == 0 || !memchr(whole.bytes, '\x1b', whole.len));
        text_release(&whole);
        text_release(&split);
    }
    return 0;
}
