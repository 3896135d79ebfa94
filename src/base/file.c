/* file.c - opens, reads up to the end or the limit, closes; works on anything that can be read. Also the
 * loops around partial reads and writes. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FIRST_READ = 16 * 1024 };

static bool say_errno(struct diag *diag, const char *path, const char *step)
{
    int error = errno;
    struct source source = {.name = path};
    diag_error(diag, ROOST_ERR_IO, (struct place){.source = &source}, "cannot %s '%s': %s", step,
               quote(sv_from(path)).text,
               strerrordesc_np(error) ? strerrordesc_np(error) : "error");
    diag_hint(diag, error == EISDIR ? "name a file in that folder"
                                    : "check the path, and that you may read the file");
    return false;
}

/* Reads into a buffer that doubles; *out is the caller's to free whatever is returned. */
static bool read_all(int fd, const char *path, size_t limit, struct diag *diag, char **out,
                     size_t *out_len)
{
    size_t room = 0;
    for (*out_len = 0;;) {
        if (*out_len == room) {
            room = room ? room * 2 : FIRST_READ;
            char *bytes = realloc(*out, room);
            if (!bytes) {
                diag_nomem(diag);
                return false;
            }
            *out = bytes;
        }
        ssize_t got = read(fd, *out + *out_len, room - *out_len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return say_errno(diag, path, "read");
        if (got == 0)
            return true;
        *out_len += (size_t)got;
        if (*out_len > limit) {
            struct source source = {.name = path};
            diag_error(diag, ROOST_ERR_LIMIT, (struct place){.source = &source},
                       "'%s' is larger than %zu bytes", quote(sv_from(path)).text, limit);
            diag_hint(diag, "check that it is the right file, or move what roost does not read out "
                            "of it");
            return false;
        }
    }
}

/* Reads what `fd` holds into the arena. */
static bool read_into(struct arena *arena, int fd, const char *path, size_t limit,
                      struct diag *diag, struct strview *out)
{
    char *bytes = NULL;
    size_t len = 0;
    bool is_good = read_all(fd, path, limit, diag, &bytes, &len);
    if (is_good) {
        char *copy = arena_copy(arena, (struct strview){bytes, len});
        is_good = copy != NULL;
        if (copy)
            *out = (struct strview){copy, len};
        else
            diag_nomem(diag);
    }
    free(bytes);
    return is_good;
}

bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return say_errno(diag, path, "open");
    bool is_good = read_into(arena, fd, path, limit, diag, out);
    if (!is_stdin)
        close(fd);
    return is_good;
}

/* --- files that a config names --- */

/* What is not a regular file; NULL for one. */
static const char *kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return NULL;
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    default: return "a device";
    }
}

/* Files there look regular, but show other processes or wait for events of the kernel. */
static bool is_of_kernel(int fd)
{
    static const unsigned magics[] = {
        PROC_SUPER_MAGIC, SYSFS_MAGIC,          DEBUGFS_MAGIC,  TRACEFS_MAGIC,
        SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,   BPF_FS_MAGIC,   CGROUP2_SUPER_MAGIC,
        SELINUX_MAGIC,    SMACK_MAGIC,          PSTOREFS_MAGIC, EFIVARFS_MAGIC,
        BINFMTFS_MAGIC,   RDTGROUP_SUPER_MAGIC,
    };
    struct statfs system;
    if (fstatfs(fd, &system) != 0)
        return true;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((unsigned)system.f_type == magics[i])
            return true;
    return false;
}

int file_open_named(const char *path, const char **out_kind)
{
    struct stat about;
    *out_kind = NULL;
    /* Opening a device can have effects of its own: it is looked at first. The file may be another one
     * when it is opened, so that one is looked at again. */
    if (stat(path, &about) != 0 || (*out_kind = kind_of(about.st_mode)))
        return -1;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &about) == 0 && !(*out_kind = kind_of(about.st_mode)) && is_of_kernel(fd))
        *out_kind = "a file of the kernel";
    if (!*out_kind)
        return fd;
    close(fd);
    return -1;
}

bool file_refuse_kind(const char *path, const char *kind, struct place at, struct diag *diag)
{
    diag_error(diag, ROOST_ERR_IO, at, "'%s' is %s; a config can name regular files only",
               quote(sv_from(path)).text, kind);
    diag_hint(diag, strcmp(kind, kind_of(S_IFDIR)) == 0
                        ? "name a file in that folder"
                        : "write what it holds into a file, and name that");
    return false;
}

bool file_read_named(struct arena *arena, const char *path, struct place at, size_t limit,
                     struct diag *diag, struct strview *out)
{
    const char *kind;
    int fd = file_open_named(path, &kind);
    if (fd < 0)
        return kind ? file_refuse_kind(path, kind, at, diag) : say_errno(diag, path, "open");
    bool is_good = read_into(arena, fd, path, limit, diag, out);
    close(fd);
    return is_good;
}

void file_refuse_content(const char *path, const struct roost_error *found, const char *what,
                         const char *how, struct diag *diag)
{
    /* A source without its text: the place is reported, the line is not shown. */
    struct source source = {.name = path};
    struct place at = {.source = &source, .line = found->line, .column = found->column};
    bool is_harmless = found->code == ROOST_ERR_IO || found->code == ROOST_ERR_LIMIT ||
                       found->code == ROOST_ERR_MEMORY;
    if (is_harmless) {
        diag_error(diag, found->code, at, "%s", found->message);
        diag_hint(diag, "%s", found->hint[0] ? found->hint : how);
        return;
    }
    diag_error(diag, found->code, at, "'%s' is not %s", quote(sv_from(path)).text, what);
    diag_hint(diag, "%s", how);
}

/* `from` -1 = at the descriptor's place. */
static bool write_all(int fd, const char *bytes, size_t len, int64_t from)
{
    for (size_t done = 0; done < len;) {
        ssize_t more = from < 0 ? write(fd, bytes + done, len - done)
                                : pwrite(fd, bytes + done, len - done, from + (int64_t)done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return false;
        done += (size_t)more;
    }
    return true;
}

bool file_write(int fd, const void *bytes, size_t len)
{
    return write_all(fd, bytes, len, -1);
}

bool file_write_at(int fd, const void *bytes, size_t len, int64_t from)
{
    return write_all(fd, bytes, len, from);
}

ssize_t file_read_at(int fd, void *bytes, size_t len, int64_t from)
{
    size_t done = 0;
    while (done < len) {
        ssize_t more = pread(fd, (char *)bytes + done, len - done, from + (int64_t)done);
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -1;
        if (more == 0)
            break;
        done += (size_t)more;
    }
    return (ssize_t)done;
}

bool file_is_directory(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}
