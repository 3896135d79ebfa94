/* palette.h - the colours of things that have a name: numbers of the 256 colours of terminals.
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

/* Whether colours are on where nobody asked for or against them: on a terminal that has some (`term` is
 * TERM), unless NO_COLOR says something. Both may be NULL. */
bool palette_is_on(bool is_terminal, const char *no_color, const char *term);

/* A colour by number, for rows without names of their own. Neighbours differ. */
int palette_of_index(size_t index);

#endif
