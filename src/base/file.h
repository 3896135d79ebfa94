/* file.h - files whole: read with a limit, and written or read at a place however little the kernel
 * takes or gives at a time. And the one way to open a file that a config names. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/diag.h"

/* Whether there is a folder of this name. */
bool file_is_directory(const char *path);

/* Reads all of `path` ("-" = standard input) into the arena, NUL-terminated. More than `limit` bytes
 * are an error before they are kept. False after it reported why. */
bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out);

/* --- files that a config names: somebody else's config may have chosen them ---
 *
 * Such a file is opened only if it is a regular file and not one of the kernel (/proc, /sys); opening it
 * never waits. Errors quote nothing of it before it has proven to be what the config says it is. */

/* Opens it to read. -1: *out_kind says what it is instead ("a pipe"), or is NULL and errno says why. */
int file_open_named(const char *path, const char **out_kind);

/* Says at `at`, where the config names it, that it is of another kind. Returns false. */
bool file_refuse_kind(const char *path, const char *kind, struct place at, struct diag *diag);

/* The same as file_read for such a file. */
bool file_read_named(struct arena *arena, const char *path, struct place at, size_t limit,
                     struct diag *diag, struct strview *out);

/* Reports that such a file is not `what`, at the place of the fault `found` in it, whose words are kept back
 * if they can hold some of the file's. `how` is the hint: how to see more. */
void file_refuse_content(const char *path, const struct roost_error *found, const char *what,
                         const char *how, struct diag *diag);

/* Writes all of it, at the descriptor's place or at `from`; false with errno. */
bool file_write(int fd, const void *bytes, size_t len);
bool file_write_at(int fd, const void *bytes, size_t len, int64_t from);

/* Reads until `len` bytes or the end of the file; how many, -1 with errno. */
ssize_t file_read_at(int fd, void *bytes, size_t len, int64_t from);

#endif
