/* interleave.c - how long two programs take, start to end, run in turns.
 *
 * A process of a millisecond is drowned by the overhead of a Python that spawns it; this spawner adds
 * some microseconds. Usage: interleave ROUNDS PROGRAM [ARG ...] -- PROGRAM [ARG ...]
 * Standard output of both goes to /dev/null. Prints the medians in microseconds, as JSON. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

enum { WARM_UP = 5 };

static double time_program(char **argv, const posix_spawn_file_actions_t *actions)
{
    pid_t child;
    int status;
    double start = now_seconds();
    if (posix_spawn(&child, argv[0], actions, NULL, argv, environ) != 0 ||
        waitpid(child, &status, 0) != child) {
        fprintf(stderr, "interleave: cannot run %s\n", argv[0]);
        exit(2);
    }
    double seconds = now_seconds() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "interleave: %s failed\n", argv[0]);
        exit(2);
    }
    return seconds;
}

int main(int argc, char **argv)
{
    int split = 2;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (rounds < 1 || split < 3 || split + 1 >= argc) {
        fprintf(stderr, "usage: interleave ROUNDS PROGRAM [ARG ...] -- PROGRAM [ARG ...]\n");
        return 2;
    }
    argv[split] = NULL;
    posix_spawn_file_actions_t actions;
    double *first = calloc((size_t)rounds, sizeof *first);
    double *second = calloc((size_t)rounds, sizeof *second);
    if (!first || !second || posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) != 0)
        return 2;
    for (int round = -WARM_UP; round < rounds; round++) {
        int at = round < 0 ? 0 : round;
        first[at] = time_program(argv + 2, &actions);
        second[at] = time_program(argv + split + 1, &actions);
    }
    printf("{\"rounds\": %d, \"first_us\": %.1f, \"second_us\": %.1f}\n", rounds,
           median(first, rounds) * 1e6, median(second, rounds) * 1e6);
    posix_spawn_file_actions_destroy(&actions);
    free(first);
    free(second);
    return 0;
}
