/* file.c - open, read until the end or the limit, close: works on anything that can be read. And loops
 * around what may be done in part. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out)
{
    bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return say_errno(diag, path, "open");
    char *bytes = NULL;
    size_t len = 0;
    bool is_good = read_all(fd, path, limit, diag, &bytes, &len);
    if (!is_stdin)
        close(fd);
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
