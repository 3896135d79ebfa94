/* group_name.h - the name of a worker group, reserved among the groups of its namespace. */
#ifndef RUN_GROUP_NAME_H
#define RUN_GROUP_NAME_H

#include <roost/engine/registry.h>
#include <roost/group.h>

/* All zero: it has none. */
struct group_name {
    struct roost_registry_client
        *holder; /* the connection that has it; NULL = no manager was asked */
    char text[64];
};

/* Asks the managers of the run's namespace for the name that its one component will have. Does nothing
 * where the run has a namespace of its own, or one without managers. False after filling `err`. */
bool group_name_take(struct group_name *name, const struct roost_run_options *options,
                     struct roost_error *err);

/* Gives it back. */
void group_name_give(struct group_name *name);

#endif
