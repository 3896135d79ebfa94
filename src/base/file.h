/* file.h - reads whole files up to a limit, and repeats reads and writes that the kernel does only in part.
 * Also the only way to open a file that a config names. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/diag.h"

/* Whether there is a folder of this name. */
bool file_is_directory(const char *path);

/* Reads all of `path` ("-" = standard input) into the arena, NUL-terminated. A file of more than `limit`
 * bytes is an error; reading stops there. False after reporting why. */
bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out);

/* --- files that a config names; the config may come from another user ---
 *
 * Such a file is opened only if it is a regular file and does not belong to the kernel (/proc, /sys).
 * Opening never waits. Errors do not quote the file until its content is known to be what the config says
 * it is. */

/* Opens it for reading. On -1, *out_kind names what the file is instead ("a pipe"), or is NULL and errno has
 * the reason. */
int file_open_named(const char *path, const char **out_kind);

/* Reports, at the place where the config names it, that the file is of another kind. Returns false. */
bool file_refuse_kind(const char *path, const char *kind, struct place at, struct diag *diag);

/* The same as file_read for such a file. */
bool file_read_named(struct arena *arena, const char *path, struct place at, size_t limit,
                     struct diag *diag, struct strview *out);

/* Reports that such a file is not `what`, at the place in it that `found` names. The message of `found` is
 * shown only if it cannot quote the file: errors of I/O, limits and memory. `how` is the hint: how to see
 * more. */
void file_refuse_content(const char *path, const struct roost_error *found, const char *what,
                         const char *how, struct diag *diag);

/* Writes all bytes, at the descriptor's offset or at `from`; false with errno. */
bool file_write(int fd, const void *bytes, size_t len);
bool file_write_at(int fd, const void *bytes, size_t len, int64_t from);

/* Reads `len` bytes, or up to the end of the file. Returns how many; -1 with errno. */
ssize_t file_read_at(int fd, void *bytes, size_t len, int64_t from);

#endif
