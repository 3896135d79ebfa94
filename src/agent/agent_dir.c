/* agent_dir.c - removes the folder of an agent. Workers may have put anything into it: the contents are
 * removed first, whatever they are, down to a depth that no real tree has. */
#include "agent/agent_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH_MAX = 64 };

/* Takes the descriptor. */
static void empty(int fd, int depth)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || unlinkat(fd, name, 0) == 0)
            continue;
        int inner = depth < DEPTH_MAX
                        ? openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
        if (inner >= 0)
            empty(inner, depth + 1);
        (void)unlinkat(fd, name, AT_REMOVEDIR);
    }
    closedir(dir);
}

void agent_dir_remove(int fd)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    int dir = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        empty(dir, 0);
    if (len > 0) {
        path[len] = '\0';
        (void)rmdir(path);
    }
}
