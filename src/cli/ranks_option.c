/* ranks_option.c - see ranks_option.h. */
#include "cli/ranks_option.h"

#include "cli/output.h"

int ranks_option(const struct invocation *invocation, struct arena *arena, struct rankset *out,
                 const struct rankset **out_ranks)
{
    const char *text = option_value(invocation, "ranks");
    struct roost_error err;
    struct diag diag = diag_start(NULL, &err);
    *out_ranks = NULL;
    if (!text)
        return 0;
    if (rankset_read(out, arena, sv_from(text), NOWHERE, &diag) != ROOST_OK)
        return output_refuse(invocation, "--ranks: %s", err.message);
    *out_ranks = out;
    return 0;
}
