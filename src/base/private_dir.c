/* private_dir.c - walks to a directory that must be this user's alone.
 *
 * Words: the walk stands in a directory that was checked (an O_PATH descriptor); `rest` is what is left
 * of the path. Each step opens the next name without following it and checks the opened descriptor with
 * fstat. If another process swaps the name meanwhile, the check still applies to what was opened. Links
 * among the parents are spliced into `rest` and walked like any other name. */
#include "base/private_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"

enum { LINKS_MAX = 40 }; /* as the kernel */

struct walk {
    struct diag *diag;
    const char *path; /* as asked */
    int dir;          /* where it stands */
    int links;        /* followed so far */
    bool is_made;
    char rest[PATH_MAX];
};

static bool say_parent(struct walk *walk, int fd, const struct stat *found)
{
    struct shown_path parent = shown_in(fd, NULL);
    if (found->st_uid != geteuid() && found->st_uid != 0) {
        diag_error(walk->diag, ROOST_ERR_ACCESS, NOWHERE,
                   "'%s', on the way to '%s', belongs to user %u, not to you (user %u) or root",
                   quote(sv_from(parent.text)).text, quote(sv_from(walk->path)).text, found->st_uid,
                   geteuid());
        diag_hint(walk->diag, "choose a directory under your own home (logs.dir for logs, "
                              "XDG_RUNTIME_DIR for sockets)");
        return false;
    }
    diag_error(walk->diag, ROOST_ERR_ACCESS, NOWHERE,
               "'%s', on the way to '%s', can be written by others (mode %04o)",
               quote(sv_from(parent.text)).text, quote(sv_from(walk->path)).text,
               found->st_mode & 07777);
    diag_hint(walk->diag, "chmod go-w %s", quote(sv_from(parent.text)).text);
    return false;
}

/* In a sticky directory others can add names, but neither remove nor replace ours. Where every user has
 * a group of their own, by custom of the user's number, it may write: umask 002 is usual there. */
static bool is_parent_safe(const struct stat *found)
{
    bool is_ours = found->st_uid == geteuid();
    mode_t others = is_ours && found->st_gid == found->st_uid ? 002 : 022;
    return (is_ours || found->st_uid == 0) &&
           ((found->st_mode & others) == 0 || (found->st_mode & S_ISVTX));
}

static bool check_own(struct diag *diag, const char *path, const struct stat *found)
{
    struct quote shown = quote(sv_from(path));
    if (S_ISLNK(found->st_mode)) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' is a symbolic link, not a directory",
                   shown.text);
        diag_hint(diag, "name the directory that it points to, or remove the link");
    } else if (!S_ISDIR(found->st_mode)) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' is not a directory", shown.text);
        diag_hint(diag, "remove it, or name a directory");
    } else if (found->st_uid != geteuid()) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE,
                   "'%s' belongs to user %u (mode %04o), not to you (user %u)", shown.text,
                   found->st_uid, found->st_mode & 07777, geteuid());
        diag_hint(diag, "choose a directory of your own (logs.dir for logs, XDG_RUNTIME_DIR for "
                        "sockets)");
    } else if (found->st_mode & 077) {
        diag_error(diag, ROOST_ERR_ACCESS, NOWHERE, "'%s' can be reached by others (mode %04o)",
                   shown.text, found->st_mode & 07777);
        diag_hint(diag, "chmod 700 %s", shown.text);
    } else {
        return true;
    }
    return false;
}

/* Opens `name` in `dir`; makes it first when it is missing and should be. Somebody may make it in
 * between: then theirs is opened and judged. */
static int open_or_make(int dir, const char *name, int flags, bool is_made, const char **out_step)
{
    *out_step = "open";
    int fd = openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 || errno != ENOENT || !is_made)
        return fd;
    *out_step = "make";
    if (mkdirat(dir, name, 0700) != 0 && errno != EEXIST)
        return -1;
    return openat(dir, name, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* The directory itself. What cannot be opened is looked at once more, for the words alone. */
static int open_own(struct diag *diag, int dir, const char *name, bool is_made)
{
    const char *step;
    struct stat found;
    struct shown_path path;
    int fd = open_or_make(dir, name, O_RDONLY | O_DIRECTORY, is_made, &step);
    if (fd < 0) {
        int error = errno;
        path = shown_in(dir, name);
        if (error == EMFILE || fstatat(dir, name, &found, AT_SYMLINK_NOFOLLOW) != 0 ||
            check_own(diag, path.text, &found))
            private_say_errno(diag, error, step, path.text);
        return -1;
    }
    path = shown_in(dir, name);
    bool is_seen = fstat(fd, &found) == 0;
    if (is_seen && check_own(diag, path.text, &found))
        return fd;
    if (!is_seen)
        private_say_errno(diag, errno, "look at", path.text);
    close(fd);
    return -1;
}

/* Puts the target of a link in front of the rest. */
static bool follow(struct walk *walk, int link, const struct stat *found)
{
    char target[PATH_MAX];
    struct shown_path shown = shown_in(link, NULL);
    if (found->st_uid != geteuid() && found->st_uid != 0) {
        diag_error(walk->diag, ROOST_ERR_ACCESS, NOWHERE,
                   "'%s', on the way to '%s', is a symbolic link of user %u",
                   quote(sv_from(shown.text)).text, quote(sv_from(walk->path)).text, found->st_uid);
        diag_hint(walk->diag, "name the directory that it should point to");
        return false;
    }
    ssize_t len = readlinkat(link, "", target, sizeof target);
    size_t rest = strlen(walk->rest);
    if (len <= 0 || ++walk->links > LINKS_MAX || (size_t)len + rest + 2 > sizeof walk->rest) {
        private_say_errno(walk->diag,
                          len < 0                   ? errno
                          : walk->links > LINKS_MAX ? ELOOP
                                                    : ENAMETOOLONG,
                          "follow", shown.text);
        return false;
    }
    memmove(walk->rest + len + 1, walk->rest, rest + 1);
    memcpy(walk->rest, target, (size_t)len);
    walk->rest[len] = '/';
    return true;
}

/* Stands in `fd` from now on, if it is safe to. */
static bool stand_in(struct walk *walk, int fd)
{
    struct stat found;
    if (fd < 0 || fstat(fd, &found) != 0) {
        private_say_errno(walk->diag, errno, "open", walk->path);
    } else if (is_parent_safe(&found) || say_parent(walk, fd, &found)) {
        if (walk->dir >= 0)
            close(walk->dir);
        walk->dir = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* One name on the way. */
static bool step_into(struct walk *walk, const char *name)
{
    const char *step;
    struct stat found;
    int fd = open_or_make(walk->dir, name, O_PATH, walk->is_made, &step);
    if (fd < 0 || fstat(fd, &found) != 0) {
        int error = errno;
        private_say_errno(walk->diag, error, step, shown_in(walk->dir, name).text);
        if (fd >= 0)
            close(fd);
        return false;
    }
    if (S_ISDIR(found.st_mode))
        return stand_in(walk, fd);
    bool is_good = S_ISLNK(found.st_mode) && follow(walk, fd, &found);
    if (!S_ISLNK(found.st_mode))
        private_say_errno(walk->diag, ENOTDIR, "open", shown_in(fd, NULL).text);
    close(fd);
    return is_good && (walk->rest[0] != '/' || stand_in(walk, open("/", O_PATH | O_CLOEXEC)));
}

/* Takes the next name off the rest; false when there is none. */
static bool next_name(struct walk *walk, char *out_name, bool *out_is_last)
{
    size_t from = strspn(walk->rest, "/"), len = strcspn(walk->rest + from, "/");
    if (len == 0 || len > NAME_MAX)
        return false;
    memcpy(out_name, walk->rest + from, len);
    out_name[len] = '\0';
    size_t next = from + len + strspn(walk->rest + from + len, "/");
    *out_is_last = walk->rest[next] == '\0';
    memmove(walk->rest, walk->rest + next, strlen(walk->rest + next) + 1);
    return true;
}

static int walk_on(struct walk *walk)
{
    char name[NAME_MAX + 1];
    bool is_last;
    while (next_name(walk, name, &is_last)) {
        if (is_last)
            return open_own(walk->diag, walk->dir, name, walk->is_made);
        if (!step_into(walk, name))
            return -1;
    }
    bool is_root = walk->rest[strspn(walk->rest, "/")] == '\0';
    private_say_errno(walk->diag, is_root ? EACCES : ENAMETOOLONG, "use", walk->path);
    return -1;
}

int private_dir_open(const char *path, bool is_made, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    struct walk walk = {.diag = &diag, .path = path, .dir = -1, .is_made = is_made};
    size_t used = 0;
    if (path[0] != '/' && getcwd(walk.rest, sizeof walk.rest - 1)) {
        used = strlen(walk.rest);
        walk.rest[used++] = '/';
    }
    size_t len = strlen(path);
    if (len == 0 || used + len >= sizeof walk.rest || (path[0] != '/' && used == 0)) {
        private_say_errno(&diag, len == 0 || used == 0 ? ENOENT : ENAMETOOLONG, "open", path);
        return -1;
    }
    memcpy(walk.rest + used, path, len + 1);
    int fd = stand_in(&walk, open("/", O_PATH | O_CLOEXEC)) ? walk_on(&walk) : -1;
    if (walk.dir >= 0)
        close(walk.dir);
    return fd;
}

int private_dir_open_in(int dir, const char *name, bool is_made, struct roost_error *err)
{
    struct diag diag = diag_start(NULL, err);
    return private_name_check(&diag, name) ? open_own(&diag, dir, name, is_made) : -1;
}
