/* log_file.c - opens logs step by step, so that no name and no link leads out of the run directory. */
#include "logs/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/strview.h"
#include "base/text.h"

enum { RANK_DIGITS = 12, PATH_MAX_HERE = 64 + RANK_DIGITS + 16 };

const char *log_file_name(enum log_stream stream)
{
    return stream == LOG_STDOUT ? "stdout.log" : "stderr.log";
}

static int open_step(int from, const char *name, int flags, int *out_errno)
{
    int fd = openat(from, name, flags | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        *out_errno = errno;
    return fd;
}

int log_dir_open(int run_dir, const char *component, int32_t rank, int *out_errno)
{
    char name[RANK_DIGITS];
    if (!is_name(sv_from(component)) || rank < 0) {
        *out_errno = ENOENT;
        return -1;
    }
    name[format_int32(name, rank)] = '\0';
    int parent = open_step(run_dir, component, O_PATH | O_DIRECTORY, out_errno);
    if (parent < 0)
        return -1;
    int dir = open_step(parent, name, O_PATH | O_DIRECTORY, out_errno);
    close(parent);
    return dir;
}

int log_file_open(int run_dir, const char *component, int32_t rank, enum log_stream stream,
                  struct stat *out_info, int *out_errno)
{
    int dir = log_dir_open(run_dir, component, rank, out_errno);
    if (dir < 0)
        return -1;
    /* Nonblocking: a pipe put in the log's place must not hold us up. */
    int fd = open_step(dir, log_file_name(stream), O_RDONLY | O_NONBLOCK | O_NOCTTY, out_errno);
    close(dir);
    if (fd < 0)
        return -1;
    if (fstat(fd, out_info) == 0 && S_ISREG(out_info->st_mode))
        return fd;
    *out_errno = EINVAL;
    close(fd);
    return -1;
}

int log_file_look(int run_dir, const char *component, int32_t rank, enum log_stream stream,
                  struct stat *out_info)
{
    char path[PATH_MAX_HERE];
    size_t len = strlen(component);
    if (!is_name(sv_from(component)) || rank < 0)
        return ENOENT;
    memcpy(path, component, len);
    path[len++] = '/';
    len += format_int32(path + len, rank);
    path[len++] = '/';
    memcpy(path + len, log_file_name(stream), strlen(log_file_name(stream)) + 1);
    return fstatat(run_dir, path, out_info, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}
