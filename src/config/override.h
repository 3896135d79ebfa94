/* override.h - key=value on the command line, put on top of the file. */
#ifndef CONFIG_OVERRIDE_H
#define CONFIG_OVERRIDE_H

#include "config/tree.h"

/* The tree `root` (may be NULL) with all overrides applied in order; shared parts are copied, not
 * changed. A value is a YAML value; a mapping is merged into the mapping that is there. Faults are
 * said and the override left out. NULL only without memory. */
struct node *override_apply(struct arena *arena, struct node *root, const char *const *overrides,
                            size_t count, struct diag *diag);

#endif
