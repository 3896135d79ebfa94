/* unit.h - what every unit test includes: cmocka and the words tests are written in. */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A test is a sentence that can be false. */
#define TEST(sentence) static void sentence(void **state __attribute__((unused)))

#define RUN_TESTS(...)                                                                             \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, NULL, NULL);                                          \
    }

/* Rows of a table. */
#define ROWS(table) (sizeof(table) / sizeof *(table))

/* A fact about one row of a table; `row` is the text that tells which. */
#define CHECK_FACT(row, fact)                                                                      \
    do {                                                                                           \
        if (!(fact))                                                                               \
            fail_msg("'%s': not so: %s", (row), #fact);                                            \
    } while (0)

/* A text that one row of a table gives. */
#define CHECK_TEXT(row, got, expected)                                                             \
    do {                                                                                           \
        if (strcmp((got), (expected)) != 0)                                                        \
            fail_msg("'%s':\n     got: %s\nexpected: %s", (row), (got), (expected));               \
    } while (0)

/* A message that one row of a table gives, found by a phrase in it. */
#define CHECK_SAYS(row, message, phrase)                                                           \
    do {                                                                                           \
        if (!strstr((message), (phrase)))                                                          \
            fail_msg("'%s':\n    said: %s\n  wanted: %s", (row), (message), (phrase));             \
    } while (0)

#endif
