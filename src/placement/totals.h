/* totals.h - the total size of all components of a config, known before any of them is placed. */
#ifndef PLACEMENT_TOTALS_H
#define PLACEMENT_TOTALS_H

#include "placement/rank_text.h"

/* The size of one placement text. Wrong entries, and "all" without a cluster, do not count. */
struct text_size {
    int64_t processes;
    int64_t resources; /* held; a shared resource counts once for each process */
};

struct text_size text_size(const struct rank_text *text);

/* Whether all components fit into one plan; sizes[r] is the size of rule r. Reports the first rule that goes
 * beyond the limit. */
bool totals_check(const struct roost_config *config, const struct text_size *sizes,
                  struct diag *diag);

#endif
