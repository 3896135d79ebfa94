/* palette.c - the one table of colours. */
#include "base/palette.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

/* First Okabe-Ito's colours, as near as 256 allow: people who confuse some colours can distinguish
 * them. */
static const int colors[] = {32,  208, 35, 220, 26,  166, 175, 67,
                             131, 143, 37, 99,  172, 109, 71,  136};

enum { COLORS = sizeof colors / sizeof *colors };

/* By place in `colors`. A hash alone gives one pair of four components the same colour in a third of all
 * jobs, so the names that most jobs use have places of their own. */
static const char *const usual[] = {"actor", "rollout",   "critic",   "reward", "env",  "ref",
                                    "train", "inference", "evaluate", "router", "data", "agent"};

static_assert(sizeof usual / sizeof *usual <= sizeof colors / sizeof *colors);

int palette_of_name(const char *name)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(name, usual[i]) == 0)
            return colors[i];
    /* Names often differ in their last letter alone: a last product brings it to the high bits. */
    uint64_t hash = hash_bytes(HASH_START, name, strlen(name)) * UINT64_C(0x9e3779b97f4a7c15);
    return palette_of_index((size_t)(hash >> 32));
}

bool palette_is_on(bool is_terminal, const char *no_color, const char *term)
{
    return is_terminal && !(no_color && no_color[0]) && !(term && strcmp(term, "dumb") == 0);
}

int palette_of_index(size_t index)
{
    return colors[index % COLORS];
}
