/* oom.c - reads the counter "oom_kill", in memory.events of a control group or in /proc/vmstat, and
 * writes oom_score_adj, which the kernel adds to its estimate of a process's size. A run's own group
 * has memory.events only where the memory controller was delegated to it. */
#include "supervise/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"

/* The counter of one file, which this closes; -1 without. */
static int64_t read_count(int fd)
{
    static const char key[] = "\noom_kill ";
    char text[16 * 1024];
    size_t len = 0;
    ssize_t got = 0;
    while (fd >= 0 && (got = read(fd, text + len, sizeof text - 1 - len)) > 0)
        len += (size_t)got;
    if (fd >= 0)
        close(fd);
    text[len] = '\0';
    const char *at = strstr(text, key);
    if (!at)
        return -1;
    at += sizeof key - 1;
    int64_t count;
    struct strview digits = {at, strcspn(at, "\n")};
    return number_parse(digits, INT64_MAX, &count) == NUMBER_OK ? count : -1;
}

int64_t oom_count(int cgroup_dir, const char *proc)
{
    char path[256];
    int64_t count = -1;
    if (cgroup_dir >= 0)
        count = read_count(openat(cgroup_dir, "memory.events", O_RDONLY | O_CLOEXEC));
    snprintf(path, sizeof path, "%s/vmstat", proc);
    return count >= 0 ? count : read_count(open(path, O_RDONLY | O_CLOEXEC));
}

void oom_spare(char out[OOM_SCORE_MAX])
{
    /* Below what it started with takes a privilege; back to nothing it may go if it was raised. */
    static const char *const wanted[] = {"-900", "0"};
    int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, out, OOM_SCORE_MAX - 1) : -1;
    bool is_lower = false;
    out[len > 0 ? len : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    for (size_t i = 0; out[0] && !is_lower && i < sizeof wanted / sizeof *wanted; i++)
        is_lower = strtol(wanted[i], NULL, 10) < strtol(out, NULL, 10) &&
                   write(fd, wanted[i], strlen(wanted[i])) > 0;
    if (fd >= 0)
        close(fd);
    if (!is_lower)
        out[0] = '\0';
}
