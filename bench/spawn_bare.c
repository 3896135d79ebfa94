/* spawn_bare.c - the least that starting processes can cost: for each a directory with two log files and
 * a posix_spawn, then a wait for all. What `roost run` is compared with.
 * Usage: spawn_bare COUNT PROGRAM      in an empty directory */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const names[] = {"stdout.log", "stderr.log"};

static void start(int rank, char *program)
{
    char path[64];
    posix_spawn_file_actions_t actions;
    pid_t child;
    int fds[2];
    snprintf(path, sizeof path, "%d", rank);
    posix_spawn_file_actions_init(&actions);
    mkdir(path, 0700);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%d/%s", rank, names[i]);
        fds[i] = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
        posix_spawn_file_actions_adddup2(&actions, fds[i], i + 1);
    }
    if (posix_spawn(&child, program, &actions, NULL, (char *[]){program, NULL}, environ) != 0)
        exit(2);
    for (int i = 0; i < 2; i++)
        close(fds[i]);
    posix_spawn_file_actions_destroy(&actions);
}

int main(int argc, char **argv)
{
    int count = argc == 3 ? atoi(argv[1]) : 0;
    for (int rank = 0; rank < count; rank++)
        start(rank, argv[2]);
    while (wait(NULL) > 0)
        continue;
    return count ? 0 : 2;
}
