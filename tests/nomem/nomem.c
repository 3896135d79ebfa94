/* nomem.c - runs scenarios with allocations that fail, and compares what comes of it. */
#include "tests/nomem/nomem.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* --- results --- */

bool hash_bytes(void *ctx, const char *bytes, size_t len)
{
    uint64_t *hash = ctx;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return true;
}

enum roost_code first_of(enum roost_code a, enum roost_code b)
{
    return a != ROOST_OK ? a : b;
}

enum roost_code render_plan(const struct roost_plan *plan, const struct roost_cluster *cluster,
                            uint64_t *hash)
{
    struct roost_text_style style = {.width = 60, .has_color = true};
    enum roost_code json = roost_render_plan_json(plan, cluster, NULL, hash_bytes, hash);
    enum roost_code text = roost_render_plan_text(plan, cluster, NULL, &style, hash_bytes, hash);
    return first_of(json, text);
}

enum roost_code finish_report(struct roost_report *report, struct result *result)
{
    result->errors = roost_report_errors(report);
    result->status = roost_report_exit(report);
    enum roost_code json = roost_render_report_json(report, hash_bytes, &result->report);
    enum roost_code text = roost_render_report_text(report, NULL, hash_bytes, &result->report);
    roost_report_free(report);
    return first_of(json, text);
}

/* --- running them --- */

static struct result run_with(run_fn run, const struct scenario *it, size_t fails_at, bool fails_on)
{
    memset(&heap, 0, sizeof heap);
    heap.fails_at = fails_at;
    heap.fails_on = fails_on;
    heap.is_on = true;
    struct result result = run(it);
    heap.is_on = false;
    return result;
}

static void check_result(const char *name, size_t n, const struct result *usual,
                         const struct result *got)
{
    if (got->code != usual->code && got->code != ROOST_ERR_MEMORY)
        fail_msg("%s, allocation %zu: '%s' instead of '%s'", name, n, roost_code_word(got->code),
                 roost_code_word(usual->code));
    if (got->code == ROOST_OK && got->plan != usual->plan)
        fail_msg("%s, allocation %zu: another plan", name, n);
    /* A report may keep less, but it counts right, or it tells of the memory. */
    if (got->code != ROOST_ERR_MEMORY && got->errors != usual->errors && got->status != 5)
        fail_msg("%s, allocation %zu: %zu errors instead of %zu", name, n, got->errors,
                 usual->errors);
}

static bool is_same(const struct result *a, const struct result *b)
{
    return a->code == b->code && a->errors == b->errors && a->status == b->status &&
           a->plan == b->plan && a->report == b->report;
}

void check_scenario(const char *name, run_fn run, const struct scenario *it)
{
    struct result usual = run_with(run, it, 0, false);
    size_t count = heap.calls, failed = 0;
    struct result again = run_with(run, it, 0, false);
    assert_true(is_same(&usual, &again)); /* same input, same result */
    assert_int_equal(heap.calls, count);
    assert_true(count > 3);
    for (size_t n = 1; n <= count; n++) {
        for (int fails_on = 0; fails_on < 2; fails_on++) {
            struct result got = run_with(run, it, n, fails_on);
            check_result(name, n, &usual, &got);
            failed += got.code == ROOST_ERR_MEMORY;
        }
    }
    assert_true(failed > 0); /* memory did matter */
}

/* --- the folder --- */

char folder[] = "/tmp/roost-nomem-XXXXXX";
static char paths[2][128];

const char *path_in_folder(int which, const char *name)
{
    snprintf(paths[which], sizeof paths[which], "%s/%s", folder, name);
    return paths[which];
}

void put_file(const char *name, const char *content)
{
    FILE *file = fopen(path_in_folder(0, name), "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
