/* run_dir.c - makes and removes run directories. Nothing here reads one: see runs.c. */
#include "run/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/private_dir.h"
#include "supervise/lost.h"

/* Five bits a letter; none that is taken for another one. */
static const char letters[] = "abcdefghijkmnpqrstuvwxyz23456789";

bool is_run_id(const char *text)
{
    return strspn(text, letters) == RUN_ID_LEN && !text[RUN_ID_LEN];
}

static bool choose_id(char *out)
{
    unsigned char bytes[RUN_ID_LEN];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (int i = 0; i < RUN_ID_LEN; i++)
        out[i] = letters[bytes[i] & 31];
    out[RUN_ID_LEN] = '\0';
    return true;
}

enum roost_code roost_run_id_new(char out[ROOST_RUN_ID_SIZE], struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (choose_id(out))
        return ROOST_OK;
    diag_error(&diag, ROOST_ERR_IO, (struct place){0}, "cannot find a fresh run id: %s",
               strerror(errno));
    return ROOST_ERR_IO;
}

/* The link by which `roost ps` finds a run that is kept elsewhere. Without a state directory it is
 * not listed, which is no reason not to run. */
static void link_run(const struct run_dir *dir, const char *const *env)
{
    char state[RUN_PATH_MAX];
    int fd = private_dir_state(state, sizeof state, env) ? private_dir_open(state, true, NULL) : -1;
    if (fd < 0)
        return;
    (void)symlinkat(dir->path, fd, dir->id);
    close(fd);
}

static void unlink_run(const struct run_dir *dir, const char *const *env)
{
    char state[RUN_PATH_MAX];
    int fd =
        private_dir_state(state, sizeof state, env) ? private_dir_open(state, false, NULL) : -1;
    if (fd < 0)
        return;
    (void)unlinkat(fd, dir->id, 0); /* a directory, the run itself, is not removed by this */
    close(fd);
}

bool run_dir_make(struct run_dir *dir, const char *base, const char *const *env, struct diag *diag)
{
    enum { TRIES = 16 };
    char state[RUN_PATH_MAX];
    *dir = (struct run_dir){.fd = -1, .page = -1};
    if (!base && !private_dir_state(state, sizeof state, env)) {
        diag_error(diag, ROOST_ERR_IO, (struct place){0},
                   "there is no place for logs: neither XDG_STATE_HOME nor HOME is set");
        diag_hint(diag, "set one of them, or write roost.logs.dir in the config");
        return false;
    }
    for (int i = 0; i < TRIES; i++) {
        char path[RUN_PATH_MAX];
        if (!choose_id(dir->id))
            break;
        int len = snprintf(path, sizeof path, "%s/%s", base ? base : state, dir->id);
        if (len >= (int)sizeof path) {
            diag_error(diag, ROOST_ERR_IO, (struct place){0},
                       "the path of the log directory is too long");
            diag_hint(diag, "choose a shorter roost.logs.dir");
            return false;
        }
        struct roost_error err;
        dir->fd = private_dir_open(path, true, &err);
        if (dir->fd < 0) {
            diag_again(diag, &err);
            return false;
        }
        /* The page makes the directory ours: of two runs with one id, one makes it. The lock comes
         * first: a process that finds a page looks at the lock (run_dir_is_held) and would be in its
         * way. */
        bool is_taken = flock(dir->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        memcpy(dir->path, path, (size_t)len + 1);
        if (base && !is_taken) /* before the page: a run that is killed now can still be found */
            link_run(dir, env);
        dir->page = is_taken ? -1 : private_file_create(dir->fd, RUN_PAGE, &err);
        if (dir->page >= 0)
            return true;
        is_taken = is_taken || faccessat(dir->fd, RUN_PAGE, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        close(dir->fd);
        dir->fd = -1;
        if (!is_taken) {
            diag_again(diag, &err);
            if (rmdir(dir->path) == 0 && base)
                unlink_run(dir, env);
            return false;
        }
    }
    diag_error(diag, ROOST_ERR_IO, (struct place){0}, "cannot find a fresh run id: %s",
               strerror(errno));
    diag_hint(diag, "remove old runs from the log directory");
    return false;
}

bool run_dir_describe(struct run_dir *dir, const char *json, size_t len, struct diag *diag)
{
    if (!file_write(dir->page, json, len)) {
        diag_error(diag, ROOST_ERR_IO, (struct place){0}, "cannot write '%s/run.json': %s",
                   dir->path, strerror(errno));
        diag_hint(diag, "free some space, or choose another roost.logs.dir");
        return false;
    }
    close(dir->page);
    dir->page = -1;
    return true;
}

bool run_dir_is_held(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) != 0) /* shared: others may be looking, too */
        return true;
    (void)flock(fd, LOCK_UN);
    return false;
}

bool run_boot_id(char out[RUN_BOOT_MAX])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, out, RUN_BOOT_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    out[len > 0 ? len : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return out[0] != '\0';
}

static void clear(int fd)
{
    (void)unlinkat(fd, RUN_PAGE, 0);
    (void)unlinkat(fd, RUN_RECORDS, 0);
    lost_forget(fd);
}

/* Whether there is nothing in it but what a run makes before its first process. */
static bool is_unstarted(int fd)
{
    struct stat info;
    bool is_so = true;
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return false;
    }
    for (struct dirent *entry; is_so && (entry = readdir(dir));) {
        const char *name = entry->d_name;
        bool may_have_bytes = name[0] == '.'; /* the folders, and the lives that have not begun */
        is_so =
            may_have_bytes || ((strcmp(name, RUN_PAGE) == 0 || strcmp(name, RUN_RECORDS) == 0) &&
                               fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                               S_ISREG(info.st_mode) && info.st_size == 0);
    }
    closedir(dir);
    return is_so;
}

bool run_dir_clear_unstarted(int fd)
{
    if (!is_unstarted(fd))
        return false;
    clear(fd);
    return true;
}

void run_dir_remove(struct run_dir *dir, const char *const *env)
{
    if (dir->fd < 0)
        return;
    clear(dir->fd);
    if (rmdir(dir->path) == 0)
        unlink_run(dir, env);
    run_dir_release(dir);
}

void run_dir_release(struct run_dir *dir)
{
    if (dir->fd >= 0)
        close(dir->fd);
    if (dir->page >= 0)
        close(dir->page);
    dir->fd = dir->page = -1;
}
