/* namespaces.c - reads the runtime directory; a socket counts only if a process listens on it. */
#include "registry/namespaces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/private_dir.h"
#include "rpc/control_socket.h"

enum { PATH_BYTES = 4096, SHOWN_MAX = 8 };

static const char suffix[] = ".registry";

bool namespace_check(const char *name, struct diag *diag)
{
    struct strview view = sv_from(name);
    if (is_name(view) && view.len <= ROOST_NAMESPACE_MAX)
        return true;
    diag_error(diag, ROOST_ERR_NAME, NOWHERE, "'%s' cannot be a namespace", quote(view).text);
    diag_hint(diag, "use letters, digits, '_', '-' and '.', at most %d of them",
              ROOST_NAMESPACE_MAX);
    return false;
}

void namespace_socket(const char *name, char out[NAMESPACE_FILE_MAX])
{
    snprintf(out, NAMESPACE_FILE_MAX, "%s%s", name, suffix);
}

/* The kernel unlocks a file with the last process that has it open, so no name is ever left behind.
 * Returns -1 with *out_is_taken when another has it. */
static int lock(int dir, const char *name, bool *out_is_taken, struct diag *diag)
{
    char file[NAMESPACE_FILE_MAX];
    struct roost_error err;
    *out_is_taken = false;
    snprintf(file, sizeof file, "%s.namespace", name);
    int fd = private_file_open(dir, file, O_RDWR | O_CREAT, NULL, &err);
    if (fd < 0) {
        diag_again(diag, &err);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    *out_is_taken = true;
    return -1;
}

int namespace_take(int dir, const char *wanted, char out[ROOST_NAMESPACE_MAX + 1],
                   struct diag *diag)
{
    enum { TRIES = 10000 };
    bool is_taken = true;
    int fd = -1;
    if (wanted) {
        if (!namespace_check(wanted, diag))
            return -1;
        snprintf(out, ROOST_NAMESPACE_MAX + 1, "%s", wanted);
        fd = lock(dir, wanted, &is_taken, diag);
        if (fd < 0 && is_taken) {
            diag_error(diag, ROOST_ERR_ENGINE, NOWHERE,
                       "the namespace '%s' belongs to a living run of this user", wanted);
            diag_hint(diag, "choose another one, or leave it out for the first that is free");
        }
        return fd;
    }
    for (int i = 0; i < TRIES && is_taken; i++) {
        snprintf(out, ROOST_NAMESPACE_MAX + 1, i ? "roost_%d" : "roost", i);
        fd = lock(dir, out, &is_taken, diag);
        if (fd >= 0)
            return fd;
    }
    if (is_taken) {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "%d runs of this user are alive already",
                   TRIES);
        diag_hint(diag, "`roost ps` lists them, `roost stop` ends one");
    }
    return -1;
}

/* roost_9 before roost_10. */
static int in_order(const void *a, const void *b)
{
    return strverscmp(((const struct roost_namespace *)a)->name,
                      ((const struct roost_namespace *)b)->name);
}

/* A name whose socket is answered at. */
static bool read_name(int dir, const char *file, struct roost_namespace *out)
{
    size_t len = strlen(file), tail = sizeof suffix - 1;
    if (len <= tail || len - tail > ROOST_NAMESPACE_MAX || strcmp(file + len - tail, suffix) != 0 ||
        !is_name((struct strview){file, len - tail}))
        return false;
    memcpy(out->name, file, len - tail);
    out->name[len - tail] = '\0';
    int fd = control_connect(dir, file);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Keeps the first `cap` in order, as if all had been sorted. */
static void keep(struct roost_namespace *out, size_t cap, size_t *kept, struct roost_namespace one)
{
    if (*kept < cap)
        out[(*kept)++] = one;
    else if (cap && in_order(&one, &out[cap - 1]) < 0)
        out[cap - 1] = one;
    if (*kept)
        qsort(out, *kept, sizeof *out, in_order);
}

size_t roost_namespace_list(const char *const *env, struct roost_namespace *out, size_t cap)
{
    char path[PATH_BYTES];
    size_t count = 0, kept = 0;
    int fd = private_dir_runtime(path, sizeof path, env) ? private_dir_open(path, false, NULL) : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    struct roost_namespace one;
    for (const struct dirent *it; (it = readdir(dir));)
        if (read_name(dirfd(dir), it->d_name, &one)) {
            count++;
            keep(out, cap, &kept, one);
        }
    closedir(dir);
    return count;
}

static void hint_living(const char *const *env, struct diag *diag)
{
    struct roost_namespace living[SHOWN_MAX];
    struct text words = TEXT_INIT;
    size_t count = roost_namespace_list(env, living, SHOWN_MAX);
    for (size_t i = 0; i < count && i < SHOWN_MAX; i++)
        text_printf(&words, "%s%s", i ? ", " : "", living[i].name);
    const char *names = text_string(&words);
    if (count == 0)
        diag_hint(diag, "no run of this user has managers: start one with Cluster(num_nodes=...)");
    else
        diag_hint(diag, "living: %s%s", names ? names : "", count > SHOWN_MAX ? ", ..." : "");
    text_release(&words);
}

/* A registry server whose queue of newcomers is full is busy, not gone. */
static int connect_patiently(int dir, const char *file)
{
    enum { PAUSE_MS = 5, TRIES = 4000 };
    int fd;
    for (int i = 0; (fd = control_connect(dir, file)) < 0 && errno == EAGAIN && i < TRIES; i++) {
        struct timespec span = {0, PAUSE_MS * 1000000L};
        (void)nanosleep(&span, NULL);
    }
    return fd;
}

int namespaces_connect(const char *const *env, const char *name, struct diag *diag)
{
    char path[PATH_BYTES], file[NAMESPACE_FILE_MAX];
    struct roost_error err;
    if (!namespace_check(name, diag))
        return -1;
    namespace_socket(name, file);
    int dir = -1, fd = -1;
    errno = ENOENT;
    if (private_dir_runtime(path, sizeof path, env) && access(path, F_OK) == 0) {
        dir = private_dir_open(path, false, &err);
        if (dir < 0) {
            diag_again(diag, &err);
            return -1;
        }
        fd = connect_patiently(dir, file);
    }
    int error = errno;
    if (dir >= 0)
        close(dir);
    if (fd >= 0)
        return fd;
    if (error == ENOENT || error == ECONNREFUSED) {
        diag_error(diag, ROOST_ERR_ENGINE, NOWHERE, "no managers live in namespace '%s'", name);
        hint_living(env, diag);
    } else {
        diag_error(diag, error == EPERM || error == EACCES ? ROOST_ERR_ACCESS : ROOST_ERR_ENGINE,
                   NOWHERE, "cannot reach the managers of namespace '%s': %s", name,
                   strerror(error));
        diag_hint(diag, "they answer only the user who started them");
    }
    return -1;
}
