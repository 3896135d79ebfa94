/* expand.h - texts of a config with the values of one process in them. */
#ifndef COMMAND_EXPAND_H
#define COMMAND_EXPAND_H

#include "command/values.h"
#include "config/percent.h"

/* Appends the text with every %{NAME} replaced by its value and every %% by a percent sign. The text
 * has passed percent_check. */
void expand_text(struct text *out, struct strview text, const struct value_source *source);

/* Reports every %{NAME} of a word that only processes on certain nodes have, while some process of the
 * component is on another, and every word for another component that is not there. `types` as in struct
 * environment. */
void expand_check(const struct commands *commands, const struct word *word, const char *component,
                  uint32_t types, struct diag *diag);

#endif
