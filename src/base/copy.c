/* copy.c - copies with non-temporal stores, which do not load the cache lines they overwrite. The C library
 * does the same, but only for sizes of several times the cache. A payload that is copied once and then read
 * by other processes gains from it at much smaller sizes. */
#include "base/copy.h"

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifdef __SSE2__
enum {
    STREAM_MIN = 16 << 20, /* half of a usual last cache: less may still be there when it is read */
    LINE = 64,
    AHEAD = 8 * LINE, /* how far to read ahead */
};

/* `into` is at the begin of a line, `len` a number of whole lines. */
static void stream(char *into, const char *from, size_t len)
{
    for (size_t at = 0; at < len; at += LINE) {
        const __m128i *source = (const __m128i *)(const void *)(from + at);
        __m128i *target = (__m128i *)(void *)(into + at);
        __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
        __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
        _mm_prefetch((const char *)((uintptr_t)source + AHEAD),
                     _MM_HINT_NTA); /* may be past the end */
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    _mm_sfence();
}
#endif

void copy_bytes(void *into, const void *from, size_t len)
{
    if (!len)
        return;
#ifdef __SSE2__
    if (len >= STREAM_MIN) {
        size_t head = -(uintptr_t)into % LINE, whole = (len - head) / LINE * LINE;
        memcpy(into, from, head);
        stream((char *)into + head, (const char *)from + head, whole);
        into = (char *)into + head + whole;
        from = (const char *)from + head + whole;
        len -= head + whole;
    }
#endif
    memcpy(into, from, len);
}
