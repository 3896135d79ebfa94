/* screen_speed.c - what does showing 200 MB of output on a pipe cost the driver?
 *
 * Measured against a bare copy loop: read the file, write the pipe. Both are processes of their own
 * that write the same pipe to the same reader; what counts is the CPU time that the kernel accounts to
 * them, user and system. Rounds are interleaved. Lines of 100 bytes are promised, lines of 20 bytes
 * are told. Prints one JSON object. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cli/screen/screen.h"
#include "logs/log_tail.h"

enum { ROUNDS = 11, RANKS = 8, FILE_BYTES = 25000000, COPY_BYTES = 128 * 1024 };

static const double COST_TARGET = 2.0;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* --- the run directory: in memory where there is some --- */

static char folder[64];

static void make_path(char *out, size_t size, int rank, const char *file)
{
    snprintf(out, size, "%s/actor/%d%s", folder, rank, file);
}

/* Words of different lengths, as in a log, in lines of `line` bytes. */
static void write_log(int rank, int line)
{
    static const char words[] =
        "step 1200 loss 0.41 reward -3.25 tokens/s 18234 lr 1e-06 kl 0.003 ";
    char path[128], *block = malloc(COPY_BYTES);
    make_path(path, sizeof path, rank, "/stdout.log");
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!block || fd < 0)
        fail(path);
    int len = COPY_BYTES / line * line;
    for (int i = 0; i < len; i++)
        block[i] = i % line == line - 1 ? '\n' : words[(i + i / line) % (int)(sizeof words - 1)];
    for (int left = FILE_BYTES / len * len; left > 0; left -= len)
        if (write(fd, block, (size_t)len) != len)
            fail(path);
    close(fd);
    free(block);
}

static void make_folder(void)
{
    struct stat info;
    bool has_memory = stat("/dev/shm", &info) == 0;
    snprintf(folder, sizeof folder, "%s/roost-bench-XXXXXX", has_memory ? "/dev/shm" : "/tmp");
    char path[128];
    if (!mkdtemp(folder))
        fail(folder);
    snprintf(path, sizeof path, "%s/actor", folder);
    mkdir(path, 0700);
    for (int rank = 0; rank < RANKS; rank++) {
        make_path(path, sizeof path, rank, "");
        if (mkdir(path, 0700) != 0)
            fail(path);
    }
}

static void remove_folder(void)
{
    char path[128];
    for (int rank = 0; rank < RANKS; rank++) {
        make_path(path, sizeof path, rank, "/stdout.log");
        unlink(path);
        make_path(path, sizeof path, rank, "");
        rmdir(path);
    }
    snprintf(path, sizeof path, "%s/actor", folder);
    rmdir(path);
    rmdir(folder);
}

/* --- the two ways --- */

static void copy(int out)
{
    static char buffer[COPY_BYTES];
    for (int rank = 0; rank < RANKS; rank++) {
        char path[128];
        make_path(path, sizeof path, rank, "/stdout.log");
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
            for (ssize_t done = 0; done < got;) {
                ssize_t now = write(out, buffer + done, (size_t)(got - done));
                if (now < 0)
                    _exit(1);
                done += now;
            }
        close(fd);
    }
}

static void show(int out)
{
    static const char *const names[] = {"actor"};
    struct screen_options options = {.components = names, .component_count = 1, .fds = {out, 2}};
    int run_dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct log_tail *tail = log_tail_new(run_dir, NULL);
    struct screen *screen = screen_new(&options);
    if (!tail || !screen)
        _exit(1);
    for (int rank = 0; rank < RANKS; rank++)
        log_tail_add(tail, "actor", 0, rank, true);
    /* As the driver does it: read while there is room, wait while there is none. */
    for (bool is_done = false; !is_done;) {
        struct pollfd polled[SCREEN_FDS];
        nfds_t count = screen_poll(screen, polled);
        if (count > 0)
            poll(polled, count, -1);
        screen_flush(screen);
        if (!screen_is_full(screen))
            is_done = log_tail_finish(tail, screen_put, screen);
    }
    if (!screen_drain(screen, -1, -1) || screen_error(screen, 0))
        _exit(1);
    screen_free(screen);
    log_tail_free(tail);
    close(run_dir);
}

/* CPU seconds of a child that runs `work` into a pipe which is read here. */
static double time_child(void (*work)(int out), size_t *out_bytes)
{
    static char buffer[1 << 20];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        work(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    *out_bytes = 0;
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        *out_bytes += (size_t)got;
    close(ends[0]);
    struct rusage usage;
    int status;
    if (wait4(child, &status, 0, &usage) != child || status != 0)
        fail("the child");
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

struct outcome {
    double copy_s, show_s;
    size_t copied, shown;
};

static struct outcome compare(int line)
{
    double copies[ROUNDS], shows[ROUNDS];
    struct outcome outcome;
    for (int rank = 0; rank < RANKS; rank++)
        write_log(rank, line);
    for (int round = -1; round < ROUNDS; round++) { /* one to warm up */
        int at = round < 0 ? 0 : round;
        copies[at] = time_child(copy, &outcome.copied);
        shows[at] = time_child(show, &outcome.shown);
    }
    outcome.copy_s = median(copies, ROUNDS);
    outcome.show_s = median(shows, ROUNDS);
    /* Every line has got a label of ten bytes. */
    if (outcome.shown != outcome.copied + outcome.copied / (size_t)line * 10) {
        fprintf(stderr, "screen_speed: %zu bytes shown of %zu\n", outcome.shown, outcome.copied);
        exit(2);
    }
    return outcome;
}

int main(void)
{
    make_folder();
    struct outcome wide = compare(100), narrow = compare(20);
    remove_folder();
    double cost = wide.show_s / wide.copy_s, narrow_cost = narrow.show_s / narrow.copy_s;
    printf("{\"bench\": \"screen_speed\", \"bytes\": %zu, \"rounds\": %d,\n"
           " \"copy_ms\": %.1f, \"show_ms\": %.1f, \"copy_20_ms\": %.1f, \"show_20_ms\": %.1f, "
           "\"cost_of_20_byte_lines\": %.2f,\n"
           " \"measures\": [\n"
           "  {\"name\": \"showing / bare copy, CPU\", \"value\": %.2f, \"target\": %.1f, "
           "\"at_most\": true, \"ok\": %s}],\n"
           " \"ok\": %s}\n",
           wide.copied, ROUNDS, wide.copy_s * 1e3, wide.show_s * 1e3, narrow.copy_s * 1e3,
           narrow.show_s * 1e3, narrow_cost, cost, COST_TARGET,
           cost <= COST_TARGET ? "true" : "false", cost <= COST_TARGET ? "true" : "false");
    return 0;
}
