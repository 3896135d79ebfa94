/* nomem.h - what happens when there is no memory.
 *
 * Every scenario runs once to count its allocations and to learn its result. Then it runs again for
 * each of them: once with only that one failing, once with all from there on. It must end with
 * ROOST_ERR_MEMORY, or with the result it had: never with another one, never with a crash, and (under
 * ASan) never with a leak. */
#ifndef TESTS_NOMEM_NOMEM_H
#define TESTS_NOMEM_NOMEM_H

#include <roost/roost.h>

#include "tests/nomem/heap.h"
#include "tests/unit.h"

struct result {
    enum roost_code code; /* of the first call that failed */
    size_t errors;        /* in the report */
    int status;           /* of the report */
    uint64_t plan;        /* a hash of all that was planned, and of the config behind it */
    uint64_t report;      /* a hash of the report as it was rendered */
};

struct scenario {
    const char *name;
    const char *yaml; /* NULL = a file in the test's folder */
    const char *file;
    const char *cluster; /* a spec, or the name of a file in the folder */
    const char *overrides[4];
    enum roost_mode mode;
    bool is_lenient, follows_defaults, is_of_program;
};

/* A thing to do with memory that may fail; what it needs to know is in the scenario, or nothing. */
typedef struct result (*run_fn)(const struct scenario *);

/* Runs it with every allocation failing in turn. */
void check_scenario(const char *name, run_fn run, const struct scenario *it);

/* --- for scenarios --- */

enum roost_code first_of(enum roost_code a, enum roost_code b);

/* A roost_write_fn: adds to the uint64_t at `ctx`. */
bool hash_bytes(void *ctx, const char *bytes, size_t len);

/* Renders a plan in every format, into the hash. */
enum roost_code render_plan(const struct roost_plan *plan, const struct roost_cluster *cluster,
                            uint64_t *hash);

/* Puts what the report says into the result, and frees it. */
enum roost_code finish_report(struct roost_report *report, struct result *result);

/* --- the test's folder --- */

extern char folder[];

/* Two at a time. */
const char *path_in_folder(int which, const char *name);
void put_file(const char *name, const char *content);

/* Set-up and tear-down of a group of tests. */
int make_folder(void **state);
int remove_folder(void **state);

#define RUN_IN_FOLDER(...)                                                                         \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                           \
        return cmocka_run_group_tests(tests, make_folder, remove_folder);                          \
    }

#endif
