/* hardware.h - the kinds of robots a config can declare, and the fields of each. */
#ifndef CONFIG_HARDWARE_H
#define CONFIG_HARDWARE_H

#include "config/tree.h"

enum field_kind { FIELD_TEXT, FIELD_IP, FIELD_INT, FIELD_BOOL, FIELD_LIST };

struct hardware_field {
    const char *name;
    enum field_kind kind;
    const char *const *choices; /* NULL = any; NULL-terminated */
};

struct hardware_type {
    const char *name;
    const struct hardware_field *fields; /* ends with a NULL name */
};

/* What ranks count when a group has no robots: the name of the type for accelerators. */
#define HARDWARE_ACCELERATOR "Accelerator"

/* The type of this name (case-sensitive), or NULL. */
const struct hardware_type *hardware_type_find(struct strview name);

/* Names of all robot types, NULL-terminated. */
extern const char *const hardware_type_names[];

/* The field of this name, or NULL. */
const struct hardware_field *hardware_field_find(const struct hardware_type *type,
                                                 struct strview name);

#endif
