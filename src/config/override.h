/* override.h - key=value on the command line, put on top of the file. */
#ifndef CONFIG_OVERRIDE_H
#define CONFIG_OVERRIDE_H

#include "config/tree.h"

/* One word behind the config, in a source of its own so that errors can show it. */
struct override_word {
    struct place at;
    struct strview text;
    bool is_taken; /* it chooses a file of a defaults list: see defaults.h */
};

struct overrides {
    struct override_word *words;
    size_t count;
};

/* Puts the words into memory of the arena; false after it reported that there are too many, or no
 * memory. */
bool overrides_init(struct overrides *overrides, struct arena *arena, const char *const *words,
                    size_t count, struct diag *diag);

/* The tree `root` (may be NULL) with all overrides that are not taken applied in order; shared parts are
 * copied, not changed. A value is a YAML value; a mapping is merged into the mapping that is there. As in
 * Hydra, `key=value` changes a key that the config has, or that roost knows; `+key=value` adds one, and
 * `++key=value` does either. Faults are said and the override left out. NULL only without memory. */
struct node *overrides_apply(const struct overrides *overrides, struct arena *arena,
                             struct node *root, struct diag *diag);

#endif
