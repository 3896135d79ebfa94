/* escape.h - makes untrusted text safe for a terminal.
 *
 * Shown as they are: printable ASCII, tab, and valid UTF-8 of characters that are not controls.
 * Everything else is shown byte by byte as \xHH: C0 and C1 controls (in one byte and in UTF-8's two),
 * DEL, bytes that are not UTF-8, and the characters that end lines or turn the direction of text
 * around (U+2028, U+2029, U+202A-U+202E, U+2066-U+2069). A backslash stays a backslash. */
#ifndef BASE_ESCAPE_H
#define BASE_ESCAPE_H

#include <stddef.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    ESCAPE_GROWTH = 4, /* one byte becomes at most so many */
    ESCAPE_SLACK = 16, /* bytes after the result that may be overwritten */
};

/* Copies the text at `at` to *out, escaped, up to the first newline or carriage return, at most up to
 * `end`. Returns where it stopped and moves *out past the bytes it wrote. *out needs room for
 * ESCAPE_GROWTH * (end - at) + ESCAPE_SLACK bytes. */
const char *escape_line(const char *at, const char *end, char **out);

/* Copies one character, escaped unless it is safe; returns the position after it. Room as above. */
const char *escape_character(const char *at, const char *end, char **out);

/* escape_line without vector instructions, for machines that have none. Tests compare the two. */
const char *escape_line_plain(const char *at, const char *end, char **out);

/* Copies `text` to `out` as one line: newlines and carriage returns are escaped too. `out` needs room for
 * ESCAPE_GROWTH * strlen(text) + ESCAPE_SLACK bytes. */
void escape_text(const char *text, char *out);

/* Returns `end`; if the text ends inside a character, returns where that character starts. */
const char *escape_whole_characters(const char *at, const char *end);

/* --- the inner loop, in the header so that other loops can inline it --- */

/* Copies bytes that are shown as they are (printable ASCII and tab); stops at the first other. */
static inline const char *escape_copy_bytes(const char *at, const char *end, char **out)
{
    while (at < end && ((*at >= 0x20 && *at < 0x7f) || *at == '\t'))
        *(*out)++ = *at++;
    return at;
}

/* The same, by words of eight bytes. */
const char *escape_copy_words(const char *at, const char *end, char **out);

/* The same, as fast as this machine can. Room as for escape_line. */
static inline const char *escape_copy_plain(const char *at, const char *end, char **out)
{
#ifdef __SSE2__
    const __m128i blank = _mm_set1_epi8(0x20), tab = _mm_set1_epi8('\t');
    const __m128i del = _mm_set1_epi8(0x7f);
    char *to = *out;
    while (end - at >= 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
        _mm_storeu_si128((__m128i *)(void *)to, block);
        /* The comparison is signed, so bytes with the high bit set are below a blank, too. */
        __m128i low = _mm_andnot_si128(_mm_cmpeq_epi8(block, tab), _mm_cmplt_epi8(block, blank));
        unsigned special =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(low, _mm_cmpeq_epi8(block, del)));
        if (special) {
            int count = __builtin_ctz(special);
            *out = to + count;
            return at + count;
        }
        at += 16;
        to += 16;
    }
    *out = to;
    return escape_copy_bytes(at, end, out);
#else
    return escape_copy_words(at, end, out);
#endif
}

#endif
