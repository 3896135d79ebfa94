/* proc.c - reads /proc/PID/stat, and /proc/self/fd. A number may belong to another process by now:
 * whoever asks knows that it does not, or does not mind. */
#include "launch/local/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
