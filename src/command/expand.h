/* expand.h - replaces %{NAME} in the texts of a config by the values of one process. */
#ifndef COMMAND_EXPAND_H
#define COMMAND_EXPAND_H

#include "command/values.h"
#include "config/percent.h"

/* Appends the text with every %{NAME} replaced by its value and every %% by a percent sign. The text
 * has passed percent_check. */
void expand_text(struct text *out, struct strview text, const struct value_source *source);

/* Reports every %{NAME} of a word that exists only on certain nodes, if a process of the component is on
 * another node. Also reports words for another component that does not exist. `types` as in struct
 * environment. */
void expand_check(const struct commands *commands, const struct word *word, const char *component,
                  uint32_t types, struct diag *diag);

#endif
