/* cmd_version.c - roost version: which roost this is. */
#include <stdio.h>

#include "base/strview.h"
#include "cli/output.h"

static int run(const struct invocation *invocation)
{
    if (invocation->operand_count)
        return output_usage("'roost version' takes no argument '%s'",
                            quote(sv_from(invocation->operands[0])).text);
    printf("roost %s\n", roost_version());
    return 0;
}

static const struct cli_option options[] = {{0}};

const struct command cmd_version = {
    .name = "version",
    .summary = "print the version",
    .usage = "",
    .details = "Prints the version, as roost --version does.",
    .options = options,
    .run = run,
};
