/* fuzz_screen.c - any bytes, as the log of a worker. Whatever they are and however they come: every
 * line on the screen has the worker's label, is UTF-8 and holds nothing that a terminal would obey,
 * colours aside, which end with their line; and the splits make no difference. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/screen/screen.h"
#include "tests/fuzz/check.h"
#include "tests/terminal.h"

static const char *const labels[] = {"[actor/0] ", "\x1b[38;5;32m[actor/0]\x1b[0m "};

/* Where the piece that starts at or before `to` ends: of some bytes, or of many. */
static size_t next_split(size_t to, size_t size, uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    size_t step = *seed >> 24 < 200 ? *seed >> 28 : *seed >> 12 & 0xffff;
    return step < size - to ? to + step : size;
}

/* Shows all bytes, in pieces by `seed` or (0) as large ones as there are, as a tail hands them on. */
static struct text show(const uint8_t *data, size_t size, bool has_color, uint32_t seed)
{
    static const char *const names[] = {"actor"};
    int fd = memfd_create("screen", MFD_CLOEXEC);
    struct screen_options options = {.components = names,
                                     .component_count = 1,
                                     .fds = {fd, fd},
                                     .has_color = {has_color, has_color}};
    struct screen *screen = screen_new(&options);
    CHECK(fd >= 0 && screen);
    uint32_t memo = 0;
    for (size_t from = 0, to = 0; from < size;) {
        to = seed ? next_split(to, size, &seed) : size;
        if (to - from > LOG_CHUNK_MAX)
            to = from + LOG_CHUNK_MAX;
        struct log_chunk chunk = {0,         0,          LOG_STDOUT, (const char *)data + from,
                                  to - from, to == size, &memo};
        size_t taken = chunk.len;
        CHECK(screen_put(screen, &chunk, &taken));
        CHECK(taken <= chunk.len && (taken == chunk.len || !chunk.is_end));
        CHECK(taken > 0 || chunk.len < LOG_CHUNK_MAX);
        from += taken;
    }
    CHECK(screen_drain(screen, -1, -1) && screen_error(screen, 0) == 0);
    struct text out = TEXT_INIT;
    off_t len = lseek(fd, 0, SEEK_END);
    CHECK(text_reserve(&out, (size_t)len + 1));
    CHECK(pread(fd, out.bytes, (size_t)len, 0) == len);
    out.len = (size_t)len;
    screen_free(screen);
    close(fd);
    return out;
}

static void check_line(const char *at, const char *end, bool has_color)
{
    const char *label = labels[has_color];
    CHECK((size_t)(end - at) >= strlen(label) && memcmp(at, label, strlen(label)) == 0);
    CHECK(end - at <= LOG_LINE_MAX * 4 + 64);
    while (at < end) {
        uint32_t code = 0;
        size_t len = utf8_next(at, end, &code);
        CHECK(len > 0 && (code < 0x7f || code >= 0xa0));
        CHECK(code == '\t' || code >= 0x20 || (has_color && code == '\x1b'));
        CHECK((code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069));
        at += len;
    }
}

static void check(const uint8_t *data, size_t size, bool has_color)
{
    struct terminal terminal = {0};
    struct text whole = show(data, size, has_color, 0);
    struct text split = show(data, size, has_color, (uint32_t)size + 1);
    CHECK(whole.len == split.len && memcmp(whole.bytes, split.bytes, whole.len) == 0);
    terminal_write(&terminal, whole.bytes, whole.len);
    CHECK(terminal_is_calm(&terminal));
    for (const char *at = whole.bytes, *end = at + whole.len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        CHECK(stop);
        check_line(at, stop, has_color);
        at = stop + 1;
    }
    text_release(&whole);
    text_release(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check(data, size, false);
    check(data, size, true);
    return 0;
}
