/* oom.c - the counter "oom_kill", in memory.events of a control group or in /proc/vmstat. A run's own
 * group has the file only where somebody delegated the memory controller to it. */
#include "launch/local/oom.h"

#include <fcntl.h>
#include <stdio.h>
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
