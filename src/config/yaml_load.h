/* yaml_load.h - YAML text into a positioned tree. The only door to libyaml, and only to its event
 * parser. */
#ifndef CONFIG_YAML_LOAD_H
#define CONFIG_YAML_LOAD_H

#include "config/tree.h"

/* Reads the one document in `text`, a piece of `source` whose first byte stands at `line`, `column`.
 * The tree borrows nothing from `text` but keeps `source` in its places. Limits are enforced while
 * reading. Returns NULL after it reported why. An empty text is an error too. */
struct node *yaml_load(struct arena *arena, const struct source *source, struct strview text,
                       int32_t line, int32_t column, struct diag *diag);

/* Reads the file source->name, which the config names at `at`, into source->text. It must hold a mapping,
 * and `cure` says how it would; of one that does not, nothing is quoted (base/file.h). NULL after it reported
 * why. */
struct node *yaml_load_named(struct arena *arena, struct source *source, struct place at,
                             size_t limit, const char *cure, struct diag *diag);

#endif
