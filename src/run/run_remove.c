/* run_remove.c - walks the three levels of a run's directory, to measure or to remove.
 *
 * Workers own their folders and may have put anything there, so nothing is trusted: a name is checked by
 * lstat, a directory by its open descriptor. */
#include "run/run_remove.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strview.h"
#include "logs/log_times.h"
#include "supervise/lost.h"

enum level { LEVEL_RUN, LEVEL_COMPONENT, LEVEL_RANK, LEVEL_VALUES, LEVEL_FILE, LEVEL_FOREIGN };

struct walk {
    bool is_real;
    dev_t device;
    int64_t removed; /* names, since the last look */
    struct run_contents *out;
};

/* What a name is at a level. Files of other names are somebody's own, also those that start with a dot. */
static enum level judge(enum level at, const char *name, const struct stat *info)
{
    bool is_file = S_ISREG(info->st_mode), is_dir = S_ISDIR(info->st_mode);
    bool is_number = name[strspn(name, "0123456789")] == '\0';
    bool is_log = strcmp(name, "stdout.log") == 0 || strcmp(name, "stderr.log") == 0;
    switch (at) {
    case LEVEL_RUN:
        if (is_dir)
            return strcmp(name, ".values") == 0 ? LEVEL_VALUES
                   : is_name(sv_from(name))     ? LEVEL_COMPONENT
                                                : LEVEL_FOREIGN;
        return is_file && (strcmp(name, LOST_FILE) == 0 || is_run_file(sv_from(name)))
                   ? LEVEL_FILE
                   : LEVEL_FOREIGN;
    case LEVEL_COMPONENT:
        return is_dir && is_number                        ? LEVEL_RANK
               : is_file && strcmp(name, TIMES_FILE) == 0 ? LEVEL_FILE
                                                          : LEVEL_FOREIGN;
    case LEVEL_RANK: /* a worker may have made a link or a pipe of its log */
        return is_log && !is_dir ? LEVEL_FILE : LEVEL_FOREIGN;
    default: return is_file && is_variable_name(sv_from(name)) ? LEVEL_FILE : LEVEL_FOREIGN;
    }
}

static void note_foreign(struct walk *walk, const char *path)
{
    if (!walk->out->foreign[0])
        snprintf(walk->out->foreign, sizeof walk->out->foreign, "%s", path);
}

static void remove_name(struct walk *walk, int dir, const char *name, int flags, const char *path)
{
    if (unlinkat(dir, name, flags) == 0 || errno == ENOENT)
        walk->removed++;
    else if (errno != ENOTEMPTY && errno != EEXIST && !walk->out->failed[0])
        snprintf(walk->out->failed, sizeof walk->out->failed, "cannot remove '%.150s': %s", path,
                 strerrordesc_np(errno));
}

static void walk_dir(struct walk *walk, int fd, enum level level, const char *path);

/* A directory below another one. */
static void walk_below(struct walk *walk, int dir, const char *name, enum level level,
                       const char *path)
{
    struct stat info;
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_ours =
        fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() && info.st_dev == walk->device;
    if (is_ours) {
        walk->out->bytes += (int64_t)info.st_blocks * 512;
        walk_dir(walk, fd, level, path);
    } else if (fd >= 0 || errno != ENOENT) {
        note_foreign(walk, path);
    }
    if (fd >= 0)
        close(fd);
    if (is_ours && walk->is_real)
        remove_name(walk, dir, name, AT_REMOVEDIR, path);
}

static void visit(struct walk *walk, int dir, const char *name, enum level level, const char *above)
{
    struct stat info;
    char path[256];
    bool is_page = level == LEVEL_RUN && strcmp(name, RUN_PAGE) == 0;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        fstatat(dir, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (snprintf(path, sizeof path, "%s%s%s", above, above[0] ? "/" : "", name) >= (int)sizeof path)
        path[sizeof path - 1] = '\0'; /* for messages only */
    enum level what = judge(level, name, &info);
    if (what == LEVEL_FOREIGN) {
        note_foreign(walk, path);
    } else if (what == LEVEL_FILE) {
        walk->out->bytes += (int64_t)info.st_blocks * 512;
        /* The page goes last, by itself: a run without one is never taken for a run. */
        if (walk->is_real && !is_page)
            remove_name(walk, dir, name, 0, path);
    } else {
        walk_below(walk, dir, name, what, path);
    }
}

static void walk_dir(struct walk *walk, int fd, enum level level, const char *path)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0)
            close(copy);
        snprintf(walk->out->failed, sizeof walk->out->failed, "cannot list '%.150s': %s", path,
                 strerrordesc_np(errno));
        return;
    }
    int64_t above = walk->removed;
    /* A name that is removed may hide the next one from the same reading, so read until none is. */
    do {
        walk->removed = 0;
        rewinddir(dir);
        for (struct dirent *it; (it = readdir(dir));)
            visit(walk, fd, it->d_name, level, path);
    } while (walk->is_real && walk->removed > 0 && !walk->out->failed[0]);
    walk->removed = above;
    closedir(dir);
}

static bool start(struct walk *walk, int dir, struct run_contents *out)
{
    struct stat info;
    *out = (struct run_contents){0};
    walk->out = out;
    if (fstat(dir, &info) != 0)
        return false;
    walk->device = info.st_dev;
    out->bytes = (int64_t)info.st_blocks * 512;
    return true;
}

void run_measure(int dir, struct run_contents *out)
{
    struct walk walk = {0};
    if (start(&walk, dir, out))
        walk_dir(&walk, dir, LEVEL_RUN, "");
}

bool run_empty(int dir, struct run_contents *out)
{
    struct walk walk = {.is_real = true};
    if (!start(&walk, dir, out))
        return false;
    walk_dir(&walk, dir, LEVEL_RUN, "");
    if (!out->failed[0] && !out->foreign[0])
        remove_name(&walk, dir, RUN_PAGE, 0, RUN_PAGE);
    return !out->failed[0] && !out->foreign[0];
}
