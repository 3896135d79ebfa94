/* yaml_mapping.h - closing a mapping: keys are plain text and unique, merge keys are carried out. */
#ifndef CONFIG_YAML_MAPPING_H
#define CONFIG_YAML_MAPPING_H

#include "config/tree.h"

/* Fills the mapping from its children (key, value, key, value, ...). False after it reported why. */
bool yaml_close_mapping(struct arena *arena, struct node *mapping, struct node **children,
                        size_t pair_count, struct diag *diag);

#endif
