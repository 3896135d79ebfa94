/* fuzz_times.c - any bytes, as the file of times of a component. Every mark that is read can be written, and is
 * read as the same again; a history made with it shows every byte of the logs once, each log in its order. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logs/log_history.h"
#include "logs/log_times.h"
#include "tests/fuzz/check.h"

enum { RANKS = 2, LOG_BYTES = 200 };

static char folder[] = "/tmp/roost-fuzz-times-XXXXXX";
static int run_dir = -1;

static void remove_folder(void)
{
    for (int rank = 0; rank < RANKS; rank++) {
        char path[64];
        snprintf(path, sizeof path, "a/%d/stdout.log", rank);
        unlinkat(run_dir, path, 0);
        snprintf(path, sizeof path, "a/%d", rank);
        unlinkat(run_dir, path, AT_REMOVEDIR);
    }
    unlinkat(run_dir, "a/" TIMES_FILE, 0);
    unlinkat(run_dir, "a", AT_REMOVEDIR);
    rmdir(folder);
}

static void make_run(void)
{
    CHECK(mkdtemp(folder));
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(run_dir >= 0 && mkdirat(run_dir, "a", 0700) == 0 && atexit(remove_folder) == 0);
    for (int rank = 0; rank < RANKS; rank++) {
        char path[64];
        snprintf(path, sizeof path, "a/%d", rank);
        CHECK(mkdirat(run_dir, path, 0700) == 0);
        snprintf(path, sizeof path, "a/%d/stdout.log", rank);
        int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        for (int i = 0; i < LOG_BYTES; i++)
            CHECK(write(fd, i % 10 == 9 ? "\n" : "x", 1) == 1);
        close(fd);
    }
}

static void check_marks(const uint8_t *data, size_t size)
{
    struct times_mark mark, again;
    size_t used = 0, more = 0;
    int64_t before = 0;
    for (size_t at = 0; times_get(data + at, size - at, before, &mark, &used) == TIMES_OK;
         at += used) {
        uint8_t bytes[TIMES_MARK_MAX];
        CHECK(used > 0 && used <= size - at && mark.time >= 0 && mark.time <= TIMES_TIME_MAX);
        CHECK(mark.rank >= 0 && (mark.stream == LOG_STDOUT || mark.stream == LOG_STDERR));
        size_t len = times_put(bytes, before, &mark);
        CHECK(len <= used); /* a writer wastes no byte */
        CHECK(times_get(bytes, len, before, &again, &more) == TIMES_OK && more == len);
        CHECK(again.time == mark.time && again.rank == mark.rank && again.stream == mark.stream &&
              again.growth == mark.growth);
        before = mark.time;
    }
}

static bool count(void *ctx, const struct log_chunk *chunk, size_t *taken)
{
    int64_t *shown = ctx;
    const char *last = memrchr(chunk->bytes, '\n', chunk->len);
    *taken = chunk->is_end ? chunk->len : last ? (size_t)(last + 1 - chunk->bytes) : 0;
    shown[chunk->rank] += (int64_t)*taken;
    return true;
}

static void check_history(void)
{
    struct log_tail *tail = log_tail_new_still(run_dir, NULL);
    CHECK(tail);
    for (int32_t rank = 0; rank < RANKS; rank++)
        CHECK(log_tail_add(tail, "a", 0, rank, true));
    struct log_history_options options = {.run_dir = run_dir};
    struct log_history *history = log_history_new(tail, &options);
    CHECK(history);
    int64_t marks = log_history_marks(history);
    for (int64_t start = 0; start <= marks && start < 8; start++) {
        int64_t shown[RANKS] = {0};
        log_history_start(history, start);
        CHECK(log_history_read(history, count, shown));
        for (int rank = 0; rank < RANKS; rank++)
            CHECK(start == 0 ? shown[rank] == LOG_BYTES : shown[rank] <= LOG_BYTES);
    }
    log_history_free(history);
    log_tail_free(tail);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (run_dir < 0)
        make_run();
    /* A copy of its own, so that a byte read behind the end is seen. */
    uint8_t *bytes = malloc(size ? size : 1);
    CHECK(bytes);
    if (size)
        memcpy(bytes, data, size);
    check_marks(bytes, size);
    int fd = openat(run_dir, "a/" TIMES_FILE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, TIMES_MAGIC, TIMES_MAGIC_LEN) == TIMES_MAGIC_LEN);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    check_history();
    free(bytes);
    return 0;
}
