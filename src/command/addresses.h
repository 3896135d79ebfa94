/* addresses.h - the addresses of the processes of other components: the words of config/peers.h, and
 * ROOST_ADDRESSES_<COMPONENT>_<PORT> for every component that a component names.
 *
 * A list is the same for all processes of a component, so it is made once for each component that is
 * named and shared through base_env. A list that is too long for a variable goes to long_env. Ports are
 * leased before any process starts: the order of `after` does not matter. */
#ifndef COMMAND_ADDRESSES_H
#define COMMAND_ADDRESSES_H

#include "command/commands.h"

enum {
    ADDRESSES_MAX = 64 * 1024
}; /* bytes; the kernel ends a variable or an argument at 128 KiB */

/* Finds the components that each component names, and makes room for the lists. False without memory. */
bool addresses_find(struct commands *commands, struct diag *diag);

/* Reports words that name ranks which do not exist, or components that this run leaves out. */
void addresses_check(const struct commands *commands, const struct word *word, struct diag *diag);

/* Appends the value of a word. While ports are not known, it appends placeholders, and for a long list only
 * the first ones. */
void addresses_put(struct text *out, const struct commands *commands,
                   const struct run_values *values, struct strview name);

/* Appends the list of a variable while ports are not known: placeholders. */
void addresses_put_list(struct text *out, const struct commands *commands,
                        const struct run_values *values, const struct address_list *list);

/* Makes the lists and puts them into base_env and long_env. False without memory, or after reporting a
 * word whose list is too long for a command. */
bool addresses_fill(struct commands *commands, const struct run_values *values, struct diag *diag);

#endif
