/* totals.h - what all components of a config come to, known before any of them is placed. */
#ifndef PLACEMENT_TOTALS_H
#define PLACEMENT_TOTALS_H

#include "placement/rank_text.h"

/* What one text makes. Entries that are wrong, and "all" without a cluster, do not count. */
struct text_size {
    int64_t processes;
    int64_t resources; /* held; one that processes share counts for each */
};

struct text_size text_size(const struct rank_text *text);

/* Whether the components, sizes[r] being what rule r makes, are few enough to be one plan. Says the
 * first that is too much. */
bool totals_check(const struct roost_config *config, const struct text_size *sizes,
                  struct diag *diag);

#endif
