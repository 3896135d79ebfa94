/* proc.c - reads /proc/PID/stat, /proc/PID/cmdline and /proc/self/fd, for every process of a run. The kernel
 * may have reused a pid: callers either know that it has not, or accept the error. */
#include "supervise/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

int32_t proc_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return -1;
    int32_t count = -3; /* ".", ".." and the folder itself */
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

struct proc_stat proc_stat(int32_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, line, sizeof line - 1);
    if (fd >= 0)
        close(fd);
    line[len > 0 ? len : 0] = '\0';
    /* The name may hold anything, ')' too: what follows its last one is a letter and numbers. */
    const char *behind = strrchr(line, ')');
    if (!behind || strlen(behind) < 5)
        return (struct proc_stat){'?', -1};
    return (struct proc_stat){behind[2], (int32_t)strtol(behind + 4, NULL, 10)};
}

void proc_continue(int pidfd, int32_t pid)
{
    if (proc_stat(pid).state == 'T')
        (void)pidfd_send_signal(pidfd, SIGCONT, NULL, 0);
}

size_t proc_words(int32_t pid, char out[PROC_WORDS_MAX])
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, PROC_WORDS_MAX - 2);
    if (fd >= 0)
        close(fd);
    size_t end = len > 0 ? (size_t)len : 0;
    out[end] = out[end + 1] = '\0';
    return end;
}

/* What follows `--guardian` on the command line; NULL when the process is no guardian. */
static const char *guardian_name(int32_t pid, char words[PROC_WORDS_MAX])
{
    if (proc_words(pid, words) == 0)
        return NULL;
    const char *second = words + strlen(words) + 1;
    return strcmp(second, "--guardian") == 0 ? second + sizeof "--guardian" : NULL;
}

bool proc_is_guardian(int32_t pid, const char *name)
{
    char words[PROC_WORDS_MAX];
    const char *found = guardian_name(pid, words);
    return found && strcmp(found, name) == 0;
}

/* Whether it executes a roost program: words are easily borrowed. */
static bool is_roost(int32_t pid)
{
    char path[64], program[4096];
    static const char deleted[] = " (deleted)", name[] = "roost";
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t got = readlink(path, program, sizeof program);
    size_t len = got > 0 ? (size_t)got : 0, tail = sizeof deleted - 1;
    if (len > tail && memcmp(program + len - tail, deleted, tail) == 0)
        len -= tail;
    tail = sizeof name - 1;
    return len > tail && memcmp(program + len - tail, name, tail) == 0;
}

bool proc_is_agent(int32_t pid, const char *run_id)
{
    char words[PROC_WORDS_MAX];
    const char *found = guardian_name(pid, words);
    size_t len = strlen(run_id);
    return found && strncmp(found, run_id, len) == 0 && found[len] == '.' && is_roost(pid);
}
