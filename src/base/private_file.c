/* private_file.c - files inside a checked directory, the two base paths, and the messages of refusals.
 *
 * A file is opened first and checked by fstat on the descriptor: a name can change between a check and an
 * open, a descriptor cannot. O_NONBLOCK keeps open() from waiting on a fifo. */
#include "base/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

struct shown_path shown_in(int dir, const char *name)
{
    struct shown_path shown = {""};
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t len = readlink(link, shown.text, sizeof shown.text - 1);
    size_t used = len > 0 ? (size_t)len : 0;
    shown.text[used] = '\0';
    if (name && used + strlen(name) + 2 <= sizeof shown.text)
        snprintf(shown.text + used, sizeof shown.text - used, "%s%s", used > 1 ? "/" : "", name);
    return shown;
}

void private_say_errno(struct diag *diag, int error, const char *step, const char *path)
{
    const char *words = strerrordesc_np(error);
    bool is_refused = error == EACCES || error == EPERM || error == ELOOP || error == ENOTDIR;
    diag_error(diag, is_refused ? ROOST_ERR_ACCESS : ROOST_ERR_IO, NOWHERE, "cannot %s '%s': %s",
               step, quote(sv_from(path)).text, words ? words : "error");
    if (error == EMFILE || error == ENFILE)
        diag_hint(diag, "raise the limit of open files (ulimit -n)");
    else if (error == ENOSPC || error == EDQUOT)
        diag_hint(diag, "make room on that disk, or choose another directory (logs.dir for logs, "
                        "XDG_RUNTIME_DIR for sockets)");
    else
        diag_hint(diag, "choose a directory that you can write (logs.dir for logs, XDG_RUNTIME_DIR "
                        "for sockets)");
}

bool private_name_check(struct diag *diag, const char *name)
{
    size_t len = strlen(name);
    if (len > 0 && len <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
        strcmp(name, "..") != 0)
        return true;
    diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' is not the name of a file in a directory",
               quote(sv_from(name)).text);
    diag_hint(diag, "a name has 1 to %d bytes, no '/', and is not '.' or '..'", NAME_MAX);
    return false;
}

int private_file_create(int dir, const char *name, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    if (!private_name_check(&diag, name))
        return -1;
    int fd =
        openat(dir, name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_APPEND | O_NOCTTY, 0600);
    if (fd >= 0)
        return fd;
    int error = errno;
    struct shown_path path = shown_in(dir, name);
    if (error != EEXIST) {
        private_say_errno(&diag, error, "make", path.text);
        return -1;
    }
    diag_error(&diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' is there already",
               quote(sv_from(path.text)).text);
    diag_hint(&diag, "remove it; roost writes only files that it has made itself");
    return -1;
}

static bool check_file(struct diag *diag, const char *path, const struct stat *found)
{
    struct quote shown = quote(sv_from(path));
    if (!S_ISREG(found->st_mode)) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' is not a plain file but %s", shown.text,
                   S_ISLNK(found->st_mode)    ? "a symbolic link"
                   : S_ISDIR(found->st_mode)  ? "a directory"
                   : S_ISFIFO(found->st_mode) ? "a fifo"
                   : S_ISSOCK(found->st_mode) ? "a socket"
                                              : "a device");
        diag_hint(diag, "remove it; roost makes its files itself");
    } else if (found->st_uid != geteuid()) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE,
                   "'%s' belongs to user %u (mode %04o), not to you (user %u)", shown.text,
                   found->st_uid, found->st_mode & 07777, geteuid());
        diag_hint(diag, "remove it; roost makes its files itself");
    } else if (found->st_mode & 077) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' can be reached by others (mode %04o)",
                   shown.text, found->st_mode & 07777);
        diag_hint(diag, "chmod 600 %s", shown.text);
    } else if (found->st_nlink > 1) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' has %lu names (hard links)", shown.text,
                   (unsigned long)found->st_nlink);
        diag_hint(diag, "remove it; roost makes its files itself");
    } else {
        return true;
    }
    return false;
}

static int say_not_opened(struct diag *diag, int dir, const char *name, int error)
{
    struct stat found;
    struct shown_path path = shown_in(dir, name);
    if (fstatat(dir, name, &found, AT_SYMLINK_NOFOLLOW) != 0 || check_file(diag, path.text, &found))
        private_say_errno(diag, error, "open", path.text);
    return -1;
}

int private_file_open(int dir, const char *name, int flags, bool *out_is_missing,
                      struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct stat found;
    if (!private_name_check(&diag, name))
        return -1;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0) {
        if (out_is_missing)
            *out_is_missing = errno == ENOENT;
        return say_not_opened(&diag, dir, name, errno);
    }
    struct shown_path path = shown_in(dir, name);
    if (fstat(fd, &found) != 0 || fcntl(fd, F_SETFL, flags & (O_APPEND | O_NONBLOCK)) != 0) {
        private_say_errno(&diag, errno, "open", path.text);
    } else if (found.st_nlink == 0) { /* removed since it was opened */
        private_say_errno(&diag, ENOENT, "open", path.text);
        if (out_is_missing)
            *out_is_missing = true;
    } else if (check_file(&diag, path.text, &found)) {
        return fd;
    }
    close(fd);
    return -1;
}

/* --- base paths --- */

static const char *absolute(const char *const *env, const char *name)
{
    size_t len = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return (*env)[len + 1] == '/' ? *env + len + 1 : NULL;
    return NULL;
}

static bool put_path(char *out, size_t size, const char *base, const char *rest)
{
    size_t base_len = strlen(base), rest_len = strlen(rest);
    if (base_len + rest_len >= size)
        return false;
    memcpy(out, base, base_len);
    memcpy(out + base_len, rest, rest_len + 1);
    return true;
}

bool private_dir_runtime(char *out, size_t size, const char *const *env)
{
    char own[40];
    const char *base = absolute(env, "XDG_RUNTIME_DIR");
    snprintf(own, sizeof own, "/tmp/roost-%u", geteuid());
    return base ? put_path(out, size, base, "/roost") : put_path(out, size, own, "");
}

bool private_dir_state(char *out, size_t size, const char *const *env)
{
    const char *state = absolute(env, "XDG_STATE_HOME"), *home = absolute(env, "HOME");
    return state  ? put_path(out, size, state, "/roost/runs")
           : home ? put_path(out, size, home, "/.local/state/roost/runs")
                  : false;
}
