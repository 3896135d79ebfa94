/* slime_flags.h - the arguments of a slime launch script as the text of a config. */
#ifndef CLI_SLIME_FLAGS_H
#define CLI_SLIME_FLAGS_H

#include "base/diag.h"
#include "base/text.h"

/* Writes a config with the arguments under `roost.groups`, one per line, so that errors quote the line. Reads
 * `--actor-num-nodes 2`, `--actor-num-nodes=2`, `--colocate` and `--no-colocate`; of an argument that comes
 * twice the last one counts, as in slime. Skips arguments that say nothing of placement groups, with their
 * values, and words that belong to no argument, such as `python3 train.py`. False after it reported an
 * argument without a value, or a lack of memory. */
bool slime_flags_put(const char *const *words, size_t count, struct text *out, struct diag *diag);

#endif
