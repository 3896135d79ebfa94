/* defaults.h - Hydra's `defaults` list, followed as far as files beside the config go. */
#ifndef CONFIG_DEFAULTS_H
#define CONFIG_DEFAULTS_H

#include "config/tree.h"

/* The tree `root`, read from `path`, composed with the files its `defaults` name. What was composed
 * and what was not is reported as warnings. NULL after it reported an error. */
struct node *defaults_compose(struct arena *arena, const char *path, struct node *root,
                              struct diag *diag);

#endif
