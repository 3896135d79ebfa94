/* utf8.h - the characters of UTF-8 text: length, width, validity. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the valid character at `at` (1-4), or 0 when the bytes up to `end` are not one:
 * overlong forms, surrogates and values above U+10FFFF are not. *out_code may be NULL. */
size_t utf8_next(const char *at, const char *end, uint32_t *out_code);

/* Writes the character and returns its length. The code must be a valid one. */
size_t utf8_put(char *out, uint32_t code);

/* Whether the character is safe on a terminal: not a control, and none of those that end a line or change
 * the direction of text (U+2028, U+2029, U+202A-U+202E, U+2066-U+2069). */
bool utf8_is_safe(uint32_t code);

/* Terminal columns of a character: 0 for marks that combine, 2 for East Asian wide forms and emoji,
 * 1 for the rest. Needs no locale. */
int utf8_width(uint32_t code);

#endif
