/* bytes.h - sizes on disk as users write them: 500M, 10G. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strview.h"

/* Reads digits followed by one of K, M, G and T, in steps of 1024, and nothing else: no sign, no blank, no
 * fraction. Fills *out_bytes. False when the text is anything else, or does not fit 64 bits. */
bool bytes_parse(struct strview text, int64_t *out_bytes);

#endif
