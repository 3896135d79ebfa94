/* words.h - texts of a config with the values of one process in them. */
#ifndef COMMAND_WORDS_H
#define COMMAND_WORDS_H

#include "command/values.h"
#include "config/percent.h"

/* Appends the text with every %{NAME} replaced by its value and every %% by a percent sign. The text
 * has passed percent_check. */
void words_expand(struct text *out, struct strview text, const struct value_source *source);

/* Says every %{NAME} of a word that only processes on certain nodes have, while some process of the
 * component is on another. `types` as in struct environment. */
void words_check(const struct word *word, const char *component, uint32_t types, struct diag *diag);

#endif
