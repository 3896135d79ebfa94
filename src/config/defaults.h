/* defaults.h - Hydra's `defaults` list, followed as far as files beside the config go. */
#ifndef CONFIG_DEFAULTS_H
#define CONFIG_DEFAULTS_H

#include "config/override.h"
#include "config/tree.h"

/* The tree `root`, read from `path`, composed with the files its `defaults` name. An override `group=name`
 * (`group@package=name`), where `group` is a folder beside the config, takes another file for the entry of
 * that group; `null` takes none, and `+group=name` adds an entry. Such overrides are marked as taken.
 * What was not composed is reported as warnings. NULL after it reported an error. */
struct node *defaults_compose(struct arena *arena, const char *path, struct node *root,
                              struct overrides *overrides, struct diag *diag);

#endif
