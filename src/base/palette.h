/* palette.h - the colours of components and rows, as numbers of a terminal's 256 colours.
 *
 * A component has one colour wherever it is shown: in a plan, among the lines of a run, in its logs and in
 * Python. These places know different sets of components, so the colour depends on the name alone. */
#ifndef BASE_PALETTE_H
#define BASE_PALETTE_H

#include <stdbool.h>
#include <stddef.h>

/* The colour of a component. The usual names of RL jobs differ from each other in colour; any other name
 * may share its colour with one. */
int palette_of_name(const char *name);

/* Whether colours are on by default: on a terminal that has them (`term` is the value of TERM), unless
 * NO_COLOR is set and not empty. Both texts may be NULL. */
bool palette_is_on(bool is_terminal, const char *no_color, const char *term);

/* A colour by number, for rows without names of their own. Neighbours differ. */
int palette_of_index(size_t index);

#endif
