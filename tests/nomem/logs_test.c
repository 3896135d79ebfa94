/* logs_test.c - logs are shown without memory. */
#include "cli/screen/logs_view.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logs/last_lines.h"
#include "logs/log_times.h"
#include "tests/nomem/nomem.h"

/* The logs of a run of two components, in order and followed, and their last lines. */
static bool has_ended(void *ctx)
{
    (void)ctx;
    return false;
}

static bool picks(void *ctx, const char *line)
{
    (void)ctx;
    return line[0] != 'x';
}

static enum roost_code show_logs(int run_dir, int out, bool follows)
{
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    struct logs_options options = {.screen = {.fds = {out, out}, .picks = picks},
                                   .follows = follows,
                                   .has_tail = true,
                                   .tail = 30,
                                   .is_alive = has_ended};
    int failed = 0;
    return logs_show(run_dir, &options, &failed, &diag) ? ROOST_OK : err.code;
}

static struct result run_logs(const struct scenario *unused)
{
    struct result result = {0};
    struct text text = TEXT_INIT;
    (void)unused;
    int run_dir = open(path_in_folder(0, "run"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int out = memfd_create("logs", MFD_CLOEXEC);
    result.code = show_logs(run_dir, out, false);
    if (result.code == ROOST_OK)
        result.code = show_logs(run_dir, out, true);
    last_lines(run_dir, "actor", 0, LOG_STDOUT, 3, &(struct last_lines_style){"> ", true}, &text);
    if (text.has_failed)
        result.code = first_of(result.code, ROOST_ERR_MEMORY);
    char bytes[4096];
    ssize_t got = pread(out, bytes, sizeof bytes, 0);
    if (result.code == ROOST_OK) {
        hash_bytes(&result.plan, bytes, got > 0 ? (size_t)got : 0);
        hash_bytes(&result.plan, text.bytes, text.len);
    }
    text_release(&text);
    close(out);
    close(run_dir);
    return result;
}

TEST(any_allocation_may_fail_while_logs_are_shown)
{
    mkdir(path_in_folder(0, "run"), 0700);
    for (int rank = 0; rank < 40; rank++) {
        char path[128];
        const char *component = rank < 20 ? "actor" : "env";
        snprintf(path, sizeof path, "%s/run/%s", folder, component);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/run/%s/%d", folder, component, rank % 20);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/run/%s/%d/stdout.log", folder, component, rank % 20);
        FILE *file = fopen(path, "w");
        fputs("one\ntwo\x1b[31m\n", file);
        fclose(file);
    }
    for (int i = 0; i < 2; i++) { /* the first line of each rank 0 has a time */
        char path[128];
        snprintf(path, sizeof path, "%s/run/%s/" TIMES_FILE, folder, i ? "env" : "actor");
        FILE *file = fopen(path, "w");
        fputs(TIMES_MAGIC, file);
        fwrite("\x10\x00\x08", 1, 3, file);
        fclose(file);
    }
    check_scenario("logs", run_logs, NULL);
}

RUN_IN_FOLDER(cmocka_unit_test(any_allocation_may_fail_while_logs_are_shown))
