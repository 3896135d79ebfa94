/* worker_address.h - the address of a worker: the name of its group and the ranks on the way to it, G:3:1.
 *
 * A group's name has no ':', so an address is unambiguous. */
#ifndef COMMAND_WORKER_ADDRESS_H
#define COMMAND_WORKER_ADDRESS_H

#include "base/diag.h"
#include "base/strview.h"

enum {
    ADDRESS_PATH_MAX = 16, /* ranks */
    ADDRESS_MAX = 255,     /* bytes */
};

struct worker_address {
    struct strview group; /* points into the text */
    int32_t path[ADDRESS_PATH_MAX];
    int32_t path_len;
};

/* Reads "G", "G:3" or "G:3:1"; false after reporting why the text is not an address. `out` may be NULL. */
bool worker_address_read(struct strview text, struct worker_address *out, struct diag *diag);

/* Whether `name` can be the name of a group; false after reporting why not. */
bool group_name_check(struct strview name, struct diag *diag);

#endif
