/* file.h - files whole: read with a limit, and written or read at a place however little the kernel
 * takes or gives at a time. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/diag.h"

/* Reads all of `path` ("-" = standard input) into the arena, NUL-terminated. More than `limit` bytes
 * are an error before they are kept. False after saying why. */
bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out);

/* Writes all of it, at the descriptor's place or at `from`; false with errno. */
bool file_write(int fd, const void *bytes, size_t len);
bool file_write_at(int fd, const void *bytes, size_t len, int64_t from);

/* Reads until `len` bytes or the end of the file; how many, -1 with errno. */
ssize_t file_read_at(int fd, void *bytes, size_t len, int64_t from);

#endif
