/* values.h - the value of every variable that roost sets, for one process. */
#ifndef COMMAND_VALUES_H
#define COMMAND_VALUES_H

#include "base/text.h"
#include "command/commands.h"
#include "config/variables.h"

/* A process, and the inputs of its variables. */
struct value_source {
    const struct commands *commands;
    const struct roost_cluster *cluster;
    const struct roost_component *placed;
    const char *name;                   /* of the component */
    const struct launch_config *launch; /* may be NULL */
    const struct run_values *values;
    int32_t first_port; /* the component's first request */
    int32_t rank;
    bool catches_failure;
};

/* The types of accelerators whose nodes have the variable: bit 1 << type. */
uint32_t variable_types(enum variable variable);

void put_variable(struct text *out, const struct value_source *source, enum variable variable);

/* Appends the first number of the process's port block launch->ports[port]. */
void put_port(struct text *out, const struct value_source *source, int32_t port);

#endif
