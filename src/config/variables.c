/* variables.c - looking names up in the list of variables.h. */
#include "config/variables.h"

static const struct {
    const char *name;
    enum variable_kind kind;
} list[] = {
#define X(name, kind) {#name, VARIABLE_##kind},
    ROOST_VARIABLE_MAP(X)
#undef X
};

const char *variable_name(enum variable variable)
{
    return list[variable].name;
}

enum variable_kind variable_kind(enum variable variable)
{
    return list[variable].kind;
}

bool variable_find(struct strview name, enum variable *out)
{
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        if (!sv_is(name, list[i].name))
            continue;
        *out = (enum variable)i;
        return true;
    }
    return false;
}

bool is_own_variable(struct strview name)
{
    return sv_starts(name, "ROOST_") || sv_is(name, "LISTEN_FDS") || sv_is(name, "LISTEN_PID") ||
           sv_is(name, "LISTEN_FDNAMES");
}

bool is_roost_variable(struct strview name)
{
    enum variable found;
    if (variable_find(name, &found))
        return list[found].kind != VARIABLE_DEFAULT;
    return is_own_variable(name) || sv_starts(name, "RAY_EXPERIMENTAL_NOSET_");
}
