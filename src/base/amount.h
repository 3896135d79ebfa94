/* amount.h - exact amounts of GPUs and CPUs: integers in units of 1/10000, read from decimal text. */
#ifndef BASE_AMOUNT_H
#define BASE_AMOUNT_H

#include <stdint.h>

#include "base/strview.h"

enum { AMOUNT_ONE = 10000 };

enum amount_result {
    AMOUNT_OK,
    AMOUNT_MALFORMED, /* not a decimal number: a sign, an exponent, a letter, nothing */
    AMOUNT_TOO_FINE,  /* more than four decimals */
    AMOUNT_TOO_LARGE, /* beyond `max` */
};

/* blanks* digits ["." digits] blanks*, at most `max` ten-thousandths. */
enum amount_result amount_parse(struct strview text, int64_t max, int64_t *out_value);

/* The shortest decimal text: "0.4", "1", "50.002". */
struct amount_text {
    char text[32];
};
struct amount_text amount_text(int64_t value);

#endif
