/* path_merge.h - joins variables that hold lists of folders, where other variables are replaced. */
#ifndef COMMAND_PATH_MERGE_H
#define COMMAND_PATH_MERGE_H

#include "base/text.h"

/* PATH, PYTHONPATH, LD_LIBRARY_PATH and the like. */
bool is_path_variable(struct strview name);

/* Appends the entries of `new`, then those of `old`: "/c:/a" over "/a:/b" is "/c:/a:/b". Leaves out empty
 * and repeated entries. */
void path_merge(struct text *out, struct strview new, struct strview old);

#endif
