/* duration.h - spans of time as users write them: 90s, 10m, 2h, 30d, 1w. */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"

/* Reads digits followed by one of s, m, h, d and w, and nothing else: no sign, no blank, no fraction. Fills
 * *out_seconds; "0s" is 0. False when the text is anything else, or does not fit 64 bits of seconds. */
bool duration_parse(struct strview text, int64_t *out_seconds);

#endif
