/* secret_values.h - which scalars of a config hold secrets: see resolve.h.
 *
 * All of them return false after they reported that there is no memory. */
#ifndef CONFIG_SECRET_VALUES_H
#define CONFIG_SECRET_VALUES_H

#include "config/resolve.h"

/* Marks a scalar whose text holds the secret of `variable`; `shown` is the text without it. */
bool secret_mark(struct resolver *resolver, struct node *node, struct strview shown,
                 const struct secret_variable *variable);

/* Makes the resolver look for the values of secret variables in every scalar. A program may have put them
 * there: OmegaConf, for one, hands on what it resolved. Short values are not looked for. */
bool secret_look_for(struct resolver *resolver);

/* Marks the scalar if the value of such a variable is in it. */
bool secret_mark_found(struct resolver *resolver, struct node *node);

#endif
