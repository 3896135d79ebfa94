/* file.h - reading a whole file, pipe or standard input, with a limit. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"
#include "base/diag.h"

/* Reads all of `path` ("-" = standard input) into the arena, NUL-terminated. More than `limit` bytes
 * are an error before they are kept. False after saying why. */
bool file_read(struct arena *arena, const char *path, size_t limit, struct diag *diag,
               struct strview *out);

#endif
