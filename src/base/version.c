/* version.c - the version, set by the build. */
#include <roost/roost.h>

const char *roost_version(void)
{
    return ROOST_VERSION;
}
