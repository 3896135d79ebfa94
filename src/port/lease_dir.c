/* lease_dir.c - records who holds which ports, so that no crash can corrupt it.
 *
 * Two kinds of flock: `ports.lock` is held during one allocation, `<pid>.<n>.ports` for a holder's whole
 * life. The kernel drops both when the process ends. So a file that can be locked has no living holder and
 * is removed. Files are created and locked under `ports.lock`, so no process sees one that is not locked
 * yet. */
#include "port/lease_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/private_dir.h"

enum { HOLDERS_MAX = UINT16_MAX - 1, NAMES_TRIED = 1000, NAP_MS_MAX = 16 };

static const char lock_name[] = "ports.lock";

/* Hands an error of base on to the caller's diag. */
static enum roost_code pass_on(struct diag *diag, const struct roost_error *err)
{
    diag_error(diag, err->code, NOWHERE, "%s", err->message);
    if (err->hint[0])
        diag_hint(diag, "%s", err->hint);
    return err->code;
}

static enum roost_code say_errno(struct diag *diag, int error, const char *step, const char *name)
{
    const char *words = strerrordesc_np(error);
    diag_error(diag, ROOST_ERR_IO, NOWHERE, "cannot %s '%s' of the port leases: %s", step, name,
               words ? words : "error");
    diag_hint(diag, error == ENOSPC || error == EDQUOT
                        ? "make room on that disk, or set XDG_RUNTIME_DIR to another one"
                        : "set XDG_RUNTIME_DIR to a directory on a local disk");
    return ROOST_ERR_IO;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- the lock --- */

/* Reads up to `size` bytes from the start of a file; -1 with errno. */
static ssize_t read_start(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = pread(fd, out + len, size - len, (off_t)len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static enum roost_code say_locked(struct diag *diag, int lock, const char *path, int32_t wait_ms)
{
    char text[128];
    int64_t pid = 0;
    ssize_t len = read_start(lock, text, sizeof text);
    struct strview words = {text, len > 0 ? (size_t)len : 0};
    bool is_known =
        number_parse(sv_sub(words, 0, sv_find(words, ' ', 0)), INT32_MAX, &pid) == NUMBER_OK && pid;
    if (!is_known) {
        diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE,
                   "waited %d ms for the port leases in '%s': another process has them locked",
                   wait_ms, quote(sv_from(path)).text);
        diag_hint(diag, "find it with: fuser -v %s/%s", quote(sv_from(path)).text, lock_name);
        return ROOST_ERR_TIMEOUT;
    }
    diag_error(diag, ROOST_ERR_TIMEOUT, NOWHERE,
               "waited %d ms for the port leases in '%s': process %d has them locked", wait_ms,
               quote(sv_from(path)).text, (int32_t)pid);
    diag_hint(diag, "if it is stopped, let it go on (kill -CONT %d) or end it (kill -KILL %d)",
              (int32_t)pid, (int32_t)pid);
    return ROOST_ERR_TIMEOUT;
}

/* For whoever waits in vain: who has it. A failure here spoils nothing but those words. */
static void sign_lock(int lock, const char *owner)
{
    char text[128];
    int len = snprintf(text, sizeof text, "%d %s\n", (int)getpid(), owner ? owner : "-");
    if (ftruncate(lock, 0) != 0 || !file_write_at(lock, text, (size_t)len, 0))
        return;
}

enum roost_code lease_dir_lock(struct lease_dir *dir, const char *path, const char *owner,
                               int32_t wait_ms, struct diag *diag)
{
    struct roost_error err;
    dir->dir = private_dir_open(path, true, &err);
    dir->lock =
        dir->dir < 0 ? -1 : private_file_open(dir->dir, lock_name, O_RDWR | O_CREAT, NULL, &err);
    if (dir->lock < 0)
        return pass_on(diag, &err);
    int64_t deadline = now_ms() + wait_ms;
    for (long nap = 1; flock(dir->lock, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return say_errno(diag, errno, "lock", lock_name);
        if (now_ms() >= deadline)
            return say_locked(diag, dir->lock, path, wait_ms);
        /* flock has no timeout of its own, and signals are not a library's to use. */
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000}, NULL);
        nap = nap < NAP_MS_MAX ? nap * 2 : NAP_MS_MAX;
    }
    sign_lock(dir->lock, owner);
    return ROOST_OK;
}

void lease_dir_unlock(struct lease_dir *dir)
{
    if (dir->lock < 0)
        return;
    flock(dir->lock, LOCK_UN); /* a forked child may have a copy of the descriptor */
    close(dir->lock);
    dir->lock = -1;
}

void lease_dir_close(struct lease_dir *dir)
{
    lease_dir_unlock(dir);
    if (dir->dir >= 0)
        close(dir->dir);
    dir->dir = -1;
}

/* --- the books --- */

static enum roost_code say_damaged(struct diag *diag, const char *name)
{
    diag_error(diag, ROOST_ERR_IO, NOWHERE, "the port leases in '%s' cannot be read",
               quote(sv_from(name)).text);
    diag_hint(diag, "end the run that has that file open, or remove the file when there is none");
    return ROOST_ERR_IO;
}

/* The books of one living holder. */
static enum roost_code read_holder(int fd, const char *name, struct lease_books *books,
                                   struct diag *diag)
{
    if (books->holder_count % 16 == 0) {
        size_t room = (size_t)books->holder_count + 16;
        void *more = realloc(books->holders, room * sizeof *books->holders);
        if (!more)
            return diag_nomem(diag);
        books->holders = more;
    }
    char *text = malloc(LEASE_FILE_MAX + 1);
    if (!text)
        return diag_nomem(diag);
    ssize_t len = read_start(fd, text, LEASE_FILE_MAX + 1);
    int error = errno;
    struct lease_holder *holder = &books->holders[books->holder_count];
    bool is_good =
        len >= 0 && len <= LEASE_FILE_MAX && books->holder_count < HOLDERS_MAX &&
        lease_file_read((struct strview){text, (size_t)len}, (uint16_t)(books->holder_count + 1),
                        holder, books->holder_of_port);
    free(text);
    if (len < 0)
        return say_errno(diag, error, "read", name);
    if (!is_good)
        return say_damaged(diag, name);
    books->holder_count++;
    return ROOST_OK;
}

static enum roost_code read_entry(struct lease_dir *dir, const char *name,
                                  struct lease_books *books, struct diag *diag)
{
    struct roost_error err;
    bool is_missing = false;
    int fd = private_file_open(dir->dir, name, O_RDWR, &is_missing, &err);
    if (fd < 0)
        return is_missing ? ROOST_OK : pass_on(diag, &err);
    enum roost_code code = ROOST_OK;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(dir->dir, name, 0);
    else if (errno == EWOULDBLOCK)
        code = read_holder(fd, name, books, diag);
    else
        code = say_errno(diag, errno, "lock", name);
    close(fd);
    return code;
}

static bool is_lease_name(const char *name)
{
    size_t len = strlen(name);
    return len > 6 && strcmp(name + len - 6, ".ports") == 0;
}

enum roost_code lease_dir_read(struct lease_dir *dir, struct lease_books *out, struct diag *diag)
{
    int fd = openat(dir->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    if (!entries) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error == ENOMEM ? diag_nomem(diag) : say_errno(diag, error, "list", ".");
    }
    enum roost_code code = ROOST_OK;
    memset(out, 0, sizeof *out);
    for (struct dirent *entry; code == ROOST_OK && (errno = 0, entry = readdir(entries));)
        if (is_lease_name(entry->d_name))
            code = read_entry(dir, entry->d_name, out, diag);
    closedir(entries);
    return code;
}

void lease_books_free(struct lease_books *books)
{
    if (books)
        free(books->holders);
    free(books);
}

/* --- our own --- */

/* One process may hold several leases, and in another PID namespace our number may be taken. */
static int create_numbered(struct lease_dir *dir, struct lease_entry *entry,
                           struct roost_error *err)
{
    int fd = -1;
    entry->pid = (int32_t)getpid();
    for (int n = 0; n < NAMES_TRIED && fd < 0; n++) {
        snprintf(entry->name, sizeof entry->name, "%d.%d.ports", (int)entry->pid, n);
        if (faccessat(dir->dir, entry->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            continue;
        fd = private_file_create(dir->dir, entry->name, err);
        if (fd < 0)
            return -1;
    }
    return fd;
}

enum roost_code lease_dir_add(struct lease_dir *dir, struct text *content, struct lease_entry *out,
                              struct diag *diag)
{
    struct roost_error err = {.code = ROOST_ERR_LEASE};
    if (!text_string(content))
        return diag_nomem(diag);
    snprintf(err.message, sizeof err.message, "this process has %d port leases already",
             NAMES_TRIED);
    snprintf(err.hint, sizeof err.hint, "lease ports together, or free leases that are done with");
    out->fd = create_numbered(dir, out, &err);
    if (out->fd < 0)
        return pass_on(diag, &err);
    if (flock(out->fd, LOCK_EX | LOCK_NB) == 0 && file_write(out->fd, content->bytes, content->len))
        return ROOST_OK;
    int error = errno;
    lease_dir_remove(dir, out);
    return say_errno(diag, error, "write", out->name);
}

void lease_dir_remove(struct lease_dir *dir, struct lease_entry *entry)
{
    if (entry->fd < 0)
        return;
    if (entry->pid == (int32_t)getpid()) {
        unlinkat(dir->dir, entry->name,
                 0); /* first: an unlocked name would be taken for a dead one's */
        flock(entry->fd, LOCK_UN);
    }
    close(entry->fd);
    entry->fd = -1;
}
