/* record_cost.c - what does it cost to note when workers write their lines?
 *
 * Processes write logs of 100-byte lines, one write each, as fast as they can: once alone, and once while a
 * recorder notes the times as the supervisor of a run does. Rounds are interleaved; what counts is the CPU
 * time that the kernel accounts to the writers. Then a recorder looks at the logs of 20,000 processes for two
 * seconds. Prints one JSON object. */
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "logs/log_recorder.h"

enum { ROUNDS = 7, WRITERS = 4, LINES = 100000, LINE = 100, MANY = 20000, MANY_MS = 2000 };

static const double SLOWER_TARGET = 1.05, SHARE_TARGET = 0.02, MANY_TARGET = 0.05,
                    SIZE_TARGET = 0.125;

static char folder[64];
static int run_dir;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_run(void)
{
    if (run_dir >= 0)
        close(run_dir);
    (void)nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A run directory with empty logs: in memory where there is some. */
static void make_run(int ranks)
{
    struct stat info;
    char path[64];
    snprintf(folder, sizeof folder, "%s/roost-bench-XXXXXX",
             stat("/dev/shm", &info) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        fail(folder);
    run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    mkdirat(run_dir, "actor", 0700);
    for (int rank = 0; rank < ranks; rank++) {
        snprintf(path, sizeof path, "actor/%d", rank);
        mkdirat(run_dir, path, 0700);
        for (int stream = 0; stream < 2; stream++) {
            snprintf(path, sizeof path, "actor/%d/%s.log", rank, stream ? "stderr" : "stdout");
            int fd = openat(run_dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            if (fd < 0)
                fail(path);
            close(fd);
        }
    }
}

static void write_lines(int rank)
{
    char path[64], line[LINE];
    snprintf(path, sizeof path, "actor/%d/stdout.log", rank);
    int fd = openat(run_dir, path, O_WRONLY | O_APPEND | O_CLOEXEC);
    memset(line, 'x', sizeof line);
    line[LINE - 1] = '\n';
    for (int i = 0; i < LINES; i++)
        if (write(fd, line, sizeof line) != LINE)
            _exit(1);
    close(fd);
}

/* Looks until the pipe is closed. */
static void record(int ranks, int until)
{
    struct log_recorder *recorder = log_recorder_new(run_dir);
    struct pollfd end = {.fd = until, .events = POLLIN};
    for (int rank = 0; rank < ranks; rank++)
        log_recorder_begin(recorder, rank, "actor", rank);
    while (poll(&end, 1, (int)log_recorder_tick(recorder)) == 0)
        continue;
    for (int rank = 0; rank < ranks; rank++)
        log_recorder_end(recorder, rank);
    log_recorder_free(recorder);
}

static pid_t start(void (*work)(int, int), int ranks, int argument)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        work(ranks, argument);
        _exit(0);
    }
    return pid;
}

static double wait_for(pid_t pid)
{
    struct rusage usage;
    int status;
    if (wait4(pid, &status, 0, &usage) != pid || status != 0)
        fail("a child");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static void write_one(int rank, int unused)
{
    (void)unused;
    write_lines(rank);
}

struct outcome {
    double writers, recorder, wall; /* seconds; writers and recorder of CPU */
    double size;                    /* of the times, in bytes of logs */
};

static struct outcome run_writers(bool is_recorded)
{
    struct outcome outcome = {0};
    struct stat info = {0};
    pid_t writers[WRITERS], recorder = 0;
    int ends[2];
    make_run(WRITERS);
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe");
    double begin = now_seconds();
    if (is_recorded)
        recorder = start(record, WRITERS, ends[0]);
    for (int i = 0; i < WRITERS; i++)
        writers[i] = start(write_one, i, 0);
    for (int i = 0; i < WRITERS; i++)
        outcome.writers += wait_for(writers[i]);
    outcome.wall = now_seconds() - begin;
    if (is_recorded && write(ends[1], "x", 1) == 1)
        outcome.recorder = wait_for(recorder);
    if (is_recorded && fstatat(run_dir, "actor/.times", &info, 0) != 0)
        fail("actor/.times");
    outcome.size = (double)info.st_size / ((double)WRITERS * LINES * LINE);
    close(ends[0]);
    close(ends[1]);
    remove_run();
    return outcome;
}

/* The share of one core that a recorder of many silent processes takes. */
static double watch_many(void)
{
    int ends[2];
    make_run(MANY);
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe");
    double begin = now_seconds();
    pid_t recorder = start(record, MANY, ends[0]);
    (void)poll(NULL, 0, MANY_MS);
    /* Without its end, at which it looks at every log once more. */
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)recorder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, text, sizeof text - 1);
    double wall = now_seconds() - begin;
    unsigned long user = 0, system = 0;
    text[len > 0 ? len : 0] = '\0';
    const char *fields = strrchr(text, ')');
    if (!fields || sscanf(fields, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                          &system) != 2)
        fail(path);
    close(fd);
    if (write(ends[1], "x", 1) == 1)
        (void)wait_for(recorder);
    close(ends[0]);
    close(ends[1]);
    remove_run();
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK) / wall;
}

static void print_measure(const char *name, double value, double target, const char *end)
{
    printf("  {\"name\": \"%s\", \"value\": %.4f, \"target\": %g, \"at_most\": true, \"ok\": %s}%s",
           name, value, target, value <= target ? "true" : "false", end);
}

int main(void)
{
    double bare[ROUNDS], recorded[ROUNDS], shares[ROUNDS], sizes[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* one to warm up */
        int at = round < 0 ? 0 : round;
        bare[at] = run_writers(false).writers;
        struct outcome outcome = run_writers(true);
        recorded[at] = outcome.writers;
        shares[at] = outcome.recorder / outcome.wall;
        sizes[at] = outcome.size;
    }
    double many = watch_many(), bare_s = median(bare, ROUNDS),
           recorded_s = median(recorded, ROUNDS);
    double slower = recorded_s / bare_s, share = median(shares, ROUNDS),
           size = median(sizes, ROUNDS);
    bool is_good = slower <= SLOWER_TARGET && share <= SHARE_TARGET && many <= MANY_TARGET &&
                   size <= SIZE_TARGET;
    printf("{\"bench\": \"record_cost\", \"writers\": %d, \"lines_each\": %d, \"rounds\": %d,\n"
           " \"without_ms\": %.1f, \"with_ms\": %.1f,\n \"measures\": [\n",
           WRITERS, LINES, ROUNDS, bare_s * 1e3, recorded_s * 1e3);
    print_measure("writing with / without times, CPU", slower, SLOWER_TARGET, ",\n");
    print_measure("noting times, of one core", share, SHARE_TARGET, ",\n");
    print_measure("noting times, 20,000 processes", many, MANY_TARGET, ",\n");
    print_measure("times / logs, bytes", size, SIZE_TARGET, "],\n");
    printf(" \"ok\": %s}\n", is_good ? "true" : "false");
    return 0;
}
