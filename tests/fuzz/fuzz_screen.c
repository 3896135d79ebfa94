/* fuzz_screen.c - any bytes, as the log of a worker. Whatever they are and however they come: every
 * line on the screen has the worker's label, is UTF-8 and holds nothing that a terminal would obey, and
 * the splits make no difference. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/screen.h"
#include "tests/fuzz/check.h"

static const char LABEL[] = "[actor/0] ";

/* Where the piece that starts at or before `to` ends: of some bytes, or of many. */
static size_t next_split(size_t to, size_t size, uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    size_t step = *seed >> 24 < 200 ? *seed >> 28 : *seed >> 12 & 0xffff;
    return step < size - to ? to + step : size;
}

/* Shows all bytes, in pieces by `seed` or (0) as large ones as there are, as a tail hands them on. */
static struct text show(const uint8_t *data, size_t size, uint32_t seed)
{
    static const char *const names[] = {"actor"};
    int fd = memfd_create("screen", MFD_CLOEXEC);
    struct screen_options options = {.components = names, .component_count = 1, .fds = {fd, fd}};
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

static void check_line(const char *at, const char *end)
{
    CHECK((size_t)(end - at) >= sizeof LABEL - 1 && memcmp(at, LABEL, sizeof LABEL - 1) == 0);
    CHECK(end - at <= SCREEN_LINE_MAX * 4 + 64);
    while (at < end) {
        uint32_t code = 0;
        size_t len = utf8_next(at, end, &code);
        CHECK(len > 0 && (code == '\t' || code >= 0x20) && (code < 0x7f || code >= 0xa0));
        CHECK((code < 0x2028 || code > 0x202e) && (code < 0x2066 || code > 0x2069));
        at += len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text whole = show(data, size, 0), split = show(data, size, (uint32_t)size + 1);
    CHECK(whole.len == split.len && memcmp(whole.bytes, split.bytes, whole.len) == 0);
    for (const char *at = whole.bytes, *end = at + whole.len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        CHECK(stop);
        check_line(at, stop);
        at = stop + 1;
    }
    text_release(&whole);
    text_release(&split);
    return 0;
}
