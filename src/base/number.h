/* number.h - decimal integers as users write them in configs, and nothing else. */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

#include "base/strview.h"

enum number_result {
    NUMBER_OK,
    NUMBER_MALFORMED, /* not an integer: empty, a sign inside, "_", a point, non-ASCII digits */
    NUMBER_TOO_LARGE, /* an integer, but its value is beyond `max` */
};

/* blanks* "+"? digit+ blanks*, with any number of leading zeros, at most `max`. */
enum number_result number_parse(struct strview text, int64_t max, int64_t *out_value);

#endif
